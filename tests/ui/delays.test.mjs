// The heat map of delays: a subscriber that became slower is seen in its own row and in no other, in both themes, narrow and wide,
// by whoever sees it and by whoever has it read; the command and the request tell the same.
// @ts-check
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Heddle, artefacts, browser, shop, subscriber, until } from "./harness.mjs";
import { openTab, serious, sideways } from "./look.mjs";

const SLOWER_MS = 200;
const EVENTS = 12;

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof subscriber>>} */ let subscribers;
/** @type {import("playwright-core").Browser} */ let chromium;
/** @type {string} */ let viewer;
/** What half of the deliveries did not exceed before and after one of the two became slower, by row. @type {Record<string, number>[]} */
const measured = [];

/** @param {any} map @returns {Record<string, number>} */
const p50 = (map) => Object.fromEntries(map.rows.map((/** @type {any} */ row) => [row.name, row.p50Ms]));

/** Publishes events that both triggers want, each after the one before was delivered to both. @param {string} name */
async function publish(name) {
  for (let number = 1; number <= EVENTS; number += 1) {
    const id = `${name}-${number}`;
    heddle.run("publish", "shop", "--id", id, "--type", "order.created", "--source", name, "--data", "{}");
    await until(() => subscribers.arrived.filter((one) => one.id === id).length >= 2, `${id} is there twice`);
  }
  const query = encodeURIComponent(`source:${name}`);
  await until(async () => {
    const map = await heddle.get(`/heddle/v1/delays?since=1h&q=${query}`);
    const ended = map.rows.map((/** @type {any} */ row) => row.delivered);
    if (ended.length !== 2 || ended.some((/** @type {number} */ count) => count !== EVENTS)) return false;
    measured.push(p50(map));
    return true;
  }, "all are delivered");
}

before(async () => {
  subscribers = await subscriber();
  heddle = await Heddle.start();
  await shop(heddle, subscribers.url);
  heddle.apply(["fast", "slow"].map((name) => `apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: ${name}, namespace: team-a}
spec:
  broker: default
  filters: [{exact: {type: order.created}}, {not: {exact: {source: nobody}}}]
  subscriber: {uri: "${subscribers.url}/${name}"}
`).join("---\n"));
  // The demo's own triggers want other things, or are taken away, so that both rows are about the same events.
  for (const name of ["orders", "refunds"]) heddle.run("delete", "trigger", name, "-n", "team-a");
  await until(async () => {
    const list = await heddle.get("/apis/eventing.knative.dev/v1/triggers");
    const ready = (/** @type {any} */ trigger) => trigger.status?.conditions?.some((/** @type {any} */ found) => found.type === "Ready" && found.status === "True");
    return list.items.length === 2 && list.items.every(ready);
  }, "both triggers are ready");
  await publish("before");
  subscribers.takes["/slow"] = SLOWER_MS;
  await publish("after");
  viewer = heddle.run("token", "create", "vera", "--role", "viewer", "-n", "elsewhere").trim().split("\n").pop() ?? "";
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  subscribers?.close();
});

/** @param {Parameters<typeof openTab>[2]} [how] */
const tab = (how) => openTab(chromium, heddle, how);

const SLOW = "trigger/team-a/slow";
const FAST = "trigger/team-a/fast";

test("what one subscriber became slower by is measured in its row and in no other", () => {
  const [earlier, later] = measured;
  const slower = later[SLOW] - earlier[SLOW];
  const others = later[FAST] - earlier[FAST];
  assert.ok(slower >= SLOWER_MS - 50, `${slower} ms`);
  assert.ok(others <= SLOWER_MS / 2, `${others} ms`);
});

/** Rows of the map, in order, with the highest level of each. @param {import("playwright-core").Page} page */
const rows = (page) => page.$$eval('[aria-labelledby="map"] tr[data-delays]', (found) => found.map((row) => {
  const levels = [...row.querySelectorAll("svg.heat rect[data-level]")].map((bar) => Number(bar.getAttribute("data-level")));
  return { name: row.getAttribute("data-delays"), level: Math.max(...levels), p50: Number(row.getAttribute("data-p50")) };
}));

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  for (const width of [1440, 360]) {
    test(`the right row is hot, ${colorScheme}, ${width} px`, async () => {
      const { page, faults, close } = await tab({ width, colorScheme });
      await page.goto(`${heddle.control}/ui/delays?q=source%3Aafter&of=p50`);
      await page.waitForSelector('main[data-page="delays"]');
      const [first, second, ...rest] = await rows(page);
      assert.deepEqual([first.name, second.name, rest.length], [SLOW, FAST, 0]);
      assert.ok(first.p50 - second.p50 >= SLOWER_MS / 2, `${first.p50} ${second.p50}`);
      assert.ok(first.level > second.level, `${first.level} ${second.level}`);
      const label = await page.getAttribute(`tr[data-delays="${SLOW}"] svg.heat`, "aria-label");
      assert.match(label ?? "", /^trigger\/team-a\/slow: something in \d+ pieces? of that time, the slowest at /);
      const colours = await page.$$eval("svg.heat.sample rect", (bars) => bars.map((bar) => getComputedStyle(bar).fill));
      assert.equal(new Set(colours).size, 8, colours.join(" "));
      await page.screenshot({ path: join(artefacts, `delays-${colorScheme}-${width}.png`), fullPage: true });
      assert.equal(await sideways(page), 0);
      assert.deepEqual(await serious(page), []);
      assert.deepEqual(faults, []);
      await close();
    });
  }
}

test("a row can be read as numbers, and leads to its trigger and its events", async () => {
  const { page, faults, close } = await tab();
  await page.goto(`${heddle.control}/ui/`);
  await page.click('main a:text-is("Delays")');
  await page.waitForSelector('main[data-page="delays"]');
  await page.click(`tr[data-delays="${SLOW}"] a:has-text("in numbers")`);
  await page.waitForSelector(`table[data-numbers="${SLOW}"]`);
  const delivered = await page.$$eval(`table[data-numbers="${SLOW}"] td[data-label="Delivered"]`, (cells) => cells.map((cell) => Number(cell.textContent)));
  assert.equal(delivered.reduce((sum, one) => sum + one, 0), 2 * EVENTS);
  await page.click('a:text-is("The events themselves")');
  await page.waitForSelector('main[data-page="events"]');
  await page.goBack();
  await page.waitForSelector('main[data-page="delays"]');
  await page.click(`tr[data-delays="${SLOW}"] a.object`);
  await page.waitForSelector('main[data-page="trigger"]');
  await page.click('a:text-is("How long its events took")');
  await page.waitForSelector('main[data-page="delays"]');
  assert.deepEqual((await rows(page)).map((row) => row.name), ["order.created"]);
  assert.deepEqual(faults, []);
  await close();
});

test("without a script the form asks, and a query that cannot be read is told beside it", async () => {
  const { page, faults, close } = await tab({ javaScriptEnabled: false });
  await page.goto(`${heddle.control}/ui/delays`);
  await page.fill('form.filters input[name="q"]', "source:before");
  await page.selectOption('form.filters select[name="by"]', "application");
  await page.click('form.filters button[type="submit"]');
  await page.waitForURL(/by=application/);
  await page.waitForSelector('main[data-page="delays"]');
  assert.deepEqual((await rows(page)).map((row) => row.name), ["application/shop"]);
  await page.fill('form.filters input[name="q"]', "colour:red");
  await page.click('form.filters button[type="submit"]');
  assert.match(await page.innerText('main [role="alert"]'), /colour/);
  assert.equal(await page.inputValue('form.filters input[name="q"]'), "colour:red");
  assert.deepEqual(faults, []);
  await close();
});

test("heartbeats are in a table of their own and in no number of events", async () => {
  await until(async () => (await heddle.get("/heddle/v1/delays?since=1h")).heartbeats?.length > 0, "a heartbeat arrived");
  const { page, close } = await tab();
  await page.goto(`${heddle.control}/ui/delays`);
  const names = await page.$$eval('[aria-labelledby="heartbeats"] tr[data-delays]', (found) => found.map((row) => row.getAttribute("data-delays") ?? ""));
  assert.ok(names.length > 0 && names.every((name) => name.startsWith("heartbeat/")), names.join(" "));
  assert.deepEqual((await rows(page)).map((row) => row.name).sort(), [FAST, SLOW]);
  await close();
});

test("page, request and command tell the same, and somebody elsewhere is told nothing", async () => {
  const until = new Date().toISOString();
  const { page, close } = await tab();
  await page.goto(`${heddle.control}/ui/delays?by=type&since=2026-01-01T00%3A00%3A00Z&until=${encodeURIComponent(until)}&q=source%3Aafter`);
  const command = (await page.getAttribute("footer.behind [data-copy]", "data-copy")) ?? "";
  const request = (await page.getAttribute("footer.behind a.request", "href")) ?? "";
  const words = command.split(" ").slice(1);
  const told = JSON.parse(heddle.run(words[0], "-o", "json", ...words.slice(1)));
  const asked = await heddle.get(request);
  assert.deepEqual(told, asked);
  assert.deepEqual(asked.rows.map((/** @type {any} */ row) => [row.name, row.delivered]), [["order.created", 2 * EVENTS]]);
  await close();
  const stranger = await fetch(`${heddle.control}/heddle/v1/delays`, { headers: { Authorization: `Bearer ${viewer}` } });
  const theirs = /** @type {any} */ (await stranger.json());
  assert.deepEqual([stranger.status, theirs.rows, theirs.heartbeats, theirs.examined], [200, [], undefined, 0]);
});
