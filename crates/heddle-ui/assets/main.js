// @ts-check
/** Begins: the way in, links and forms without a new page, the theme, copying. */
import { ask, base, keep, load, logIn, main, say, session } from "./swap.js";
import * as acts from "./acts.js";
import * as forms from "./forms.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as stay from "./stay.js";
import * as tail from "./tail.js";
import * as trying from "./try.js";

const root = document.documentElement;

/** @param {string} id */
const byId = (id) => document.getElementById(id);

/** Exchanges a token or a code for a session. @param {object} proof */
async function openSession(proof) {
  const response = await fetch(`${base}/heddle/v1/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(proof),
    credentials: "same-origin",
  });
  const body = await response.json().catch(() => ({}));
  if (response.ok) keep(body);
  return { ok: response.ok, message: body.message ?? `The server answered ${response.status}.` };
}

/** A code in the address is good once: it is taken out before it is used. */
async function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return false;
  history.replaceState(null, "", location.pathname + location.search);
  const opened = await openSession({ code });
  if (opened.ok) location.replace(afterLogin());
  else fault(opened.message);
  return true;
}

function afterLogin() {
  const form = /** @type {HTMLFormElement | null} */ (byId("login"));
  const next = form?.elements.namedItem("next");
  return next instanceof HTMLInputElement ? next.value : location.pathname + location.search;
}

/** @param {string} text */
function fault(text) {
  const place = byId("login-fault");
  if (!place) return say(text);
  place.textContent = text;
  place.hidden = false;
}

function login() {
  const form = /** @type {HTMLFormElement | null} */ (byId("login"));
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const token = /** @type {HTMLInputElement} */ (byId("token"));
    const opened = await openSession({ token: token.value.trim() });
    token.value = "";
    if (opened.ok) return location.replace(afterLogin());
    fault(opened.message);
    token.focus();
  });
}

/** Whether an address is a page of this server. @param {URL} url */
const isPage = (url) => url.origin === location.origin && url.pathname.startsWith(`${base}/ui/`);

/** @param {MouseEvent} event */
async function click(event) {
  const target = /** @type {Element} */ (event.target);
  const copy = /** @type {HTMLElement | null} */ (target.closest("[data-copy]"));
  if (copy) {
    await copyText(copy, copy.dataset.copy ?? "");
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    return;
  }
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  if (acts.take(target) || tail.take(target)) return event.preventDefault();
  const link = target.closest("a[href]:not([target])");
  if (!link) return;
  // A link of a drawing has its address in an object.
  const url = new URL(link.getAttribute("href") ?? "", location.href);
  if (link.hasAttribute("data-file") || link.hasAttribute("data-plain")) {
    event.preventDefault();
    return void handOver(url, link.getAttribute("download"));
  }
  if (url.hash && url.pathname === location.pathname) return;
  if (!isPage(url) || link.hasAttribute("download")) return;
  event.preventDefault();
  load(url.pathname + url.search, "go");
}

/** Without TLS, and not on this machine, a browser has no clipboard to write to. @param {Element} beside @param {string} text */
async function copyText(beside, text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  beside.after(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** What only both halves of a session get: as a file, or as text. @param {URL} url @param {string | null} name */
async function handOver(url, name) {
  const response = await ask(url.pathname + url.search).catch(() => undefined);
  if (!response) return say("The server does not answer.");
  if (response.status === 401) return logIn();
  if (name && response.ok) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = name;
    link.click();
    return setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
  const dialog = document.createElement("dialog");
  const text = document.createElement("pre");
  const close = document.createElement("button");
  text.tabIndex = 0;
  text.textContent = await response.text();
  close.textContent = "Close";
  close.onclick = () => dialog.close();
  dialog.className = "answer";
  dialog.append(text, close);
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {SubmitEvent} event */
async function submit(event) {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (form.hasAttribute("data-logout")) {
    event.preventDefault();
    await ask(`${base}/heddle/v1/session`, { method: "DELETE" }).catch(() => {});
    keep(null);
    return location.assign(`${base}/ui/login`);
  }
  if (form.hasAttribute("data-change")) {
    event.preventDefault();
    return forms.send(form);
  }
  const url = new URL(form.action);
  if (form.method !== "get" || !isPage(url) || event.defaultPrevented) return;
  event.preventDefault();
  const wanted = new URLSearchParams();
  for (const [key, value] of new FormData(form, event.submitter)) if (typeof value === "string" && value) wanted.append(key, value);
  const address = `${url.pathname}?${wanted}`;
  if (form.hasAttribute("data-dialog")) acts.open(address);
  else load(address, "go");
}

function theme() {
  const button = byId("theme");
  button?.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    document.cookie = `heddle-theme=${root.dataset.theme}; path=${base}/ui; max-age=31536000; samesite=strict`;
  });
}

/** What needs a script is shown when there is one. */
function reveal() {
  for (const element of document.querySelectorAll("#theme, [data-copy], form[data-change]")) element.removeAttribute("hidden");
  const half = session();
  const user = byId("user");
  if (half?.user && user?.textContent === "…") {
    user.textContent = half.user;
    const role = byId("role");
    if (role) role.textContent = half.role ?? "";
    for (const link of document.querySelectorAll("[data-needs]")) link.toggleAttribute("hidden", link.getAttribute("data-needs") !== half.role);
  }
}

async function begin() {
  trying.start();
  document.addEventListener("click", click);
  document.addEventListener("submit", submit);
  document.addEventListener("heddle:placed", reveal);
  window.addEventListener("popstate", () => load(location.pathname + location.search, "back"));
  theme();
  login();
  reveal();
  if (await takeCode()) return;
  if (document.body.className !== "app") return;
  keys.start();
  acts.start();
  tail.start();
  if (main().hasAttribute("data-load")) {
    if (!session()) return logIn();
    await load(location.pathname + location.search, "back");
  }
  live.start();
  stay.start();
}

begin();
