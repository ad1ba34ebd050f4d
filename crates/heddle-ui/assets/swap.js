// @ts-check
/**
 * Fetching pieces of pages and putting them in their place. Only here is markup written, and only markup of this server:
 * the policy of the page lets nobody else.
 */

const root = document.documentElement;
export const base = root.dataset.base ?? "";
const KEPT = "heddle.session";

/** @type {{createHTML(text: string): any}} */
const policy = /** @type {any} */ (window).trustedTypes?.createPolicy("heddle", { createHTML: (/** @type {string} */ text) => text })
  ?? { createHTML: (text) => text };

/** What logging in gave: the half of the session that no other origin can read. */
export function session() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "null");
  } catch {
    return null;
  }
}

/** @param {object | null} half */
export function keep(half) {
  if (half) localStorage.setItem(KEPT, JSON.stringify(half));
  else localStorage.removeItem(KEPT);
}

/**
 * A request to this server, with both halves of the session.
 * @param {string} path
 * @param {RequestInit} [options]
 */
export function ask(path, options = {}) {
  const headers = new Headers(options.headers);
  const half = session();
  if (half?.page) headers.set("X-Heddle-Session", half.page);
  return fetch(path, { ...options, headers, credentials: "same-origin", cache: "no-store" });
}

/** On what nobody asked for: the server does not take it for a use of the session. */
export const UNATTENDED = { "X-Heddle-Unattended": "1" };

export const main = () => /** @type {HTMLElement} */ (document.getElementById("main"));

/** The newest wish wins. */
let wish = 0;
/** @type {AbortController | undefined} */
let underWay;

/**
 * Shows the page at an address of this server.
 * @param {string} address
 * @param {"go" | "back" | "again" | "auto"} how a new page, one of the history, the same once more, or that without being asked
 */
export async function load(address, how) {
  // What somebody watches come in is not in the page.
  const same = how === "again" || how === "auto";
  if (same && (underWay || main().querySelector("[data-kept]"))) return;
  underWay?.abort();
  const mine = ++wish;
  const leaving = new AbortController();
  underWay = leaving;
  if (!same) main().setAttribute("aria-busy", "true");
  try {
    /** @type {Record<string, string>} */
    const headers = { "X-Heddle-Piece": "1", Accept: "text/html" };
    if (how === "auto") Object.assign(headers, UNATTENDED);
    const response = await ask(address, { headers, signal: leaving.signal });
    const text = await response.text();
    if (mine !== wish) return;
    if (response.status === 401) return logIn();
    if (!response.headers.get("Content-Type")?.startsWith("text/html")) return void location.assign(address);
    const to = new URL(response.url);
    if (how === "go") history.pushState(null, "", to.pathname + to.search);
    place(text, same);
  } catch (error) {
    if (leaving.signal.aborted || same) return;
    say("The server does not answer. What is shown may be old.");
  } finally {
    if (mine === wish) {
      underWay = undefined;
      main().removeAttribute("aria-busy");
    }
  }
}

/** To the way in, and back. */
export function logIn() {
  keep(null);
  const here = location.pathname.slice(base.length) + location.search;
  location.assign(`${base}/ui/login?next=${encodeURIComponent(base + here)}`);
}

/** @param {string} text */
export function say(text) {
  const announcer = document.getElementById("announcer");
  if (announcer) announcer.textContent = text;
}

/** @param {string} text markup of this server */
function parse(text) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(text);
  return template.content;
}

/** What is inside of the frame, of a piece of a page. @param {string} text markup of this server */
export const piece = (text) => parse(text).querySelector("main");

/**
 * @param {string} text markup of this server
 * @param {boolean} same whether it is the page that is shown already
 */
function place(text, same) {
  const content = parse(text);
  const title = content.querySelector("title");
  const wanted = content.querySelector("main");
  if (!wanted) return;
  if (title) document.title = title.textContent ?? "";
  if (same) {
    morph(main(), wanted);
  } else {
    main().replaceWith(wanted);
    window.scrollTo(0, 0);
    main().focus({ preventScroll: true });
  }
  for (const link of document.querySelectorAll("nav.pages a")) {
    const path = new URL(/** @type {HTMLAnchorElement} */ (link).href).pathname.slice(`${base}/ui/`.length);
    if (path === (main().dataset.section ?? "")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.dispatchEvent(new Event("heddle:placed"));
}

/** Puts a piece of this server in the place of what was shown there before. @param {Element} from @param {string} text */
export function renew(from, text) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(text);
  const wanted = template.content.firstElementChild;
  if (!wanted) return;
  for (const open of from.querySelectorAll("details[open] > summary")) {
    const same = [...wanted.querySelectorAll("summary")].find((summary) => summary.textContent === open.textContent);
    same?.parentElement?.setAttribute("open", "");
  }
  from.replaceWith(wanted);
  document.dispatchEvent(new Event("heddle:placed"));
}

/** What an element is known by, wherever it stands. @param {Node} node */
function key(node) {
  if (!(node instanceof Element)) return "";
  const data = /** @type {any} */ (node).dataset ?? {};
  const known = node.id || data.node || data.application || data.letter || data.group || data.operation || data.offset || data.consumer || data.plane || data.check;
  return known ? `${node.nodeName} ${known}` : "";
}

/**
 * Makes one element what another is, and leaves alone what is the same: focus, what somebody unfolded, numbers that run.
 * @param {Element} from
 * @param {Element} to
 */
export function morph(from, to) {
  // What somebody tried is theirs until they try something else.
  if (from.hasAttribute("data-settled")) return;
  const keeps = (/** @type {string} */ name) => ["open", "data-filled", "data-kept", "hidden"].includes(name);
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && !keeps(name)) from.removeAttribute(name);
  for (const { name, value } of [...to.attributes]) {
    if (!keeps(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  if (from.hasAttribute("data-filled") || from instanceof HTMLInputElement) return;
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const found = match(at, wanted);
    if (!found) {
      from.insertBefore(wanted, at);
      continue;
    }
    while (at && at !== found) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
    if (found instanceof Element) morph(found, /** @type {Element} */ (wanted));
    else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue;
    at = found.nextSibling;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** @param {ChildNode | null} at @param {Node} wanted @returns {ChildNode | null} */
function match(at, wanted) {
  const known = key(wanted);
  if (!known) return at && at.nodeName === wanted.nodeName && !key(at) ? at : null;
  for (let other = at; other; other = other.nextSibling) if (key(other) === known) return other;
  return null;
}
