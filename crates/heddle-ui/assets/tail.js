// @ts-check
/** Events line by line: those that come in from now on, and those further back. Rows and words are templates of the page. */
import { ask, base } from "./swap.js";

/** Rows that are kept; the oldest that were seen live go first. */
const ROWS_MAX = 500;

/** Rows that a search adds before it stops by itself. */
const FOUND_MAX = 5000;

/** @type {AbortController | undefined} */
let reading;
/** @type {"live" | "search" | ""} */
let mode = "";
let paused = false;
let missed = 0;

const bar = () => /** @type {HTMLElement | null} */ (document.querySelector("[data-streams]"));

export function start() {
  document.addEventListener("heddle:placed", () => { if (reading && !bar()?.hasAttribute("data-kept")) stop(); });
  document.addEventListener("visibilitychange", () => {
    if (mode !== "live" || !bar()) return;
    if (document.hidden) reading?.abort();
    else read("live", paused);
  });
}

/** Takes a click on what belongs here. @param {Element} target @returns {boolean} */
export function take(target) {
  const button = /** @type {HTMLElement | null} */ (target.closest("[data-stream]"));
  switch (button?.dataset.stream) {
    case "live": read("live"); return true;
    case "search": read("search"); return true;
    case "pause": pause(!paused); return true;
    case "stop": stop(); return true;
    default: return false;
  }
}

/** @param {boolean} on */
function pause(on) {
  paused = on;
  missed = 0;
  const button = bar()?.querySelector("[data-stream=pause]");
  if (button) button.textContent = (on ? button.getAttribute("data-on") : button.getAttribute("data-off")) ?? "";
}

function stop() {
  reading?.abort();
  reading = undefined;
  mode = "";
  buttons();
}

/** Which of them can be pressed. */
function buttons() {
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (bar()?.querySelectorAll("[data-stream]") ?? [])) {
    const which = button.dataset.stream;
    button.hidden = mode === "" ? which === "stop" || which === "pause" : which === mode || which === "live" || which === "search" || (which === "pause" && mode !== "live");
  }
}

/** @param {"live" | "search"} wanted @param {boolean} [rests] whether what comes in is only counted, as before */
async function read(wanted, rests = false) {
  const place = bar();
  if (!place) return;
  reading?.abort();
  const here = new AbortController();
  reading = here;
  mode = wanted;
  place.setAttribute("data-kept", "");
  pause(rests);
  buttons();
  const query = new URLSearchParams(wanted === "live" ? { watch: "1" } : { before: place.dataset.before ?? "" });
  query.set("q", place.dataset.q ?? "");
  query.set("ask", `page-${wanted}`);
  try {
    const response = await ask(`${base}/heddle/v1/events?${query}`, { headers: { Accept: "application/jsonl" }, signal: here.signal });
    if (!response.ok || !response.body) return tell((await response.json()).message ?? "");
    let rest = "";
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return tell(words("lost", {}));
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      const heard = lines.filter(Boolean).map((line) => JSON.parse(line));
      if (hear(heard, wanted)) return;
    }
  } catch {
    if (!here.signal.aborted) tell(words("lost", {}));
  } finally {
    if (reading === here && !here.signal.aborted) stop();
  }
}

/** Whether it is over. @param {any[]} lines @param {"live" | "search"} from */
function hear(lines, from) {
  for (const line of lines) {
    if (line.item) add(line.item, from);
    if (line.rate) tell(words("rate", { ...line.rate, missed }));
    if (!line.lookedAt) continue;
    const { to, from: since, of } = line.lookedAt;
    bar()?.setAttribute("data-before", String(line.next ?? since));
    if (line.error) tell(line.error);
    else tell(words(line.end ? "end" : "looked", { looked: to - since, of }));
    if (line.end) return true;
  }
  if (from === "live" || (document.querySelector("[data-rows]")?.childElementCount ?? 0) < FOUND_MAX) return false;
  reading?.abort();
  stop();
  tell(words("full", { found: FOUND_MAX }));
  return true;
}

/** @param {any} item @param {"live" | "search"} from */
function add(item, from) {
  if (paused) {
    missed += 1;
    return;
  }
  const rows = document.querySelector("[data-rows]");
  const template = /** @type {HTMLTemplateElement | null} */ (document.querySelector("template[data-row-of]"));
  const row = /** @type {HTMLElement | null | undefined} */ (template?.content.firstElementChild?.cloneNode(true));
  if (!rows || !row) return;
  row.dataset.offset = item.offset;
  for (const slot of /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll("[data-slot]"))) slot.textContent = String(item[slot.dataset.slot ?? ""] ?? "");
  const accepted = row.querySelector("time");
  if (accepted) accepted.dateTime = item.acceptedAt;
  const link = row.querySelector("a");
  if (link) link.href = `${base}/ui/events/${item.offset}`;
  const states = row.querySelector("[data-states]");
  for (const [state, count] of Object.entries(item.states ?? {})) {
    const mark = template?.content.querySelector(`[data-mark="${CSS.escape(state)}"]`);
    if (mark) states?.append(...[...mark.childNodes].map((node) => node.cloneNode(true)));
    states?.append(` ${count} ${state} `);
  }
  rows.closest("section")?.removeAttribute("hidden");
  if (from === "live") rows.prepend(row);
  else rows.append(row);
  while (from === "live" && rows.childElementCount > ROWS_MAX) rows.lastElementChild?.remove();
}

/** A sentence of the page with numbers in it. @param {string} which @param {Record<string, number>} values */
function words(which, values) {
  const text = bar()?.getAttribute(`data-say-${which}`) ?? "";
  return text.replace(/\{(\w+)\}/g, (_, name) => Number(values[name] ?? 0).toLocaleString("en"));
}

/** @param {string} text */
function tell(text) {
  const place = bar()?.querySelector("[data-told]");
  if (place) place.textContent = text;
}
