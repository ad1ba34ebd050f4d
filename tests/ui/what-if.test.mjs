// A change tried on stored events: what the page shows is what `heddle apply --what-if` tells, and nothing is changed by it.
// @ts-check
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { Heddle, browser, shop, subscriber, until } from "./harness.mjs";
import { openTab, serious, sideways } from "./look.mjs";

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof subscriber>>} */ let subscribers;
/** @type {import("playwright-core").Browser} */ let chromium;
/** @type {string} */ let viewer;

before(async () => {
  subscribers = await subscriber();
  heddle = await Heddle.start();
  await shop(heddle, subscribers.url);
  for (let number = 1; number <= 9; number += 1) {
    const type = number % 3 === 0 ? "order.cancelled" : "order.created";
    heddle.run("publish", "shop", "--id", `ord-${number}`, "--type", type, "--data", "{}");
  }
  viewer = heddle.run("token", "create", "vera", "--role", "viewer").trim().split("\n").pop() ?? "";
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  subscribers?.close();
});

/** @param {Parameters<typeof openTab>[2]} [how] */
const tab = (how) => openTab(chromium, heddle, how);

const trigger = (/** @type {string} */ name, /** @type {string} */ type) => `apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: ${name}, namespace: team-a}
spec:
  broker: default
  filters: [{exact: {type: ${type}}}]
  subscriber: {uri: "${subscribers.url}/new"}
`;

/** What the table has, by consumer: now, then, gained, lost. @param {import("playwright-core").Page} page */
const table = (page) => page.$$eval("#changed tbody tr", (rows) => Object.fromEntries(rows.map((row) => {
  const cells = [...row.querySelectorAll("td")].slice(0, 4).map((cell) => Number((cell.textContent ?? "").replaceAll(",", "")));
  return [/** @type {HTMLElement} */ (row).dataset.consumer, cells];
})));

/** @param {import("playwright-core").Page} page @param {string} manifest @param {string} [gone] */
async function attempt(page, manifest, gone = "") {
  await page.fill('textarea[name="manifest"]', manifest);
  await page.fill('textarea[name="gone"]', gone);
  await page.click('form[data-try] button[type="submit"]');
  await page.waitForSelector("#tried[data-settled]:not([aria-busy])");
}

test("a manifest is tried as the command tries it, and leads to the events", async () => {
  const { page, faults, close } = await tab();
  await page.goto(`${heddle.control}/ui/`);
  await page.click('a:text-is("What would a change do?")');
  await page.waitForSelector('main[data-page="what-if"] form:not([hidden])');
  const manifest = `${trigger("orders", "order.cancelled")}---\n${trigger("fresh", "order.created")}`;
  const before = heddle.run("get", "triggers", "-n", "team-a", "-o", "json");
  await attempt(page, manifest);
  const told = JSON.parse(execFileSync(process.env.HEDDLE ?? "heddle", ["apply", "-f", "-", "--what-if", "-o", "json"], { env: heddle.env, input: manifest, encoding: "utf8" }));
  assert.equal(Number(await page.getAttribute("#tried", "data-examined")), told.examined);
  const expected = Object.fromEntries(told.consumers.map((/** @type {any} */ one) => [one.consumer, [one.before, one.after, one.gained, one.lost]]));
  assert.deepEqual(await table(page), expected);
  assert.deepEqual(expected["trigger/team-a/fresh"], [0, 6, 6, 0]);
  const examples = page.locator('details:has(summary:text-matches("fresh would gain")) li');
  assert.equal(await examples.count(), 5);
  assert.deepEqual(await serious(page), []);
  assert.equal(await sideways(page), 0);
  assert.equal(heddle.run("get", "triggers", "-n", "team-a", "-o", "json"), before, "nothing was changed");
  await examples.first().locator("a").click();
  await page.waitForSelector('main[data-page="event"]');
  assert.deepEqual(faults, []);
  await close();
  assert.doesNotMatch(heddle.run("audit", "--since", "1h", "-o", "jsonl"), /what-if/, "a question is no change");
});

test("what would be gone, what is not compared and what cannot be read are told", async () => {
  const { page, close } = await tab({ width: 400, colorScheme: "dark" });
  await page.goto(`${heddle.control}/ui/what-if`);
  await attempt(page, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: team-a}\n", "trigger/team-a/orders\neventflow/team-a/f");
  const [, then, gained] = (await table(page))["trigger/team-a/orders"];
  assert.deepEqual([then, gained], [0, 0]);
  const text = await page.innerText("#tried");
  assert.match(text, /ConfigMap c decides nothing about events/);
  assert.match(text, /eventflow\/team-a\/f is left out/);
  assert.equal(await sideways(page), 0);
  await attempt(page, "kind: [");
  assert.match(await page.innerText("#tried [role=alert]"), /not valid YAML/);
  await attempt(page, "", "trigger/team-a/nobody");
  assert.match(await page.innerText("#tried [role=alert]"), /no Trigger nobody in team-a/);
  await close();
});

test("the filter that is tried leads there, and a viewer is told whom it takes", async () => {
  const { page, close } = await tab();
  await page.goto(`${heddle.control}/ui/triggers/team-a/orders?try=1&filters=exact%20type%20%3D%20order.cancelled`);
  await page.click("#whatif");
  await page.waitForSelector('main[data-page="what-if"] form:not([hidden])');
  assert.match(await page.inputValue('textarea[name="manifest"]'), /order\.cancelled/);
  await page.click('form[data-try] button[type="submit"]');
  await page.waitForSelector("#changed");
  assert.ok((await table(page))["trigger/team-a/orders"]);
  await close();
  const vera = await tab({ token: viewer });
  await vera.page.goto(`${heddle.control}/ui/what-if`);
  await vera.page.waitForSelector('main[data-page="what-if"]');
  assert.equal(await vera.page.locator("form[data-try]").count(), 0);
  assert.match(await vera.page.innerText("main"), /takes an operator/);
  await vera.close();
});

test("the page of a trigger says why nothing came, and its numbers open their lists", async () => {
  heddle.apply(trigger("typo", "order.craeted"));
  const consumer = "trigger/team-a/typo";
  await until(async () => (await heddle.get(`/heddle/v1/accounts?consumer=${consumer}`)).consumers.length === 1, "it is part of the routes");
  for (const id of ["late-1", "late-2"]) heddle.run("publish", "shop", "--id", id, "--type", "order.created", "--data", "{}");
  const { page, faults, close } = await tab();
  await page.goto(`${heddle.control}/ui/triggers/team-a/typo`);
  await page.click('section[aria-labelledby="silence"] a:text-is("hour")');
  await page.waitForSelector("#silenced");
  assert.equal(await page.getAttribute("#silenced", "data-came"), "2");
  assert.match(await page.innerText("#silenced"), /2 events if type were "order\.created" instead of "order\.craeted"/);
  assert.deepEqual(await serious(page), []);
  // Each number of an account is the length of its list.
  await until(async () => (await heddle.get("/heddle/v1/accounts?consumer=trigger/team-a/orders")).consumers[0].pending === 0, "all were delivered");
  await page.goto(`${heddle.control}/ui/triggers/team-a/orders`);
  const links = await page.$$eval('table[data-accounts] td.number a[href*="events?"]', (all) => all.map((link) => [link.getAttribute("href") ?? "", Number((link.textContent ?? "").replaceAll(",", ""))]));
  assert.ok(links.length >= 2, JSON.stringify(links));
  for (const [href, count] of links) {
    await page.goto(heddle.control + href);
    await page.waitForSelector("#counted");
    assert.equal(await page.locator("tbody[data-rows] tr").count(), count, String(href));
    assert.equal(await page.getAttribute("#counted", "data-listed"), String(count));
  }
  assert.deepEqual(faults, []);
  await close();
});
