// @ts-check
/**
 * Forms that do more than lead to a page: those that are tried while somebody types, and those that change something. What
 * they show is made by the server; what they send is what the command beside them sends.
 */
import { ask, base, load, logIn, renew, say } from "./swap.js";

const PAUSE_MS = 150;
const me = Math.random().toString(36).slice(2);
/** When each form was first seen with its time of the server. @type {WeakMap<Element, {now: string, at: number}>} */
const seen = new WeakMap();
/** Forms that were tried without being asked to. @type {WeakSet<Element>} */
const begun = new WeakSet();
/** @type {AbortController | undefined} */
let asked;
/** @type {number | undefined} */
let soon;

export function start() {
  document.addEventListener("submit", submit, true);
  document.addEventListener("input", ({ target }) => {
    const form = /** @type {HTMLElement} */ (target).closest("form[data-try]");
    if (form instanceof HTMLFormElement && form.dataset.on !== "submit") later(form, PAUSE_MS);
  });
  document.addEventListener("click", click, true);
  document.addEventListener("heddle:placed", placed);
  placed();
}

function placed() {
  for (const form of document.querySelectorAll("[data-scripted]")) form.removeAttribute("hidden");
  for (const field of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-now]"))) {
    const now = field.dataset.now ?? "";
    if (seen.get(field)?.now !== now) seen.set(field, { now, at: performance.now() });
  }
  const form = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-try]:not([data-on])"));
  if (!form) return asked?.abort();
  if (into(form)?.hasAttribute("data-settled") || begun.has(form)) return;
  begun.add(form);
  run(form, false);
}

/** @param {HTMLFormElement} form */
const into = (form) => document.getElementById(form.dataset.into ?? "tried");

/** @param {HTMLFormElement} form @param {number} wait */
function later(form, wait) {
  clearTimeout(soon);
  soon = window.setTimeout(() => run(form, true), wait);
}

/** Asks for what comes of a form; the newest answer wins. @param {HTMLFormElement} form @param {boolean} typed @param {HTMLElement | null} [by] */
async function run(form, typed, by) {
  clearTimeout(soon);
  asked?.abort();
  const mine = new AbortController();
  asked = mine;
  /** @type {Record<string, string>} */
  const values = {};
  for (const [key, value] of new FormData(form)) values[key] = String(value);
  if (by instanceof HTMLButtonElement && by.name) values[by.name] = by.value;
  if (form.dataset.sample) values.sample = form.dataset.sample;
  if (typed) history.replaceState(null, "", `${location.pathname}?${new URLSearchParams(values)}`);
  into(form)?.setAttribute("aria-busy", "true");
  try {
    values.ask = `try-${me}`;
    // What is too long for an address goes as a body.
    const body = form.method === "post" ? JSON.stringify(values) : undefined;
    const response = await ask(`${form.dataset.try}${body ? "" : "?" + new URLSearchParams(values)}`, { method: form.method, body, headers: { "X-Heddle-Piece": "1", "Content-Type": "application/json" }, signal: mine.signal });
    if (response.status === 401) return logIn();
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: "" };
      if (done || mine.signal.aborted) return;
      const pieces = (rest + value).split("\0");
      rest = pieces.pop() ?? "";
      const place = into(form);
      const newest = pieces.pop();
      if (place && newest) renew(place, newest);
    }
  } catch {
    if (!mine.signal.aborted) say("The server does not answer.");
  }
}

/** What is clicked in an answer is tried at once. @param {MouseEvent} event */
function click(event) {
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("a[data-filters], a[data-sample]"));
  const form = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-try]"));
  const text = form?.elements.namedItem("filters");
  if (!link || !form || !(text instanceof HTMLTextAreaElement)) return;
  event.preventDefault();
  event.stopPropagation();
  if (link.dataset.filters !== undefined) text.value = link.dataset.filters;
  if (link.dataset.sample !== undefined) form.dataset.sample = link.dataset.sample;
  if (form.dataset.on === "submit") text.focus();
  else run(form, true);
}

/** @param {SubmitEvent} event */
async function submit(event) {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (form.dataset.try !== undefined) {
    event.preventDefault();
    return void run(form, form.dataset.on !== "submit", event.submitter);
  }
  if (form.dataset.send === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  const buttons = /** @type {NodeListOf<HTMLButtonElement>} */ (form.querySelectorAll("button"));
  buttons.forEach((button) => { button.disabled = true; });
  try {
    await send(form);
  } catch {
    fault(form, "The server does not answer. Whether it was done is not known: look again before you repeat it.");
  } finally {
    buttons.forEach((button) => { button.disabled = false; });
  }
}

/** @param {HTMLFormElement} form */
async function send(form) {
  fault(form, "");
  const response = await ask(base + form.dataset.path, {
    method: form.dataset.send,
    headers: { "Content-Type": form.dataset.kind ?? "", Accept: "application/json" },
    body: body(form),
  });
  if (response.status === 401) return logIn();
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    const changed = response.status === 409 && form.dataset.send === "PATCH";
    const message = answer.message ?? `The server answered ${response.status}.`;
    return fault(form, changed ? `Somebody changed it since this page was made, and nothing was done. Load the page again. (${message})` : message);
  }
  const then = (form.dataset.then ?? "").replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(answer[name] ?? ""));
  await load(then, "go");
}

/** The body, with what was filled in where it belongs. @param {HTMLFormElement} form */
function body(form) {
  const value = JSON.parse(form.dataset.body ?? "{}");
  /** JSON that was typed goes out as it was typed: reading it would round its numbers. @type {string[]} */
  const typed = [];
  for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[data-pointer]"))) {
    if (!field.value.trim()) continue;
    let text = field.value;
    if (field.dataset.as === "from-now") text = fromNow(field, Number(text));
    if (field.dataset.as === "json" && isJson(text)) text = `\0${typed.push(text) - 1}\0`;
    const path = (field.dataset.pointer ?? "").slice(1).split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = path.pop() ?? "";
    path.reduce((at, part) => (at[part] ??= {}), value)[last] = text;
  }
  return JSON.stringify(value).replace(/"\\u0000(\d+)\\u0000"/g, (_, number) => typed[Number(number)]);
}

/** By the clock of the server: this one may be wrong. @param {HTMLElement} field @param {number} seconds */
function fromNow(field, seconds) {
  const known = seen.get(field);
  const passed = known ? performance.now() - known.at : 0;
  return new Date(Date.parse(known?.now ?? "") + passed + seconds * 1000).toISOString();
}

/** @param {string} text */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** @param {HTMLFormElement} form @param {string} text */
function fault(form, text) {
  const place = /** @type {HTMLElement | null} */ (form.querySelector(".fault"));
  if (!place) return;
  place.textContent = text;
  place.hidden = !text;
}
