// @ts-check
/** Says that the session will end before it does, and offers to stay. To ask how long it lasts is no use of it. */
import { ask, base, logIn, session } from "./swap.js";

/** Between two questions: usually, and while the end is near. */
const ASK_MS = 300_000;
const NEAR_MS = 60_000;
/** So long before the end it is told. */
const TOLD_MS = 180_000;
/** @type {number | undefined} */
let timer;
let asked = Date.now();

export function start() {
  const place = document.getElementById("ends");
  if (!place || !session()) return;
  place.querySelector("button")?.addEventListener("click", async () => {
    // Any question is a use.
    await ask(`${base}/version`).catch(() => {});
    look(place);
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && Date.now() - asked > ASK_MS) look(place);
  });
  later(place, ASK_MS);
}

/** @param {HTMLElement} place @param {number} pause */
function later(place, pause) {
  clearTimeout(timer);
  timer = window.setTimeout(() => look(place), pause);
}

/** @param {HTMLElement} place */
async function look(place) {
  if (document.hidden) return later(place, ASK_MS);
  asked = Date.now();
  const response = await ask(`${base}/heddle/v1/session`).catch(() => undefined);
  if (response?.status === 401) return logIn();
  const { idleUntil, endsAt } = response?.ok ? await response.json() : {};
  // By the clock of the server: this one may be wrong.
  const now = Date.parse(response?.headers.get("Date") ?? "") || Date.now();
  const left = idleUntil ? Date.parse(idleUntil) - now : Infinity;
  place.hidden = left > TOLD_MS;
  place.querySelector("strong")?.replaceChildren(`${Math.max(1, Math.round(left / 60_000))} min`);
  place.querySelector("button")?.toggleAttribute("hidden", idleUntil === endsAt);
  later(place, place.hidden ? Math.max(NEAR_MS, Math.min(ASK_MS, left - TOLD_MS)) : NEAR_MS);
}
