// What the page costs: requests and bytes are held, times are printed for whoever compares machines.
// @ts-check
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Heddle, browser, proxy, shop, subscriber, until } from "./harness.mjs";
import { publish } from "./letters.mjs";

const FIRST_VISIT_MAX = 8;
const AGAIN_MAX = 2;
const PER_MINUTE_MAX = 2;
const BYTES_MAX = 40_000;
const TABS = 12;
/** Batches of the stream that are listened to. */
const BATCHES = 5;

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof subscriber>>} */ let subscribers;
/** @type {Awaited<ReturnType<typeof proxy>>} */ let outside;
/** @type {import("playwright-core").Browser} */ let chromium;
/** @type {import("playwright-core").BrowserContext} */ let context;
/** @type {Record<string, string | number>} */
const figures = {};

before(async () => {
  subscribers = await subscriber();
  heddle = await Heddle.start();
  outside = await proxy(heddle);
  await shop(heddle, subscribers.url);
  await until(async () => (await heddle.get("/heddle/v1/health/applications/shop")).health !== "Unknown", "health is known");
  chromium = await browser();
  context = await chromium.newContext();
});

after(async () => {
  const width = Math.max(...Object.keys(figures).map((name) => name.length));
  console.log(["figures of the page:", ...Object.entries(figures).map(([name, figure]) => `  ${name.padEnd(width)}  ${figure}`)].join("\n"));
  await chromium?.close();
  outside?.close();
  await heddle?.close();
  subscribers?.close();
});

/** @typedef {import("playwright-core").Page} Page */

/** @param {Page} page */
const shown = async (page) => {
  await page.waitForSelector('#live[data-state="live"]');
  await page.waitForSelector("main #verdict");
};

/** Returns when so many batches of the stream were heard. @param {Page} page @param {number} count */
const hear = (page, count) => page.evaluate((wanted) => new Promise((resolve) => {
  let heard = 0;
  const channel = new BroadcastChannel("heddle");
  channel.onmessage = ({ data }) => {
    if (data.kind === "batch") heard += 1;
    if (heard === wanted) resolve(channel.close());
  };
}), count);

test("a first visit and the next", async () => {
  const page = await context.newPage();
  await page.goto(`${outside.url}/ui/`);
  await page.fill("input[name=token]", heddle.token);
  await page.click("main button[type=submit]");
  await shown(page);
  const first = outside.asked().filter(({ path }) => path !== "/favicon.ico");
  figures["requests, first visit with logging in"] = first.length;
  const loaded = first.filter(({ method, path }) => method === "GET" && (path === "/ui/" || path.startsWith("/ui/a/")));
  const bytes = loaded.reduce((sum, one) => sum + one.bytes, 0);
  figures["bytes of the first page with all that it loads, gzip"] = bytes;
  assert.ok(first.length <= FIRST_VISIT_MAX, first.map(({ method, path }) => `${method} ${path}`).join("\n"));
  assert.ok(bytes <= BYTES_MAX, `${bytes}`);

  const before = outside.asked().length;
  await page.goto(`${outside.url}/ui/`);
  await shown(page);
  const again = outside.asked().slice(before);
  figures["requests, again"] = again.length;
  assert.ok(again.length <= AGAIN_MAX, again.map(({ path }) => path).join("\n"));

  const painted = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  figures["first contentful paint, ms"] = Math.round(painted);
  await page.addInitScript(() => {
    const look = () => {
      if (document.querySelector("main #verdict")) document.documentElement.dataset.verdictAt = String(Math.round(performance.now()));
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await page.reload();
  await page.waitForSelector("html[data-verdict-at]", { state: "attached" });
  figures["verdict visible, ms"] = (await page.getAttribute("html", "data-verdict-at")) ?? "";
  await page.close();
});

test("a page that is left open", async () => {
  const page = await context.newPage();
  await page.clock.install();
  heddle.run("publish", "shop", "--id", "ord-1", "--type", "order.created", "--data", '{"order":1}');
  await until(() => subscribers.arrived.some(({ id }) => id === "ord-1"), "the event has arrived");
  for (const path of ["", "applications/shop?ns=team-a", "trace?id=ord-1", "dead-letters"]) {
    await page.goto(`${outside.url}/ui/${path}`);
    await page.waitForSelector('#live[data-state="live"]');
    await page.waitForSelector("main:not([data-load]) h1");
    // What follows something that is under way slows down; then a minute counts.
    for (let second = 0; second < 90; second += 1) await page.clock.runFor(1_000);
    const before = outside.asked().length;
    for (let second = 0; second < 60; second += 1) await page.clock.runFor(1_000);
    const asked = outside.asked().slice(before);
    figures[`requests per minute, open: /ui/${path}`] = asked.length;
    assert.ok(asked.length <= PER_MINUTE_MAX, `${path}: ${asked.map((one) => one.path).join("\n")}`);
  }
  await page.close();
});

test("a page under a stream", async () => {
  const page = await context.newPage();
  await page.goto(`${outside.url}/ui/`);
  await shown(page);
  const session = await context.newCDPSession(page);
  await session.send("Performance.enable");
  const measure = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const of = (/** @type {string} */ name) => metrics.find((metric) => metric.name === name)?.value ?? 0;
    return { busy: of("TaskDuration"), at: of("Timestamp"), heap: of("JSHeapUsedSize") };
  };
  const ids = (/** @type {number} */ round) => Array.from({ length: 500 }, (_, number) => `load-${round}-${number}`);
  const begun = await measure();
  const heard = hear(page, BATCHES);
  let over = false;
  void heard.then(() => { over = true; });
  for (let round = 0; !over; round += 1) await publish(heddle, "order.created", ids(round));
  await heard;
  const ended = await measure();
  figures["main thread under a stream, % of a core"] = (100 * (ended.busy - begun.busy) / (ended.at - begun.at)).toFixed(1);
  figures["heap, MB"] = (ended.heap / 1e6).toFixed(1);
  await page.close();
});

test("twelve tabs read one stream", async () => {
  const tabs = [];
  for (let number = 0; number < TABS; number += 1) {
    const page = await context.newPage();
    await page.goto(`${outside.url}/ui/`);
    tabs.push(page);
  }
  for (const page of tabs) await page.waitForSelector('#live[data-state="live"]');
  await hear(tabs[TABS - 1], 1);
  figures[`streams of ${TABS} tabs`] = outside.streams.size;
  assert.equal(outside.streams.size, 1);
});
