// Logging in: by the form, by a link that is good once, without a script; and what a cookie alone is good for.
// @ts-check
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Heddle, browser, until } from "./harness.mjs";

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

/** @param {import("playwright-core").Page} page */
async function logIn(page) {
  await page.goto(`${heddle.control}/ui/`);
  await page.waitForSelector('main[data-page="login"]');
  await page.fill("input[name=token]", heddle.token);
  await page.click("button[type=submit]");
  await page.waitForSelector('main[data-page="mesh"] [data-verdict]');
}

test("a token opens the page, and logging out closes it", async () => {
  const context = await chromium.newContext();
  const page = await context.newPage();
  await logIn(page);
  const another = await context.newPage();
  await another.goto(`${heddle.control}/ui/applications`);
  await another.waitForSelector('main[data-page="applications"]');
  await page.evaluate(() => /** @type {HTMLFormElement} */ (document.querySelector("form[data-logout]")).requestSubmit());
  await page.waitForSelector('main[data-page="login"]');
  await another.reload();
  await another.waitForSelector('main[data-page="login"]');
  await context.close();
});

test("a wrong token says so and opens nothing", async () => {
  const context = await chromium.newContext();
  const page = await context.newPage();
  await page.goto(`${heddle.control}/ui/login`);
  await page.fill("input[name=token]", "wrong");
  await page.click("button[type=submit]");
  await page.waitForSelector("[role=alert]:not([hidden])");
  assert.equal(await page.locator("main[data-page=mesh]").count(), 0);
  await context.close();
});

test("a link logs in once, and is gone from the address", async () => {
  const link = heddle.run("ui", "--no-open").match(/http\S+#code=\S+/)?.[0] ?? "";
  assert.notEqual(link, "");
  const context = await chromium.newContext();
  const page = await context.newPage();
  await page.goto(link);
  await page.waitForSelector('main[data-page="mesh"] [data-verdict]');
  assert.equal(new URL(page.url()).hash, "");
  await context.close();
  const stranger = await chromium.newContext();
  const second = await stranger.newPage();
  await second.goto(link);
  await second.waitForSelector('main[data-page="login"]');
  await stranger.close();
});

test("without a script the verdict and the lists are there, for reading", async () => {
  const context = await chromium.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${heddle.control}/ui/`);
  await page.fill("input[name=token]", heddle.token);
  await page.click("button[type=submit]");
  assert.equal(await page.locator('main[data-page="mesh"] [data-verdict]').first().count(), 1);
  await page.goto(`${heddle.control}/ui/events`);
  assert.equal(await page.locator('main[data-page="events"]').count(), 1);
  // Its cookie reads pages, and nothing else.
  const answer = await context.request.get(`${heddle.control}/heddle/v1/health`);
  assert.equal(answer.status(), 401);
  await context.close();
});

test("a server on another port that is shown the cookie cannot use it", async () => {
  /** @type {string[]} */
  const shown = [];
  const other = createServer((request, response) => {
    shown.push(String(request.headers.cookie ?? ""));
    response.end("<title>elsewhere</title>");
  });
  await new Promise((resolve) => other.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (other.address());
  const context = await chromium.newContext();
  const page = await context.newPage();
  await logIn(page);
  // SameSite does not know ports: a link from the page's own site brings it along.
  await page.evaluate((to) => { location.href = to; }, `http://127.0.0.1:${port}/`);
  await until(() => shown.some((cookie) => cookie.includes("heddle-")), "the other server is shown the cookie");
  const cookie = shown.find((found) => found.includes("heddle-")) ?? "";
  for (const path of ["/heddle/v1/health", "/api/v1/namespaces", "/ui/"]) {
    const answer = await fetch(heddle.control + path, { headers: { Cookie: cookie } });
    const text = await answer.text();
    assert.ok(answer.status === 401 || !text.includes("data-verdict="), `${path}: ${answer.status}`);
  }
  await context.close();
  other.close();
});

test("a page of another origin changes nothing and reads nothing", async () => {
  const other = createServer((_, response) => { response.setHeader("Content-Type", "text/html"); response.end("<title>evil</title>"); });
  await new Promise((resolve) => other.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (other.address());
  const context = await chromium.newContext();
  const page = await context.newPage();
  await logIn(page);
  await page.goto(`http://127.0.0.1:${port}/`);
  const tried = await page.evaluate(async (control) => {
    const read = await fetch(`${control}/heddle/v1/health`, { credentials: "include" }).then(() => "read", () => "refused");
    const sent = await fetch(`${control}/heddle/v1/session`, { method: "DELETE", credentials: "include" }).then(() => "sent", () => "refused");
    await fetch(`${control}/heddle/v1/dead-letters/discard`, { method: "POST", mode: "no-cors", credentials: "include", body: '{"all":true}' }).catch(() => {});
    return { read, sent };
  }, heddle.control);
  assert.deepEqual(tried, { read: "refused", sent: "refused" });
  await page.goto(`${heddle.control}/ui/`);
  await page.waitForSelector('main[data-page="mesh"] [data-verdict]');
  await context.close();
  other.close();
});
