// @ts-check
/**
 * Doing something: dialogs that show what it would do, forms that ask once, rows that are chosen, and pages that look again
 * while something is under way. All words come with the page.
 */
import * as forms from "./forms.js";
import { ask, load, logIn, main, piece } from "./swap.js";

export function start() {
  document.addEventListener("submit", submit);
  document.addEventListener("change", choose);
  document.addEventListener("heddle:placed", prepare);
  document.addEventListener("heddle:moved", () => { looks = 0; });
  setInterval(freshen, 250);
  prepare();
}

/** What needs a script is shown when there is one. */
function prepare() {
  for (const element of document.querySelectorAll("form.act, [data-all], [data-needs-script]")) element.removeAttribute("hidden");
  count();
}

/** Takes a click on what belongs here. @param {Element} target @returns {boolean} */
export function take(target) {
  const close = target.closest("dialog [data-close]");
  if (close) {
    /** @type {HTMLDialogElement} */ (close.closest("dialog")).close();
    return true;
  }
  const link = /** @type {HTMLAnchorElement | null} */ (target.closest("a[data-dialog]"));
  if (link) open(link.href);
  return !!link;
}

/** The newest wish wins. */
let wish = 0;

/** Shows a page of this server as a dialog; in one that is open, instead of what it shows. @param {string} address */
export async function open(address) {
  const mine = ++wish;
  try {
    const response = await ask(address, { headers: { "X-Heddle-Piece": "1", Accept: "text/html" } });
    if (response.status === 401) return logIn();
    const content = piece(await response.text());
    if (mine === wish && content) show([...content.childNodes]);
  } catch {
    const words = document.createElement("p");
    words.className = "notice";
    words.textContent = "The server does not answer. Nothing was changed; try again.";
    if (mine === wish) show([words]);
  }
}

/** @param {Node[]} content */
function show(content) {
  let dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("act"));
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "act";
    dialog.addEventListener("close", () => dialog?.remove());
    document.body.append(dialog);
  }
  dialog.replaceChildren(...content);
  if (!dialog.querySelector("[data-close]")) {
    const close = document.createElement("button");
    close.dataset.close = "";
    close.textContent = "Close";
    dialog.append(close);
  }
  const title = dialog.querySelector("h1");
  dialog.setAttribute("aria-label", title?.textContent ?? "");
  document.dispatchEvent(new Event("heddle:placed"));
  if (!dialog.open) dialog.showModal();
  const first = /** @type {HTMLElement | null} */ (dialog.querySelector("input:not([type=hidden]), textarea, button[type=submit], [data-close]"));
  first?.focus();
}

/** @param {SubmitEvent} event */
async function submit(event) {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (form.dataset.act === undefined) return;
  event.preventDefault();
  if (form.hasAttribute("aria-busy")) return;
  form.setAttribute("aria-busy", "true");
  try {
    await act(form, !!event.submitter?.hasAttribute("data-dry"));
  } finally {
    form.removeAttribute("aria-busy");
  }
}

/** What a form sends: the document that somebody wrote in it, as it was written, what was filled in, or what it is for. @param {HTMLFormElement} form */
function bodyOf(form) {
  const written = /** @type {HTMLTextAreaElement | null} */ (form.querySelector("textarea[data-document]"));
  const filled = form.querySelector("[data-at]") ? forms.body(form) : undefined;
  return { kind: written?.dataset.document ?? "application/json", body: written?.value ?? filled ?? form.dataset.body ?? "{}" };
}

/** @param {HTMLFormElement} form @param {boolean} dry whether only to ask what would happen */
async function act(form, dry) {
  looks = 0;
  for (const old of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("[data-fault], [data-fault-of]"))) old.hidden = true;
  let response;
  let body;
  try {
    const { kind, body: sent } = bodyOf(form);
    const to = `${form.dataset.act ?? ""}${dry ? "&dryRun=1" : ""}`;
    response = await ask(to, { method: "POST", headers: { "Content-Type": kind, Accept: "application/json" }, body: sent });
    if (response.status === 401) return fault(form, "[data-fault-of=session]");
    body = response.ok ? await response.json() : await response.json().catch(() => ({}));
  } catch {
    return fault(form, "[data-fault-of=silence]");
  }
  if (!response.ok) return fault(form, "[data-fault]", body.message ?? `The server answered ${response.status}.`);
  if (dry) return fill(/** @type {HTMLElement | null} */ (form.querySelector("[data-preview]")), body);
  tell(form, body.outcome ?? (response.status === 200 ? "done" : "begun"), body);
  if (form.dataset.then === "again" || form.closest("dialog")) load(location.pathname + location.search, "again");
}

/** @param {HTMLFormElement} form @param {string} which @param {string} [text] */
function fault(form, which, text) {
  const place = /** @type {HTMLElement | null} */ (form.querySelector(which));
  if (!place) return;
  if (text !== undefined) place.textContent = text;
  place.hidden = false;
}

/** Shows the words for an outcome, with what the answer has. @param {HTMLFormElement} form @param {string} name @param {any} body */
function tell(form, name, body) {
  const outcomes = /** @type {HTMLElement[]} */ ([...(form.parentElement?.querySelectorAll("[data-outcome]") ?? [])]);
  const outcome = outcomes.find((found) => found.dataset.outcome === name);
  if (!outcome) return;
  fill(outcome, body);
  form.hidden = true;
  form.classList.remove("act");
  outcome.focus();
}

/** Puts what an answer has where it belongs, and shows it. @param {HTMLElement | null} place @param {any} body */
function fill(place, body) {
  if (!place) return;
  for (const slot of /** @type {NodeListOf<HTMLElement>} */ (place.querySelectorAll("[data-slot]"))) {
    const value = body[slot.dataset.slot ?? ""];
    slot.textContent = typeof value === "number" && slot.dataset.slot !== "status" ? numbers.format(value) : String(value ?? "");
  }
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (place.querySelectorAll("[data-with]"))) {
    part.hidden = body[part.dataset.with ?? ""] === undefined;
  }
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (place.querySelectorAll("[data-slot-link]"))) {
    link.href += encodeURIComponent(body[link.dataset.slotLink ?? ""]);
  }
  place.hidden = false;
}

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** @param {Event} event */
function choose(event) {
  const box = /** @type {HTMLInputElement} */ (event.target);
  if (box.hasAttribute("data-all")) {
    for (const other of boxes(box.form)) other.checked = box.checked;
  }
  count();
}

/** @param {HTMLFormElement | null} form */
function boxes(form) {
  return /** @type {NodeListOf<HTMLInputElement>} */ (form?.querySelectorAll("input[type=checkbox][name]") ?? document.querySelectorAll("nothing"));
}

/** Says how many are chosen. */
function count() {
  for (const place of document.querySelectorAll("[data-chosen]")) {
    const all = [...boxes(place.closest("form"))];
    const chosen = all.filter((box) => box.checked).length;
    const text = chosen ? `${chosen} selected` : "";
    if (place.textContent !== text) place.textContent = text;
    const every = /** @type {HTMLInputElement | null} */ (place.closest("form")?.querySelector("[data-all]"));
    if (every) {
      every.checked = chosen > 0 && chosen === all.length;
      every.indeterminate = chosen > 0 && chosen < all.length;
    }
  }
}

/** A page that is left open asks no more often than this. */
const FRESH_MS_MAX = 60_000;
let looked = Date.now();
/** How often since something happened: the more, the longer until the next. */
let looks = 0;
/** @type {HTMLElement | undefined} */
let fresh;

/** Looks again at a page that says how often, while somebody sees it and asks nothing else. */
function freshen() {
  if (fresh !== main()) [fresh, looked, looks] = [main(), Date.now(), 0];
  const place = /** @type {HTMLElement | null} */ (main()?.querySelector("[data-fresh]"));
  const every = Number(place?.dataset.fresh);
  const pause = Math.min(every * 1.5 ** looks, Number(place?.dataset.freshMost ?? FRESH_MS_MAX));
  if (!every || document.hidden || document.querySelector("dialog[open]") || Date.now() - looked < pause) return;
  looked = Date.now();
  looks += 1;
  load(location.pathname + location.search, "auto");
}
