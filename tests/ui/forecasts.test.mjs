// What is to be expected stands where somebody looks: on the first page, on that of the trigger, in the commands and in the answer.
// @ts-check
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Heddle, browser, shop, subscriber, until } from "./harness.mjs";
import { openTab, serious, sideways } from "./look.mjs";

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof subscriber>>} */ let subscribers;
/** @type {import("playwright-core").Browser} */ let chromium;

const TRIGGER = "trigger/team-a/late";

/** What is expected of the trigger, by the answer. */
async function asked() {
  const accounts = await heddle.get("/heddle/v1/accounts");
  const account = accounts.consumers.find((/** @type {any} */ one) => one.consumer === TRIGGER);
  return account?.forecasts?.find((/** @type {any} */ one) => one.event === "deadLettersBegin");
}

before(async () => {
  subscribers = await subscriber();
  subscribers.answers["/late"] = 503;
  heddle = await Heddle.start();
  await shop(heddle, subscribers.url);
  // Retries that take half an hour, so that nothing runs out while somebody looks.
  heddle.apply(`apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: late, namespace: team-a}
spec:
  broker: default
  filters: [{exact: {type: order.late}}]
  subscriber: {uri: "${subscribers.url}/late"}
  delivery: {retry: 3, backoffPolicy: linear, backoffDelay: PT5M}
`);
  await until(async () => {
    const one = await heddle.get("/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/late");
    return one.status?.conditions?.some((/** @type {any} */ found) => found.type === "Ready" && found.status === "True");
  }, "the trigger is ready");
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  subscribers?.close();
});

test("nothing is said where nothing is known", async () => {
  const { page, close } = await openTab(chromium, heddle);
  await page.goto(`${heddle.control}/ui/triggers/team-a/late`);
  await page.waitForSelector('main[data-page="trigger"]');
  assert.equal(await page.locator("[data-forecast]").count(), 0);
  assert.equal(await asked(), undefined);
  await close();
});

test("retries that run out are told with their basis, everywhere the same", async () => {
  heddle.run("publish", "shop", "--id", "late-1", "--type", "order.late", "--data", "{}");
  const forecast = await until(asked, "an attempt failed");
  // 5 min, 10 min and 15 min, less what has passed.
  assert.ok(forecast.inS > 1_500 && forecast.inS < 2_000, `${forecast.inS}`);
  assert.match(forecast.basis, /failed 1 of 4 attempts and has 3 left/);
  for (const width of [1440, 360]) {
    const { page, faults, close } = await openTab(chromium, heddle, { width, colorScheme: width === 360 ? "dark" : "light" });
    await page.goto(`${heddle.control}/ui/`);
    const shown = page.locator(`[data-forecast][data-of="${TRIGGER}"]`);
    assert.match((await shown.textContent()) ?? "", /dead letters begin in about \d+ min, if it goes on failing/);
    assert.ok(Math.abs(Number(await shown.getAttribute("data-forecast")) - forecast.inS) < 120);
    assert.equal(await sideways(page), 0);
    assert.deepEqual(await serious(page), []);
    await shown.locator("a").click();
    await page.waitForSelector('main[data-page="trigger"]');
    assert.match((await page.textContent("[data-forecast]")) ?? "", /Dead letters begin in about \d+ min/);
    assert.deepEqual(faults, []);
    await close();
  }
  assert.match(heddle.run("explain", "trigger", "team-a/late"), /expected\s+dead letters begin in about \d+ min/);
  const doctor = JSON.parse(heddle.run("doctor", "-o", "json"));
  const finding = doctor.findings.find((/** @type {any} */ found) => found.id === "HD-024");
  assert.equal(finding.about, TRIGGER);
  assert.match(finding.what, /dead letters begin in about \d+ min/);
  assert.match(finding.remedy, /heddle trigger pause team-a\/late/);
});

test("what is paused has no end in sight, and nothing is said of it", async () => {
  heddle.run("trigger", "pause", "team-a/late");
  await until(async () => (await asked()) === undefined, "the pause is in force");
  const { page, close } = await openTab(chromium, heddle);
  await page.goto(`${heddle.control}/ui/triggers/team-a/late`);
  await page.waitForSelector("#held");
  assert.equal(await page.locator("[data-forecast]").count(), 0);
  await close();
});
