// A page that is left open: what it asks by itself, what it keeps, what it says before the session ends.
// @ts-check
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Heddle, browser } from "./harness.mjs";
import { openTab } from "./look.mjs";

/** @type {Heddle} */ let heddle;
/** @type {import("playwright-core").Browser} */ let chromium;

before(async () => {
  heddle = await Heddle.start();
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
});

/** @typedef {import("playwright-core").Page} Page */

/** @param {Page} page */
async function logIn(page) {
  await page.goto(`${heddle.control}/ui/`);
  await page.fill("input[name=token]", heddle.token);
  await page.click("main button[type=submit]");
  await page.waitForSelector('main[data-page="mesh"] [data-verdict]');
  await page.waitForSelector('#live[data-state="live"]');
}

/** As if somebody had another tab before it. @param {Page} page @param {boolean} hidden */
const hide = (page, hidden) => page.evaluate((now) => {
  Object.defineProperty(document, "hidden", { configurable: true, value: now });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

/** What a tab that reads the stream tells the others. @param {Page} page @param {string} verdict */
const tell = (page, verdict) => page.evaluate((told) => {
  const data = { scope: "mesh", verdict: told, code: "Test", message: "" };
  new BroadcastChannel("heddle").postMessage({ kind: "batch", batch: [{ name: "verdict", data }] });
}, verdict);

test("a tab that was hidden while another was told the news shows them when it is seen", async () => {
  const { page: leading, close } = await openTab(chromium, heddle);
  await leading.goto(`${heddle.control}/ui/`);
  await leading.waitForSelector('#live[data-state="live"]');
  const other = await leading.context().newPage();
  await other.clock.install();
  await other.goto(`${heddle.control}/ui/types`);
  await other.waitForSelector('#live[data-state="live"]');
  await hide(other, true);
  await other.waitForSelector('#live[data-state="paused"]');
  await tell(leading, "unhealthy");
  // It has heard it, asks for nothing, and remembers.
  await other.waitForFunction(() => document.getElementById("announcer")?.textContent?.includes("unhealthy"));
  await other.clock.runFor(1_000);
  const again = other.waitForRequest((request) => request.headers()["x-heddle-piece"] === "1");
  await hide(other, false);
  const asked = await again;
  assert.equal(asked.headers()["x-heddle-unattended"], "1");
  await close();
});

test("what a page reads by itself says so, and what somebody opens does not", async () => {
  const { page, close } = await openTab(chromium, heddle);
  const stream = page.waitForRequest("**/heddle/v1/stream?*");
  await page.goto(`${heddle.control}/ui/`);
  assert.equal((await stream).headers()["x-heddle-unattended"], "1");
  const opened = page.waitForRequest("**/ui/events");
  await page.click('nav.pages a:has-text("Events")');
  assert.equal((await opened).headers()["x-heddle-unattended"], undefined);
  await close();
});

test("a tab whose session is over is live again when somebody logs in beside it", async () => {
  const context = await chromium.newContext();
  const first = await context.newPage();
  await logIn(first);
  const second = await context.newPage();
  await second.goto(`${heddle.control}/ui/help`);
  await second.waitForSelector('#live[data-state="live"]');
  await first.evaluate(() => /** @type {HTMLFormElement} */ (document.querySelector("form[data-logout]")).requestSubmit());
  await first.waitForSelector('main[data-page="login"]');
  await second.waitForSelector('#live[data-state="off"]');
  await logIn(first);
  await second.waitForSelector('#live[data-state="live"]');
  await context.close();
});

test("a paused tail that was hidden is paused when it is seen again", async () => {
  const { page, faults, close } = await openTab(chromium, heddle);
  await page.goto(`${heddle.control}/ui/events`);
  await page.click('[data-stream="live"]');
  await page.click('[data-stream="pause"]');
  await hide(page, true);
  const reading = page.waitForRequest("**/heddle/v1/events?watch=1*");
  await hide(page, false);
  await reading;
  assert.equal(await page.innerText('[data-stream="pause"]'), "Go on");
  assert.deepEqual(faults, []);
  await close();
});

test("a file that is refused is told, not saved", async () => {
  const { page, close } = await openTab(chromium, heddle);
  await page.route("**/heddle/v1/topology?all", (route) => route.fulfill({ status: 503, json: { message: "not now" } }));
  await page.goto(`${heddle.control}/ui/`);
  let saved = 0;
  page.on("download", () => { saved += 1; });
  await page.click('a[download="heddle-mesh.json"]');
  await page.waitForSelector("dialog.answer");
  assert.match(await page.innerText("dialog.answer"), /not now/);
  assert.equal(saved, 0);
  await close();
});

test("a command is copied where a browser has no clipboard for pages", async () => {
  const { page, faults, close } = await openTab(chromium, heddle);
  await page.addInitScript(() => {
    Object.defineProperty(navigator, "clipboard", { value: undefined });
    document.execCommand = (command) => { document.documentElement.dataset.copied = `${command} ${getSelection()}`; return true; };
  });
  await page.goto(`${heddle.control}/ui/`);
  const wanted = await page.locator("[data-copy]:visible").first().getAttribute("data-copy");
  await page.locator("[data-copy]:visible").first().click();
  await page.waitForSelector('[data-copy]:has-text("Copied")');
  assert.equal(await page.getAttribute("html", "data-copied"), `copy ${wanted}`);
  assert.deepEqual(faults, []);
  await close();
});

test("before a session ends the page says so, and somebody can stay", async () => {
  const context = await chromium.newContext();
  const page = await context.newPage();
  await page.clock.install();
  await logIn(page);
  let left = 2;
  await page.route("**/heddle/v1/session", (route) => {
    const now = Date.now();
    const at = (/** @type {number} */ minutes) => new Date(now + minutes * 60_000).toISOString();
    return route.fulfill({ headers: { Date: new Date(now).toUTCString() }, json: { user: "ada", idleUntil: at(left), endsAt: at(600) } });
  });
  assert.equal(await page.isVisible("#ends"), false);
  await page.clock.fastForward(301_000);
  await page.waitForSelector("#ends:not([hidden])");
  assert.match(await page.innerText("#ends"), /ends in 2 min/);
  left = 30;
  const use = page.waitForRequest((request) => !request.headers()["x-heddle-unattended"] && new URL(request.url()).pathname === "/version");
  await page.click("#ends button");
  await use;
  await page.waitForSelector("#ends", { state: "hidden" });
  await context.close();
});
