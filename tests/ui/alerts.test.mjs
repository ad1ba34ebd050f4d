// Alerts without a Prometheus: what fires is on the page, in the command and in the answer, leads to what it is about, and is told to
// whoever is to be told, once more after they did not take it, and over a restart.
// @ts-check
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Heddle, browser, until } from "./harness.mjs";
import { openTab, serious, sideways } from "./look.mjs";

/** It is looked every half minute, the rule wants a minute, and for five minutes after a start nothing is said to be over. */
const PATIENCE_MS = 480_000;
const NAME = "HeddleMeshUnhealthy";
const WEBHOOK = "--alert-webhook";

/** @type {Heddle} */ let heddle;
/** @type {import("playwright-core").Browser} */ let chromium;
/** @type {string} */ let viewer;
/** What was posted, and how it was answered. @type {{status: number, kind: string, event: any}[]} */
const posted = [];
/** @type {import("node:http").Server} */ let pager;

const alert = async () => {
  const list = await heddle.get("/heddle/v1/alerts");
  return list.items.find((/** @type {any} */ one) => one.name === NAME);
};

before(async () => {
  pager = createServer((request, response) => {
    /** @type {Buffer[]} */
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      // The first one is not taken.
      const status = posted.length === 0 ? 503 : 204;
      posted.push({ status, kind: String(request.headers["content-type"]), event: JSON.parse(Buffer.concat(chunks).toString("utf8")) });
      response.writeHead(status).end();
    });
  });
  await new Promise((resolve) => pager.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (pager.address());
  // Nobody reaches the events listener at this address, which makes the mesh unhealthy.
  heddle = await Heddle.start([WEBHOOK, `http://127.0.0.1:${port}/hook`, "--edge-probe", "https://127.0.0.1:1"]);
  viewer = heddle.run("token", "create", "vera", "--role", "viewer", "-n", "elsewhere").trim().split("\n").pop() ?? "";
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  pager?.close();
});

test("an alert is pending, then fires, and leads to what it is about and to what helps", async () => {
  const firing = await until(async () => {
    const found = await alert();
    return found?.state === "firing" ? found : undefined;
  }, "the alert fires", PATIENCE_MS);
  assert.equal(firing.severity, "critical");
  assert.ok(Date.now() - Date.parse(firing.since) >= 60_000, `it fires since ${firing.since}`);
  assert.match(heddle.run("alerts"), /firing +critical +HeddleMeshUnhealthy/);
  for (const [width, colorScheme] of /** @type {const} */ ([[1440, "light"], [360, "dark"]])) {
    const { page, faults, close } = await openTab(chromium, heddle, { width, colorScheme });
    await page.goto(`${heddle.control}/ui/`);
    assert.ok(Number(await page.getAttribute("[data-firing]", "data-firing")) >= 1);
    await page.click("[data-firing]");
    await page.waitForSelector('main[data-page="alerts"]');
    assert.equal(await page.getAttribute(`[data-alert="${NAME}"]`, "data-verdict"), "unhealthy");
    assert.equal(await sideways(page), 0);
    assert.deepEqual(await serious(page), []);
    await page.locator(`[data-alert="${NAME}"] a:has-text("Look there")`).click();
    await page.waitForSelector('main[data-page="mesh"]');
    await page.goBack();
    await page.waitForSelector('main[data-page="alerts"]');
    await page.click(`a:text-is("${NAME}")`);
    await page.waitForSelector('main[data-page="help"]');
    assert.deepEqual(faults, []);
    await close();
  }
  const theirs = await fetch(`${heddle.control}/heddle/v1/alerts`, { headers: { Authorization: `Bearer ${viewer}` } });
  assert.deepEqual([theirs.status, /** @type {any} */ (await theirs.json()).items], [200, []]);
});

test("who is to be told is told until they take it, with one id", async () => {
  await until(() => posted.some(({ status, event }) => status === 204 && event.subject === NAME), "it was taken", PATIENCE_MS);
  const [first, second] = posted;
  assert.deepEqual([first.status, second.status], [503, 204]);
  assert.equal(first.event.id, second.event.id);
  const told = posted.find(({ event }) => event.subject === NAME);
  assert.equal(told?.kind, "application/cloudevents+json");
  assert.equal(told?.event.type, "dev.heddle.alert.v1");
  assert.equal(told?.event.data.change, "firing");
  assert.equal(told?.event.data.alert.name, NAME);
});

test("what is over is told over a restart, and what was told is not told again", async () => {
  await heddle.kill();
  heddle.args = heddle.args.slice(0, 2);
  const before = posted.length;
  await heddle.launch();
  const over = await until(() => posted.find(({ event }) => event.subject === NAME && event.data.change === "resolved"), "it is over", PATIENCE_MS);
  assert.equal(over.status, 204);
  const again = posted.slice(before).filter(({ event }) => event.subject === NAME && event.data.change === "firing");
  assert.deepEqual(again, []);
  const { page, close } = await openTab(chromium, heddle);
  await page.goto(`${heddle.control}/ui/alerts`);
  assert.equal(await page.locator(`[data-alert="${NAME}"]`).count(), 0);
  await close();
});
