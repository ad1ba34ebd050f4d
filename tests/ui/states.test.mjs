// The same pages where nothing is declared, where all is well, and where there is more than anybody can look at.
// @ts-check
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Heddle, browser, shop, subscriber, until } from "./harness.mjs";
import { openTab } from "./look.mjs";
import { STANDING, walk } from "./walk.mjs";

const NAMESPACES = 20;
const BROKERS = 2;
const TRIGGERS = 10_000;
/** Triggers whose subscriber does not exist, here and there. */
const ILL = 12;
/** Requests under way while all that is made. */
const AT_ONCE = 48;
const NODES_MAX = 150;
/** A failsafe: with so many, judging is done at most a fiftieth of the time. */
const JUDGED_WITHIN_MS = 240_000;

/** @type {import("playwright-core").Browser} */ let chromium;
before(async () => { chromium = await browser(); });
after(() => chromium?.close());

describe("where nothing is declared", () => {
  /** @type {Heddle} */ let heddle;
  before(async () => { heddle = await Heddle.start(); });
  after(() => heddle?.close());

  test("every page says so", () => walk(chromium, heddle, STANDING, { state: "empty", width: 1440, colorScheme: "light" }));
  test("every page says so on a small screen in the dark", () => walk(chromium, heddle, STANDING, { state: "empty", width: 360, colorScheme: "dark" }));
});

describe("where all is well", () => {
  /** @type {Heddle} */ let heddle;
  /** @type {Awaited<ReturnType<typeof subscriber>>} */ let subscribers;
  before(async () => {
    subscribers = await subscriber();
    heddle = await Heddle.start();
    await shop(heddle, subscribers.url);
    for (const type of ["order.created", "order.cancelled"]) heddle.run("publish", "shop", "--id", type, "--type", type, "--data", "{}");
    await until(async () => (await heddle.get("/heddle/v1/health")).health === "Healthy", "the mesh is well");
  });
  after(async () => {
    await heddle?.close();
    subscribers?.close();
  });

  /** @type {import("./walk.mjs").Page[]} */
  const pages = [...STANDING, ["application", "/ui/applications/shop?ns=team-a"], ["trigger", "/ui/triggers/team-a/refunds"], ["event", "/ui/trace?id=order.created"]];
  test("every page says so", () => walk(chromium, heddle, pages, { state: "well", width: 1440, colorScheme: "dark" }));
  test("every page says so on a small screen", () => walk(chromium, heddle, pages, { state: "well", width: 360, colorScheme: "light" }));

  test("pages are gone through without a mouse, and what has the focus is seen", async () => {
    const { page, faults, close } = await openTab(chromium, heddle);
    await page.goto(`${heddle.control}/ui/`);
    await page.waitForSelector('#live[data-state="live"]');
    for (const [key, name] of [["a", "applications"], ["e", "events"], ["d", "dead-letters"], ["c", "catalog"], ["u", "audit"], ["h", "help"], ["m", "mesh"]]) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.waitForSelector(`main[data-page="${name}"]`);
      // Whatever Tab leads to is on the screen, has a name, and is drawn as that which has the focus.
      for (let steps = 0; steps < 12; steps += 1) {
        await page.keyboard.press("Tab");
        const lost = await page.evaluate(() => {
          const focused = document.activeElement;
          if (!focused || focused === document.body) return null;
          const style = getComputedStyle(focused);
          const isDrawn = style.outlineStyle !== "none" || style.boxShadow !== "none" || focused.closest("svg") !== null;
          return focused.getClientRects().length > 0 && isDrawn ? null : focused.outerHTML.slice(0, 200);
        });
        assert.equal(lost, null, `on ${name}`);
      }
      await page.evaluate(() => /** @type {HTMLElement | null} */ (document.activeElement)?.blur());
    }
    assert.deepEqual(faults, []);
    await close();
  });
});

describe("where there are ten thousand triggers", () => {
  /** @type {Heddle} */ let heddle;
  before(async () => {
    heddle = await Heddle.start();
    await declare(heddle);
  });
  after(() => heddle?.close());

  /** Where each node of the drawing stands. @param {import("playwright-core").Page} page */
  const places = (page) => page.$$eval("[data-node]", (nodes) => Object.fromEntries(nodes.map((node) => {
    const box = node.querySelector("rect.box");
    return [/** @type {any} */ (node).dataset.node, [box?.getAttribute("x"), box?.getAttribute("y")]];
  })));

  test("what is ill is drawn, no more than can be looked at, and nothing moves while numbers do", async () => {
    const ill = await until(async () => {
      const graph = await heddle.get("/heddle/v1/topology");
      const found = graph.nodes.filter((/** @type {any} */ node) => node.verdict === "unhealthy" && !node.of);
      assert.ok(graph.nodes.length <= NODES_MAX, `${graph.nodes.length} nodes`);
      // Each with its subscriber.
      return found.length === 2 * ILL && graph.truncated.verdicts.unhealthy === 0 ? found : undefined;
    }, "what is ill is known", JUDGED_WITHIN_MS);
    const { page, faults, close } = await openTab(chromium, heddle);
    await page.goto(`${heddle.control}/ui/`);
    await page.waitForSelector('#live[data-state="live"]');
    const before = await places(page);
    assert.ok(Object.keys(before).length <= NODES_MAX);
    for (const { id } of ill) assert.ok(before[id], `${id} is not drawn`);
    // Numbers of the stream come once a second: two of them have been shown by then.
    await publishSome(heddle);
    await page.waitForFunction(() => [...document.querySelectorAll("[data-number]")].some((shown) => shown.textContent?.trim()));
    await page.waitForTimeout(1_000);
    assert.deepEqual(await places(page), before);
    assert.deepEqual(faults, []);
    await close();
  });

  test("lists and the graph are whole pages", () => walk(chromium, heddle, [
    ["mesh", "/ui/"],
    ["mesh", "/ui/?verdict=unhealthy"],
    ["applications", "/ui/applications"],
    ["types", "/ui/types"],
    ["dead-letters", "/ui/dead-letters"],
    ["events", "/ui/events"],
  ], { state: "large", width: 1440, colorScheme: "light" }));
});

/** Brokers in several namespaces, one application that leads to half of them, and the triggers. @param {Heddle} heddle */
async function declare(heddle) {
  const namespaces = Array.from({ length: NAMESPACES }, (_, number) => `team-${String(number).padStart(2, "0")}`);
  heddle.apply(namespaces.map((name) => [
    `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}\n`,
    ...Array.from({ length: BROKERS }, (_, number) => `apiVersion: eventing.knative.dev/v1\nkind: Broker\nmetadata: {name: b${number}, namespace: ${name}}\n`),
  ].join("---\n")).join("---\n"));
  const triggers = Array.from({ length: TRIGGERS }, (_, number) => {
    const namespace = namespaces[number % NAMESPACES];
    const broker = `b${Math.floor(number / NAMESPACES) % BROKERS}`;
    const isIll = number < ILL;
    const subscriber = isIll ? { ref: { apiVersion: "v1", kind: "Service", name: "nowhere" } } : { uri: "http://127.0.0.1:9/" };
    const filters = [{ exact: { type: `type-${number}` } }];
    return {
      apiVersion: "eventing.knative.dev/v1", kind: "Trigger", metadata: { name: `t-${String(number).padStart(5, "0")}`, namespace },
      spec: { broker, filters, subscriber },
    };
  });
  const headers = { Authorization: `Bearer ${heddle.token}`, "Content-Type": "application/json" };
  const make = async () => {
    for (let trigger = triggers.pop(); trigger; trigger = triggers.pop()) {
      const path = `/apis/eventing.knative.dev/v1/namespaces/${trigger.metadata.namespace}/triggers`;
      const answer = await fetch(heddle.control + path, { method: "POST", headers, body: JSON.stringify(trigger) });
      assert.equal(answer.status, 201, await answer.text());
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, make));
}

/** Events that nobody wants, so that something is counted. @param {Heddle} heddle */
async function publishSome(heddle) {
  for (let number = 0; number < 3; number += 1) heddle.run("publish", "--broker", "team-00/b0", "--type", "unwanted", "--data", "{}");
}
