// Page after page, as somebody goes through them: each says what it is, and nobody complains.
// @ts-check
import assert from "node:assert/strict";
import { join } from "node:path";
import { artefacts } from "./harness.mjs";
import { openTab, serious, sideways } from "./look.mjs";

/** The name that a page gives itself, and its address. @typedef {readonly [string, string]} Page */

/** Pages that are there whatever is declared. @type {Page[]} */
export const STANDING = [
  ["mesh", "/ui/"],
  ["mesh", "/ui/?view=table"],
  ["applications", "/ui/applications"],
  ["types", "/ui/types"],
  ["delays", "/ui/delays"],
  ["publish", "/ui/publish"],
  ["subscribe", "/ui/subscribe"],
  ["events", "/ui/events"],
  ["dead-letters", "/ui/dead-letters"],
  ["catalog", "/ui/catalog"],
  ["instances", "/ui/instances"],
  ["registries", "/ui/registries"],
  ["alerts", "/ui/alerts"],
  ["checks", "/ui/checks"],
  ["audit", "/ui/audit"],
  ["help", "/ui/help"],
  ["help", "/ui/help/SubscriberFailing"],
  ["login", "/ui/login"],
];

/**
 * Goes through pages in one tab: none scrolls sideways, none has a serious fault, and the browser has nothing to say.
 * @param {import("playwright-core").Browser} chromium
 * @param {import("./harness.mjs").Heddle} heddle
 * @param {readonly Page[]} pages
 * @param {{state: string, width: number, colorScheme: "light" | "dark"}} how
 */
export async function walk(chromium, heddle, pages, { state, width, colorScheme }) {
  const { page, faults, close } = await openTab(chromium, heddle, { width, height: width < 500 ? 740 : 900, colorScheme });
  /** @type {unknown[]} */
  const found = [];
  for (const [number, [name, path]] of pages.entries()) {
    await page.goto(heddle.control + path);
    await page.waitForSelector(`main[data-page="${name}"]`);
    if (name !== "login") await page.waitForSelector('#live[data-state="live"]');
    assert.equal(await sideways(page), 0, `${path} scrolls sideways at ${width}`);
    const file = `${state}-${String(number).padStart(2, "0")}-${name}-${colorScheme}-${width}.png`;
    await page.screenshot({ path: join(artefacts, file), fullPage: true });
    for (const fault of await serious(page)) found.push([path, fault]);
  }
  assert.deepEqual(found, []);
  assert.deepEqual(faults, []);
  await close();
}
