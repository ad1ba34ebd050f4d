// @ts-check
/** Forms that change something: what is filled in becomes one JSON body, and what the server says stands beside the button. */
import { ask, base, load, logIn } from "./swap.js";

/**
 * Puts JSON text where a pointer says.
 * @param {any} tree objects of texts that are JSON already
 * @param {string} pointer
 * @param {string} text
 */
function put(tree, pointer, text) {
  const steps = pointer.split("/").slice(1).map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = steps.pop();
  if (last === undefined) return;
  let at = tree;
  for (const step of steps) {
    if (!(at.get(step) instanceof Map)) at.set(step, new Map());
    at = at.get(step);
  }
  at.set(last, text);
}

/** @param {any} tree @returns {string} */
function write(tree) {
  if (!(tree instanceof Map)) return tree;
  return `{${[...tree].map(([name, value]) => `${JSON.stringify(name)}:${write(value)}`).join(",")}}`;
}

/**
 * The body that a form stands for. Numbers are written as they were typed: a float would round them.
 * @param {HTMLFormElement} form
 */
export function body(form) {
  const tree = new Map();
  for (const field of form.querySelectorAll("[data-at]")) {
    const { value } = /** @type {HTMLInputElement} */ (field);
    const { at, value: how } = /** @type {HTMLElement} */ (field).dataset;
    if (value === "" || !at) continue;
    if (how === "json") JSON.parse(value);
    put(tree, at, how === "json" ? value.trim() : JSON.stringify(value));
  }
  return write(tree);
}

/** `{id}` in an address is what the field of that name has. @param {HTMLFormElement} form @param {string} address */
function filled(form, address) {
  return address.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const field = form.elements.namedItem(name);
    return encodeURIComponent(field instanceof HTMLInputElement ? field.value : "");
  });
}

/** @param {HTMLFormElement} form @param {string} text @param {boolean} good */
function tell(form, text, good) {
  const place = form.querySelector("output");
  if (!place) return;
  place.textContent = text;
  // A page that looks again leaves it as it is.
  place.dataset.filled = "";
  place.dataset.verdict = good ? "healthy" : "unhealthy";
}

/** What a refusal says, whoever refused. @param {Response} response */
async function refusal(response) {
  const said = await response.json().catch(() => ({}));
  return said.message ?? said.description ?? said.error ?? `The server answered ${response.status}.`;
}

/** @param {HTMLFormElement} form */
export async function send(form) {
  let text;
  try {
    text = body(form);
  } catch (error) {
    return tell(form, `A field is no JSON: ${/** @type {Error} */ (error).message}`, false);
  }
  const button = form.querySelector("button[type=submit]");
  button?.setAttribute("disabled", "");
  tell(form, "Asking…", true);
  try {
    const kind = form.dataset.kind ?? "application/json";
    const method = form.dataset.change ?? "POST";
    const options = method === "DELETE" ? { method } : { method, headers: { "Content-Type": kind }, body: text };
    const response = await ask(base + filled(form, form.dataset.to ?? ""), options);
    if (response.status === 401) return logIn();
    if (!response.ok) return tell(form, await refusal(response), false);
    tell(form, form.dataset.done ?? "Done.", true);
    if (form.dataset.then) await load(base + filled(form, form.dataset.then), "go");
  } catch {
    tell(form, "The server does not answer. Nobody knows whether it was done: look before you ask again.", false);
  } finally {
    button?.removeAttribute("disabled");
  }
}
