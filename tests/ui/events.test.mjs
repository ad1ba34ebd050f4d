// One event, and events as they come in: followed, published again, watched.
// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Heddle, artefacts, browser, until } from "./harness.mjs";
import { byType, ids, oneTrigger, publish } from "./letters.mjs";
import { openTab, serious, sideways } from "./look.mjs";

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof byType>>} */ let subscriber;
/** @type {import("playwright-core").Browser} */ let chromium;

before(async () => {
  subscriber = await byType();
  heddle = await Heddle.start();
  await oneTrigger(heddle, subscriber.url);
  heddle.apply(`
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: patient, namespace: team-a}
spec:
  broker: default
  filters: [{exact: {type: retried}}]
  delivery: {retry: 20, backoffPolicy: linear, backoffDelay: PT1S}
  subscriber: {uri: "${subscriber.url}"}
`);
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  subscriber?.close();
});

/** @param {string} id @param {string} type @param {string} data */
const one = (id, type, data) => heddle.run("publish", "--broker", "team-a/default", "--id", id, "--type", type, "--data", data);

test("an event is followed until it has ended, and its numbers are exact", async () => {
  subscriber.manners.retried = { status: 503, body: () => "not now" };
  one("followed", "retried", '{"exact":12345678901234567890.10,"safe":9007199254740993}');
  const { page, faults, close } = await openTab(chromium, heddle);
  await page.goto(`${heddle.control}/ui/trace?id=followed`);
  await page.waitForSelector('[data-consumer="trigger/team-a/patient"][data-state="retrying"]');
  assert.match(await page.innerText("main"), /Next attempt in/);
  assert.match(await page.innerText("main"), /12345678901234567890\.10/);
  assert.match(await page.innerText("main"), /9007199254740993/);
  await page.screenshot({ path: join(artefacts, "event-retrying.png"), fullPage: true });
  assert.deepEqual(await serious(page), []);
  subscriber.manners.retried = { status: 200 };
  await page.waitForSelector('[data-consumer="trigger/team-a/patient"][data-state="delivered"]');
  one("unwanted", "other", "{}");
  await page.goto(`${heddle.control}/ui/trace?id=unwanted`);
  await page.click('summary:has-text("Not wanted by 1 consumer")');
  assert.match(await page.innerText("main"), /type is "other", filter wants "retried"/);
  assert.deepEqual(faults, []);
  await close();
});

test("what was refused is found by its id, with who, where, why and what helps", async () => {
  const { page, faults, close } = await openTab(chromium, heddle);
  const { events } = JSON.parse(readFileSync(join(heddle.dir, "data/endpoints.json"), "utf8"));
  const headers = { "ce-specversion": "1.0", "ce-source": "/test", "ce-type": "refused.one" };
  /** @param {string} path @param {Record<string, string>} more @param {string} [body] */
  const send = async (path, more, body = "{}") => (await fetch(events + path, { method: "POST", headers: { ...headers, ...more }, body })).status;
  assert.equal(await send("/broker/team-a/default", { "ce-id": "no-time", "ce-time": "yesterday" }), 400);
  assert.equal(await send("/broker/team-a/missing", { "ce-id": "no-broker" }), 404);
  assert.equal(await send("/broker/team-a/default", { "ce-id": "<b>stranger</b>", Authorization: "Bearer nobody" }), 401);
  assert.equal(await send("/broker/team-a/default", { "ce-id": "too-large" }, "x".repeat(2 << 20)), 413);
  await page.goto(`${heddle.control}/ui/events`);
  await page.click('main a:has-text("Refused")');
  await page.waitForSelector('main[data-page="refused-events"]');
  const answer = await heddle.get("/heddle/v1/events/refused");
  const rows = await page.$$eval("[data-refused]", (found) => found.map((row) => row.getAttribute("data-refused")));
  assert.deepEqual(rows, answer.items.map((/** @type {any} */ item) => item.code));
  assert.deepEqual(rows.slice(1, 4), ["unauthorized", "entry-not-found", "attribute-invalid"]);
  assert.match(String(rows[0]), /too-large$/);
  assert.match(await page.innerText('[data-refused="unauthorized"]'), /<b>stranger<\/b>[\s\S]*unknown[\s\S]*127\.0\.0\.1/);
  assert.match(await page.innerText('[data-refused="attribute-invalid"]'), /broker\/team-a\/default[\s\S]*time/);
  assert.equal(await sideways(page), 0);
  assert.deepEqual(await serious(page), []);
  // Whoever looks for it where events are found is told.
  const response = await page.goto(`${heddle.control}/ui/trace?id=no-time`);
  assert.equal(response?.status(), 404);
  assert.match(await page.innerText("main"), /It was refused\.[\s\S]*attribute-invalid/);
  let told = "";
  try { heddle.run("trace", "no-time"); } catch (error) { told = String(/** @type {any} */ (error).stderr); }
  assert.match(told, /refused at .* attribute-invalid/);
  assert.deepEqual(faults.filter((fault) => !fault.includes("404")), []);
  await close();
});

test("an event is published again as a new one, as it is and edited, and what it caused is found", async () => {
  one("original", "again", '{"n":12345678901234567890.10}');
  const { page, faults, close } = await openTab(chromium, heddle);
  await page.goto(`${heddle.control}/ui/trace?id=original`);
  const place = await page.getAttribute("[data-offset]", "data-offset");
  await page.click('a:has-text("Publish again")');
  await page.waitForSelector("dialog [data-wanted]");
  assert.equal(await page.getAttribute("dialog [data-wanted]", "data-wanted"), "1");
  assert.match(await page.innerText('dialog [data-wants="false"]'), /filter wants "retried"/);
  await page.screenshot({ path: join(artefacts, "event-republish.png") });
  assert.deepEqual(await serious(page), []);
  await page.click('dialog button:has-text("Publish a copy for 1")');
  await page.waitForSelector('dialog [data-outcome="begun"]:not([hidden])');
  await page.click('dialog [data-outcome="begun"]:not([hidden]) a:has-text("See its way")');
  await page.waitForSelector(`[data-offset]:not([data-offset="${place}"])`);
  await page.waitForSelector('main[data-page="event"] [data-consumer="trigger/team-a/all"][data-state="delivered"]');
  assert.match(await page.innerText("main"), new RegExp(`heddlecause\\s+${place}`));
  assert.match(await page.innerText("main"), /12345678901234567890\.10/);
  await page.goto(`${heddle.control}/ui/events/${place}`);
  await page.click('a:has-text("Publish again")');
  await page.click('dialog summary:has-text("Edit it first")');
  const text = await page.inputValue("dialog textarea");
  assert.match(text, /12345678901234567890\.10/);
  await page.fill("dialog textarea", "{ this is no event");
  await page.click('dialog button:has-text("Publish what is written")');
  await page.waitForSelector("dialog [data-fault]:not([hidden])");
  assert.equal(await page.inputValue("dialog textarea"), "{ this is no event");
  await page.fill("dialog textarea", text.replace('"again"', '"retried"'));
  await page.click('dialog button:has-text("Who would get it?")');
  await page.waitForSelector("dialog [data-preview]:not([hidden])");
  assert.match(await page.innerText("dialog [data-preview]"), /2 consumers would get this, 0 would not/);
  await page.click('dialog button:has-text("Publish what is written")');
  await page.waitForSelector('dialog [data-outcome="begun"]:not([hidden])');
  await page.keyboard.press("Escape");
  await page.click('a:has-text("Find what it caused")');
  await page.waitForSelector("#caused li");
  assert.equal(await page.locator("#caused li").count(), 2);
  const found = await heddle.get(`/heddle/v1/events?q=cause:${place}`);
  assert.equal(found.items.length, 2);
  // The original is as it was, and every event is accounted for.
  assert.equal((await heddle.get("/heddle/v1/trace?id=original")).events.length, 1);
  for (const account of (await heddle.get("/heddle/v1/accounts")).consumers) {
    assert.equal(account.matched, account.delivered + account.deadLettered + account.expired + account.removed + account.pending);
  }
  assert.deepEqual(faults.filter((fault) => !fault.includes("400")), []);
  await close();
});

test("what comes in is shown, no more than can be read, and can be paused", async () => {
  await publish(heddle, "seen", ids("seen", 5));
  const { page, faults, close } = await openTab(chromium, heddle);
  await page.goto(`${heddle.control}/ui/events?q=type:seen`);
  await page.waitForSelector('main[data-page="events"] tbody tr');
  assert.equal(await page.locator("tbody tr").count(), 5);
  assert.equal(await page.locator("tbody svg.mark").count(), 10);
  await page.click('button:has-text("Show what comes in")');
  await page.waitForSelector('button:has-text("Pause")');
  await page.waitForTimeout(500);
  await publish(heddle, "seen", ["<b>hostile</b>"]);
  await page.waitForSelector("tbody tr:first-child:has-text('<b>hostile</b>')");
  assert.equal(await page.locator("tbody tr").count(), 6);
  await publish(heddle, "seen", ids("flood", 2_000));
  const told = await until(async () => {
    const numbers = /Shows ([\d,]+) of ([\d,]+)\/s that match/.exec(await page.innerText("[data-told]"));
    const [shown, matched] = (numbers ?? []).slice(1).map((number) => Number(number.replace(",", "")));
    return matched > 50 && [shown, matched];
  }, "it says how many there are");
  assert.ok(told[0] <= 50, `${told}`);
  await page.screenshot({ path: join(artefacts, "events-live.png") });
  assert.equal(await sideways(page), 0);
  assert.deepEqual(await serious(page), []);
  await page.click('button:has-text("Pause")');
  const rows = await page.locator("tbody tr").count();
  await publish(heddle, "seen", ids("unseen", 3));
  await page.waitForTimeout(1_500);
  assert.equal(await page.locator("tbody tr").count(), rows);
  await page.click('button:has-text("Go on")');
  await publish(heddle, "seen", ["later"]);
  await page.waitForSelector("tbody tr:first-child:has-text('later')");
  await page.click('button:has-text("Stop")');
  await publish(heddle, "seen", ["unheard"]);
  await page.waitForTimeout(1_000);
  assert.equal(await page.locator("tbody tr:has-text('unheard')").count(), 0);
  await page.click('tbody tr a:has-text("later")');
  await page.waitForSelector('main[data-page="event"]');
  // More than fits on a page is searched to the end, and can be stopped.
  await page.goto(`${heddle.control}/ui/events?q=type:seen`);
  await page.click('button:has-text("Search on to the end")');
  await page.waitForFunction(() => /that was all/.test(document.querySelector("[data-told]")?.textContent ?? ""));
  const all = (await heddle.get("/heddle/v1/accounts")).consumers.find((/** @type {any} */ account) => account.consumer === "trigger/team-a/all");
  assert.ok(all.matched > 2_000);
  assert.equal(await page.locator("tbody tr").count(), 5 + 1 + 2_000 + 3 + 1 + 1);
  assert.deepEqual(faults, []);
  await close();
});
