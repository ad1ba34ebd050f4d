// The page below a path of a proxy: every address that it writes and asks for has the path before it.
// @ts-check
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Heddle, browser, proxy, shop, subscriber, until } from "./harness.mjs";

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof subscriber>>} */ let subscribers;
/** @type {Awaited<ReturnType<typeof proxy>>} */ let outside;
/** @type {import("playwright-core").Browser} */ let chromium;

before(async () => {
  subscribers = await subscriber();
  heddle = await Heddle.start(["--ui-base", "/mesh/heddle"]);
  outside = await proxy(heddle, "/mesh/heddle");
  await shop(heddle, subscribers.url);
  heddle.run("publish", "shop", "--id", "ord-1", "--type", "order.created", "--data", '{"order":1}');
  await until(() => subscribers.arrived.length > 0, "the event has arrived");
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  outside?.close();
  await heddle?.close();
  subscribers?.close();
});

test("below a path everything is found: logging in, pages, the stream, files, logging out", async () => {
  const context = await chromium.newContext();
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(`${outside.url}/ui/applications`);
  await page.waitForSelector('main[data-page="login"]');
  await page.fill("input[name=token]", heddle.token);
  await page.click("main button[type=submit]");
  await page.waitForSelector('main[data-page="applications"]');
  await page.waitForSelector('#live[data-state="live"]');
  await page.click('nav.pages a:has-text("Mesh")');
  await page.waitForSelector('main[data-page="mesh"]');
  await page.fill("#find", "ord-1");
  await page.press("#find", "Enter");
  await page.waitForSelector('main[data-page="event"]');
  assert.equal(new URL(page.url()).pathname, "/mesh/heddle/ui/trace");
  const file = page.waitForEvent("download");
  await page.click('a:has-text("Download the data")');
  assert.equal((await file).suggestedFilename(), "event-0.bin".replace("0", (await page.getAttribute("[data-offset]", "data-offset")) ?? ""));
  // Every link and form of these pages stays below the path.
  for (const path of ["", "applications/shop?ns=team-a", "events", "dead-letters", "catalog", "help", "types", "checks"]) {
    await page.goto(`${outside.url}/ui/${path}`);
    await page.waitForSelector("main:not([data-load]) h1");
    const away = await page.$$eval("[href], [action]", (all) => all.map((one) => one.getAttribute("href") ?? one.getAttribute("action") ?? "").filter((to) => to.startsWith("/") && !to.startsWith("/mesh/heddle/")));
    assert.deepEqual(away, [], path);
  }
  await page.evaluate(() => /** @type {HTMLFormElement} */ (document.querySelector("form[data-logout]")).requestSubmit());
  await page.waitForSelector('main[data-page="login"]');
  assert.deepEqual(outside.strays.filter((path) => path !== "/favicon.ico"), []);
  assert.deepEqual(faults, []);
  await context.close();
});
