// @ts-check
/** The keyboard: find, go, walk through rows, select, help, back. */
import { load } from "./swap.js";

let going = 0;
/** @type {HTMLInputElement | null} */
let selected = null;

export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const writes = target.matches("input:not([type=checkbox]), textarea, select") || target.isContentEditable;
    if (event.key === "Escape") return leave(target, writes);
    if (writes || document.querySelector("dialog[open]")) return;
    if (press(event)) event.preventDefault();
  });
}

/** @param {KeyboardEvent} event */
function press(event) {
  if (Date.now() - going < 1500) {
    going = 0;
    const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector(`nav.pages a[data-key="${CSS.escape(event.key)}"]:not([hidden])`));
    if (link) load(link.href, "go");
    return !!link;
  }
  switch (event.key) {
    case "/": focus(document.getElementById("find")); return true;
    case "g": going = Date.now(); return true;
    case "j": walk(1); return true;
    case "k": walk(-1); return true;
    case "x":
    case "X": select(event.shiftKey); return true;
    case "?": /** @type {HTMLDialogElement | null} */ (document.getElementById("keys"))?.showModal(); return true;
    default: return false;
  }
}

/** @param {HTMLElement | null} element */
function focus(element) {
  element?.focus();
  if (element instanceof HTMLInputElement) element.select();
}

/** Rows that are seen. */
function rows() {
  const all = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-row]"));
  return [...all].filter((row) => row.getClientRects().length > 0);
}

/** @param {number} step */
function walk(step) {
  const all = rows();
  const here = all.findIndex((row) => row.contains(document.activeElement));
  const row = all[here < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(here + step, 0), all.length - 1)];
  if (!row) return;
  const link = /** @type {HTMLElement | null} */ (row.querySelector("a[data-open]") ?? row.querySelector("a[href]") ?? row.querySelector("button, input"));
  if (!link) row.tabIndex = -1;
  (link ?? row).focus();
  row.scrollIntoView({ block: "nearest" });
}

/** @param {boolean} range */
function select(range) {
  const boxes = rows().map((row) => /** @type {HTMLInputElement | null} */ (row.querySelector("input[type=checkbox]")));
  const here = rows().findIndex((row) => row.contains(document.activeElement));
  const box = boxes[here];
  if (!box) return;
  const from = range && selected ? boxes.indexOf(selected) : here;
  const on = range && selected ? selected.checked : !box.checked;
  for (const other of boxes.slice(Math.min(from, here), Math.max(from, here) + 1)) {
    if (other && other.checked !== on) other.click();
  }
  selected = box;
}

/** @param {HTMLElement} target @param {boolean} writes */
function leave(target, writes) {
  if (document.querySelector("dialog[open]")) return;
  const menu = document.querySelector("details.who[open]");
  if (menu) menu.removeAttribute("open");
  else if (writes) target.blur();
  else if (history.length > 1) history.back();
}
