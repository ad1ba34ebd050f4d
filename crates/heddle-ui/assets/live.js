// @ts-check
/**
 * What changes while somebody looks: one stream for all tabs of a browser. The tab that holds the lock reads it and tells the
 * others; a hidden tab reads nothing.
 */
import { UNATTENDED, ask, base, load, main, say, session } from "./swap.js";

/** @typedef {{numbers: Record<string, number[]>, verdicts: Record<string, string>, state: string, until: number, at: number}} Known */

const SILENCE_MS = 25_000;
const PAUSE_MS_MAX = 15_000;
/** Between two looks at a page because something changed. */
const AGAIN_MS = 5_000;
const channel = new BroadcastChannel(`heddle${base}`);
const me = Math.random().toString(36).slice(2);

/** @type {Known} */
const known = { numbers: {}, verdicts: {}, state: "connecting", until: 0, at: 0 };
let lastId = "";
let leads = false;
let hasVerdicts = false;

export function start() {
  if (!main() || document.body.className !== "app") return;
  channel.onmessage = ({ data }) => hear(data);
  document.addEventListener("visibilitychange", attend);
  document.addEventListener("heddle:placed", () => show());
  // Somebody logged in again in another tab.
  window.addEventListener("storage", () => { if (known.state === "off" && session()) attend(); });
  setInterval(tick, 1000);
  attend();
}

/** @type {AbortController | undefined} */
let attending;

/** A tab that is seen wants the stream; one that is not lets it go. */
function attend() {
  attending?.abort();
  attending = undefined;
  if (document.hidden) return become("paused");
  const here = new AbortController();
  attending = here;
  become("connecting");
  if (stale) again();
  channel.postMessage({ kind: "hello", from: me });
  const lead = async () => {
    leads = true;
    try {
      await readOn(here.signal);
    } finally {
      leads = false;
    }
  };
  if (!navigator.locks) return void lead();
  navigator.locks.request(`heddle-stream${base}`, { signal: here.signal }, lead).catch(() => {});
}

/** Reads until nobody looks any more. @param {AbortSignal} signal */
async function readOn(signal) {
  for (let tries = 0; !signal.aborted; tries += 1) {
    try {
      await read(signal, () => { tries = 0; });
    } catch (error) {
      if (signal.aborted) return;
      if (error === "refused") return become("off");
    }
    const pause = Math.min(1000 * 2 ** tries, PAUSE_MS_MAX);
    become("reconnecting", Date.now() + pause);
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, pause);
      signal.addEventListener("abort", () => { clearTimeout(timer); resolve(undefined); }, { once: true });
    });
  }
}

/** @param {AbortSignal} signal @param {() => void} alive */
async function read(signal, alive) {
  const stop = new AbortController();
  signal.addEventListener("abort", () => stop.abort(), { once: true });
  let quiet = setTimeout(() => stop.abort(), SILENCE_MS);
  try {
    /** @type {Record<string, string>} */
    const headers = { ...UNATTENDED, Accept: "text/event-stream" };
    if (lastId) headers["Last-Event-ID"] = lastId;
    const response = await ask(`${base}/heddle/v1/stream?topics=verdict,pulse`, { headers, signal: stop.signal });
    if (response.status === 401 || response.status === 403) throw "refused";
    if (!response.ok || !response.body) throw response.status;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(quiet);
      quiet = setTimeout(() => stop.abort(), SILENCE_MS);
      if (known.state !== "live") become("live");
      alive();
      rest += value;
      const blocks = rest.split("\n\n");
      rest = blocks.pop() ?? "";
      const batch = blocks.map(parse).filter((event) => event !== null);
      if (batch.length) tell({ kind: "batch", batch });
    }
  } finally {
    clearTimeout(quiet);
  }
}

/** @param {string} block */
function parse(block) {
  let name = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
    else if (line.startsWith("id: ")) lastId = line.slice(4);
  }
  return name ? { name, data: JSON.parse(data) } : null;
}

/** To all tabs, this one too. @param {any} message */
function tell(message) {
  channel.postMessage(message);
  hear(message);
}

/** @param {any} message */
function hear(message) {
  if (message.kind === "hello" && leads) channel.postMessage({ kind: "known", to: message.from, known, lastId });
  if (message.kind === "known" && message.to === me) {
    const before = JSON.stringify(known.verdicts);
    Object.assign(known, message.known);
    lastId = message.lastId;
    if (hasVerdicts && before !== JSON.stringify(known.verdicts)) again();
    hasVerdicts = true;
    show();
  }
  if (message.kind === "state") {
    if (document.hidden) return;
    known.state = message.state;
    known.until = message.until;
    show();
  }
  if (message.kind === "batch") take(message.batch);
}

/** @param {string} state @param {number} [until] */
function become(state, until = 0) {
  known.state = state;
  known.until = until;
  if (leads && state !== "paused") channel.postMessage({ kind: "state", state, until });
  show();
}

/** @param {{name: string, data: any}[]} batch */
function take(batch) {
  known.at = Date.now();
  let changed = false;
  let moved = false;
  const letters = main().dataset.page === "dead-letters";
  const shown = [...document.querySelectorAll("[data-consumer]")].map((place) => place.getAttribute("data-consumer"));
  for (const { name, data } of batch) {
    if (name === "verdict") {
      const says = `${data.verdict} ${data.code} ${data.object ?? ""} ${Object.keys(data.planes ?? {})}`;
      if (known.verdicts[data.scope] !== says) {
        changed ||= hasVerdicts || isNews(data);
        if (data.scope === "mesh" && hasVerdicts) say(`The mesh is ${data.verdict}. ${data.message}`);
        known.verdicts[data.scope] = says;
      }
    } else if (name === "pulse") {
      if (data.full) known.numbers = {};
      for (const [who, numbers] of Object.entries({ ...data.n, ...data.sources })) {
        if (letters && numbers?.[2] > 0) moved = true;
        moved ||= shown.includes(who) && String(known.numbers[who]?.slice(0, 4)) !== String(numbers?.slice(0, 4));
        if (numbers) known.numbers[who] = numbers;
        else delete known.numbers[who];
      }
    }
  }
  hasVerdicts ||= batch.some(({ name }) => name === "verdict");
  if (changed) again();
  if (moved) document.dispatchEvent(new Event("heddle:moved"));
  show();
}

/** Whether what the page shows of a scope is no longer so. @param {any} verdict */
function isNews(verdict) {
  const shown = /** @type {HTMLElement | null} */ (document.querySelector("#verdict[data-scope]"));
  return shown?.dataset.scope === verdict.scope && shown?.dataset.verdict !== verdict.verdict;
}

/** @type {number | undefined} */
let soon;
let looked = 0;
/** Whether something changed while nobody saw it. */
let stale = false;

/** Fetches what is shown once more, a little later, however many changes there are; what nobody sees, when they do. */
function again() {
  stale ||= document.hidden;
  if (document.hidden) return;
  soon ??= window.setTimeout(() => {
    soon = undefined;
    if (document.hidden) return again();
    stale = false;
    looked = Date.now();
    load(location.pathname + location.search, "auto");
  }, Math.max(250, looked + AGAIN_MS - Date.now()));
}

const WORDS = { live: "live", paused: "paused", connecting: "connecting", off: "not live: log in again" };

function show() {
  const live = document.getElementById("live");
  const old = known.state !== "live";
  document.documentElement.toggleAttribute("data-stale", old);
  if (live) {
    live.dataset.state = known.state;
    const left = Math.max(1, Math.ceil((known.until - Date.now()) / 1000));
    let text = known.state === "reconnecting" ? `reconnecting ${left} s` : WORDS[/** @type {keyof WORDS} */ (known.state)] ?? "";
    if (old && known.at) text += `, numbers ${span((Date.now() - known.at) / 1000)} old`;
    const said = live.querySelector(".said");
    if (said && said.textContent !== text) said.textContent = text;
  }
  if (!known.at) return;
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-number]"))) {
    const text = said(place.dataset.of ?? "", known.numbers[place.dataset.number ?? ""]);
    if (place.textContent !== text) place.textContent = text;
    place.setAttribute("data-filled", "");
  }
}

function tick() {
  if (document.hidden) return;
  if (known.state !== "live") show();
  for (const time of /** @type {NodeListOf<HTMLTimeElement>} */ (document.querySelectorAll("time[data-ago]"))) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    const text = seconds < 1 ? "just now" : `${span(seconds)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
}

const rates = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat();
const shares = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });

/** The numbers of somebody in a few words. @param {string} hop @param {number[] | undefined} numbers */
function said(hop, numbers) {
  if (!numbers) return "idle";
  if (hop === "source") {
    const [accepted, refused] = numbers;
    return refused > 0 ? `${rates.format(accepted)}/s, ${rates.format(refused)}/s refused` : `${rates.format(accepted)}/s`;
  }
  const [matched, delivered, failed, pending, oldest] = numbers;
  if (hop === "delivery") {
    if (failed > 0) return `${shares.format(failed / (failed + delivered))} fail`;
    if (pending > 0 && oldest >= 1) return `${whole.format(pending)} wait, ${span(oldest)}`;
    return `${rates.format(delivered)}/s`;
  }
  return `${rates.format(matched)}/s`;
}

/** @param {number} seconds */
function span(seconds) {
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}
