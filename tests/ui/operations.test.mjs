// Many dead letters at once: everybody sees how far it is, it can be stopped, and a kill in the middle changes nothing.
// @ts-check
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Heddle, artefacts, browser, until } from "./harness.mjs";
import { byType, ids, oneTrigger, publish, resting, untilResting } from "./letters.mjs";
import { openTab, serious } from "./look.mjs";

const MANY = 3_000;

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof byType>>} */ let subscriber;
/** @type {import("playwright-core").Browser} */ let chromium;

before(async () => {
  subscriber = await byType();
  heddle = await Heddle.start();
  await oneTrigger(heddle, subscriber.url);
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  subscriber?.close();
});

/** @param {string} type */
async function many(type) {
  subscriber.manners[type] = { status: 400, body: () => "no" };
  await publish(heddle, type, ids(type, MANY));
  await untilResting(heddle, `type=${type}`, MANY);
  subscriber.manners[type] = { status: 200, waitMs: 100 };
}

/** Begins to redrive all of a type. @param {import("playwright-core").Page} page @param {string} type */
async function begin(page, type) {
  await page.goto(`${heddle.control}/ui/dead-letters?type=${type}`);
  await page.click('[data-group] a:has-text("Redrive 3,000")');
  await page.click('dialog button:has-text("Redrive 3,000")');
  await page.waitForSelector('dialog [data-outcome="begun"]:not([hidden])');
  await page.click('dialog [data-outcome="begun"] a:has-text("Close")');
  await page.waitForSelector('#running [data-operation][data-state="running"]');
}

/** How far it is. @param {import("playwright-core").Page} page */
const progress = (page) => page.evaluate(() => /** @type {HTMLProgressElement | null} */ (document.querySelector("#running progress"))?.value ?? 0);

test("progress, rate and time to go are seen by everybody, and it can be stopped", async () => {
  await many("stopped");
  const { page, faults, close } = await openTab(chromium, heddle);
  const token = heddle.run("token", "create", "vic", "--role", "viewer").trim();
  const viewer = await openTab(chromium, heddle, { token });
  await begin(page, "stopped");
  await until(async () => (await progress(page)) > 50, "there is progress");
  assert.match(await page.innerText("#running"), /of 3,000, \d+\/s, .* to go/);
  await page.screenshot({ path: join(artefacts, "operations-running.png") });
  assert.deepEqual(await serious(page), []);
  await viewer.page.goto(`${heddle.control}/ui/dead-letters`);
  await viewer.page.waitForSelector("#running progress");
  const first = await progress(viewer.page);
  await until(async () => (await progress(viewer.page)) > first, "a viewer sees it go on");
  assert.equal(await viewer.page.locator("#running button").count(), 0);
  await page.click('#running button:has-text("Stop")');
  await page.waitForSelector('#ended [data-state="stopped"]');
  await page.waitForFunction(() => !document.querySelector("#running"));
  const [operation] = (await heddle.get("/heddle/v1/dead-letters/operations")).operations;
  assert.equal(operation.state, "stopped");
  assert.ok(operation.count > 0 && operation.count < MANY, `${operation.count}`);
  await until(async () => (await resting(heddle, "type=stopped")) === MANY - operation.count, "the rest still rests");
  assert.deepEqual([...faults, ...viewer.faults], []);
  await viewer.close();
  await close();
});

test("a kill in the middle takes nothing twice and leaves nothing out", async () => {
  await many("killed");
  const { page, close } = await openTab(chromium, heddle);
  const since = subscriber.arrived.length;
  await begin(page, "killed");
  await until(async () => (await progress(page)) > 200, "there is progress");
  await heddle.kill();
  const before = subscriber.arrived.length - since;
  await page.waitForSelector('#live[data-state="reconnecting"]');
  await heddle.launch(new URL(heddle.control).host);
  const restarted = subscriber.arrived.length;
  // The page heals by itself, and what was begun goes on.
  await page.waitForSelector('#live[data-state="live"]', { timeout: 60_000 });
  await page.waitForSelector('#ended [data-state="done"]', { timeout: 120_000 });
  await page.reload();
  await page.waitForSelector('#ended [data-state="done"]');
  await until(async () => (await resting(heddle, "type=killed")) === 0, "none is left");
  const wanted = new Set(ids("killed", MANY));
  await until(() => new Set(subscriber.arrived.slice(since).map((one) => one.id).filter((id) => wanted.has(id))).size === MANY, "each arrives");
  const twice = subscriber.arrived.length - since - MANY;
  // What was on its way when the power went is delivered again, and nothing else.
  assert.ok(before > 200 && restarted - since < MANY, `${before} before, ${restarted - since} until the restart`);
  assert.ok(twice >= 0 && twice <= 200, `${twice} arrived twice`);
  const { consumers } = await heddle.get("/heddle/v1/accounts");
  const account = consumers.find((/** @type {any} */ one) => one.consumer === "trigger/team-a/all");
  assert.equal(account.matched, account.delivered + account.deadLettered + account.expired + account.removed + account.pending);
  const operation = (await heddle.get("/heddle/v1/dead-letters/operations")).operations[0];
  assert.deepEqual([operation.state, operation.count], ["done", MANY]);
  await close();
});
