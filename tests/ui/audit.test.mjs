// Who changed what, for administrators: what the page shows is what the API says, and viewers have no way there.
// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Heddle, artefacts, browser, until } from "./harness.mjs";

const HOSTILE = "<img src=x onerror=alert(1)>";

/** @type {Heddle} */ let heddle;
/** @type {import("playwright-core").Browser} */ let chromium;
let viewer = "";

before(async () => {
  heddle = await Heddle.start();
  heddle.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first, namespace: default}\n");
  heddle.run("delete", "configmap", "first", "-n", "default");
  viewer = heddle.run("token", "create", "vera", "--role", "viewer").trim();
  await until(async () => (await as(viewer, "GET", "/heddle/v1/accounts")).ok, "the token is good");
  await as(viewer, "DELETE", "/api/v1/namespaces/default/configmaps/first");
  await as(heddle.token, "POST", "/heddle/v1/dead-letters/1/try", { "User-Agent": HOSTILE });
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
});

/** @param {string} token @param {string} method @param {string} path @param {Record<string, string>} headers */
const as = (token, method, path, headers = {}) => fetch(heddle.control + path, { method, headers: { Authorization: `Bearer ${token}`, ...headers } });

/** @param {string} token */
async function tab(token, { width = 1440 } = {}) {
  const context = await chromium.newContext({ viewport: { width, height: 900 }, acceptDownloads: true, extraHTTPHeaders: { Authorization: `Bearer ${token}` } });
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("console", (message) => { if (message.type() === "error") faults.push(message.text()); });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => { faults.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  return { page, faults, close: () => context.close() };
}

/** @param {import("playwright-core").Page} page */
const numbers = (page) => page.$$eval("[data-line]", (rows) => rows.map((row) => Number(/** @type {HTMLElement} */ (row).dataset.line)));

test("the page shows the lines that the API has, newest first, and a filter is in the address", async () => {
  const { page, faults, close } = await tab(heddle.token);
  await page.goto(`${heddle.control}/ui/`);
  await page.waitForSelector('#live[data-state="live"]');
  await page.keyboard.press("g");
  await page.keyboard.press("u");
  await page.waitForSelector('main[data-page="audit"]');
  const kept = (await heddle.get("/heddle/v1/audit?limit=50")).items.map((/** @type {any} */ line) => line.number);
  assert.deepEqual(await numbers(page), kept);
  assert.match(await page.innerText("main"), /vera\s+viewer/);
  assert.match(await page.innerText("main"), /refused\s+403 Forbidden/);
  assert.ok((await page.innerText("main")).includes(HOSTILE), "what strangers wrote is text");
  // Only what has a page is a link.
  assert.equal(await page.locator('main a.object:has-text("deadletter/1")').getAttribute("href"), "/ui/dead-letters/1");
  assert.equal(await page.locator('main a.object:has-text("configmap")').count(), 0);
  await page.screenshot({ path: join(artefacts, "audit.png"), fullPage: true });

  await page.fill('input[name="object"]', "configmap/default/first");
  await page.selectOption('select[name="outcome"]', "done");
  await page.click('form.filters button[type="submit"]');
  await page.waitForURL(/outcome=done/);
  const wanted = "object=configmap%2Fdefault%2Ffirst&outcome=done";
  assert.equal(new URL(page.url()).search, `?${wanted}`);
  const found = (await heddle.get(`/heddle/v1/audit?${wanted}`)).items;
  assert.equal(found.length, 2, "made and deleted");
  assert.deepEqual(await numbers(page), found.map((/** @type {any} */ line) => line.number));
  assert.match(await page.innerText("footer.behind"), /heddle audit --object configmap\/default\/first --outcome done/);

  const [download] = await Promise.all([page.waitForEvent("download"), page.click("a[download]")]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines, found);

  await page.goto(`${heddle.control}/ui/audit?since=soon`);
  assert.match(await page.innerText('[role="alert"]'), /15m, 2h or 3d/);
  assert.deepEqual(faults, []);
  await close();
});

test("it fits a narrow window", async () => {
  const { page, faults, close } = await tab(heddle.token, { width: 360 });
  await page.goto(`${heddle.control}/ui/audit`);
  await page.waitForSelector("[data-line]");
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(sideways, 0);
  await page.screenshot({ path: join(artefacts, "audit-360.png"), fullPage: true });
  assert.deepEqual(faults, []);
  await close();
});

test("whoever may not see it has no way there", async () => {
  const { page, close } = await tab(viewer);
  await page.goto(`${heddle.control}/ui/`);
  await page.waitForSelector('#live[data-state="live"]');
  assert.equal(await page.isVisible('nav.pages a:has-text("Changes")'), false);
  assert.equal(await page.isVisible('nav.pages a:has-text("Events")'), true);
  const answer = await page.goto(`${heddle.control}/ui/audit`);
  assert.equal(answer?.status(), 403);
  assert.match(await page.innerText("main"), /vera is viewer/);
  await close();
});

test("with a session too, whose frame knows nobody at first", async () => {
  const context = await chromium.newContext();
  const page = await context.newPage();
  await page.goto(heddle.run("ui", "--no-open").trim());
  await page.waitForSelector('#live[data-state="live"]');
  await page.click('nav.pages a:has-text("Changes")');
  await page.waitForSelector("[data-line]");
  assert.match(await page.innerText("main"), /login/);
  await context.close();
});
