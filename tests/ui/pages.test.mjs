// Every page, light and dark, wide and narrow: it says what the API says, nothing complains, nothing runs that is not ours.
// @ts-check
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Heddle, browser, shop, subscriber, until } from "./harness.mjs";
import { openTab } from "./look.mjs";
import { STANDING, walk } from "./walk.mjs";

const HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'`${7*7}";

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof subscriber>>} */ let subscribers;
/** @type {import("playwright-core").Browser} */ let chromium;

before(async () => {
  subscribers = await subscriber();
  subscribers.answers["/refunds"] = 503;
  heddle = await Heddle.start();
  await shop(heddle, subscribers.url);
  for (let number = 1; number <= 6; number += 1) {
    const type = number % 3 === 0 ? "order.cancelled" : "order.created";
    heddle.run("publish", "shop", "--id", `ord-${number}`, "--type", type, "--data", `{"order":${number},"exact":9007199254740993}`);
  }
  heddle.run("publish", "shop", "--id", HOSTILE, "--type", "order.cancelled", "--subject", HOSTILE, "--data", JSON.stringify({ [HOSTILE]: HOSTILE }));
  await until(async () => (await heddle.get("/heddle/v1/dead-letters")).total === 3, "three letters are dead");
  await until(async () => (await heddle.get("/heddle/v1/health/applications/shop")).health !== "Unknown", "health is known");
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  subscribers?.close();
});

/** @param {Parameters<typeof openTab>[2]} [how] */
const tab = (how) => openTab(chromium, heddle, how);

/** @type {import("./walk.mjs").Page[]} */
const PAGES = [
  ...STANDING,
  ["application", "/ui/applications/shop"],
  ["application", "/ui/applications/shop?ns=team-a"],
  ["trigger", "/ui/triggers/team-a/refunds"],
  ["trigger-resend", "/ui/triggers/team-a/refunds/resend"],
  ["trigger-resend", "/ui/triggers/team-a/refunds/resend?q=since%3A1d"],
  ["object", "/ui/objects/broker/team-a/default"],
  ["event", "/ui/trace?id=ord-3"],
  ["event", `/ui/trace?id=${encodeURIComponent(HOSTILE)}`],
  ["help", "/ui/help/HeddleHeartbeatMissing"],
];

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  for (const width of [1440, 360]) {
    test(`every page, ${colorScheme}, ${width} px`, () => walk(chromium, heddle, PAGES, { state: "broken", width, colorScheme }));
  }
}

test("the first line says what the API says, and the table says it of every application", async () => {
  const { page, close } = await tab();
  await until(async () => {
    const [health, applications] = [await heddle.get("/heddle/v1/health"), await heddle.get("/heddle/v1/health/applications")];
    await page.goto(`${heddle.control}/ui/`);
    assert.equal(await page.getAttribute("#verdict", "data-verdict"), health.health.toLowerCase());
    for (const item of applications.items) {
      assert.equal(await page.getAttribute(`[data-application="${item.name}"]`, "data-verdict"), item.health.toLowerCase());
    }
    const topology = await heddle.get("/heddle/v1/topology");
    const nodes = await page.$$eval("[data-node]", (found) => found.map((node) => /** @type {any} */ (node).dataset.node));
    assert.deepEqual(nodes.sort(), topology.nodes.map((/** @type {any} */ node) => node.id).sort());
    return true;
  }, "page and API say the same");
  await close();
});

test("a link that is not well leads to the evidence, by hand and by key, and the picture can be narrowed", async () => {
  const { page, faults, close } = await tab();
  const refunds = '.graph a.fault[data-link="trigger/team-a/refunds"]';
  await page.goto(`${heddle.control}/ui/`);
  await page.waitForSelector('#live[data-state="live"]');
  const middle = await page.locator(`${refunds} .hit`).evaluate((hit) => {
    const path = /** @type {SVGPathElement} */ (/** @type {unknown} */ (hit));
    path.scrollIntoView({ block: "center" });
    const { x, y } = path.getPointAtLength(path.getTotalLength() / 2).matrixTransform(/** @type {DOMMatrix} */ (path.getScreenCTM()));
    return { x, y };
  });
  await page.mouse.click(middle.x, middle.y);
  await page.waitForSelector('main[data-page="trigger"]');
  assert.match(await page.innerText("main"), /3 dead letters/);
  await page.goBack();
  await page.focus(refunds);
  await page.keyboard.press("Enter");
  await page.waitForSelector('main[data-page="trigger"]');
  await page.goto(`${heddle.control}/ui/`);
  await page.fill(".ways input[name=q]", "refunds");
  await page.press(".ways input[name=q]", "Enter");
  await page.waitForURL(/q=refunds/);
  await page.waitForFunction(() => !document.querySelector('[data-node="trigger/team-a/orders"]'));
  const asked = await heddle.get("/heddle/v1/topology?q=refunds");
  const told = JSON.parse(heddle.run("topology", "-q", "refunds", "-o", "json"));
  const shown = await page.$$eval("[data-node]", (nodes) => nodes.map((node) => /** @type {any} */ (node).dataset.node));
  const ids = (/** @type {any} */ graph) => graph.nodes.map((/** @type {any} */ node) => node.id).sort();
  assert.deepEqual([shown.sort(), ids(told)], [ids(asked), ids(asked)]);
  assert.deepEqual(faults, []);
  await close();
});

test("without a script every page shows what it knows", async () => {
  const { page, faults, close } = await tab({ javaScriptEnabled: false });
  await page.goto(`${heddle.control}/ui/`);
  assert.match(await page.innerText("main"), /shop/);
  await page.click('a:has-text("Dead letters")');
  assert.match(await page.innerText("main"), /3 events at rest/);
  await page.fill("#find", "ord-3");
  await page.press("#find", "Enter");
  await page.waitForSelector('main[data-page="event"]');
  assert.match(await page.innerText("main"), /trigger\/team-a\/refunds/);
  assert.deepEqual(faults, []);
  await close();
});

test("links and the way back need no new page, and focus and address follow", async () => {
  const { page, faults, close } = await tab();
  await page.goto(`${heddle.control}/ui/`);
  await page.waitForSelector('#live[data-state="live"]');
  await page.evaluate(() => { /** @type {any} */ (window).still = true; });
  await page.click('nav.pages a:has-text("Dead letters")');
  await page.waitForSelector('main[data-page="dead-letters"]');
  assert.equal(new URL(page.url()).pathname, "/ui/dead-letters");
  await page.goBack();
  await page.waitForSelector('main[data-page="mesh"]');
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.waitForSelector('main[data-page="applications"]');
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForSelector('main[data-page="application"]');
  await page.keyboard.press("/");
  await page.keyboard.type("ord-3");
  await page.keyboard.press("Enter");
  await page.waitForSelector('main[data-page="event"]');
  assert.equal(await page.evaluate(() => /** @type {any} */ (window).still), true, "the page was loaded anew");
  assert.deepEqual(faults, []);
  await close();
});

test("every alert leads to a page that explains it, and so does every reason", async () => {
  const { page, faults, close } = await tab();
  const rules = heddle.run("export", "alerts");
  const links = [...rules.matchAll(/runbook_url: '([^']+)'/g)].map((found) => found[1]);
  assert.ok(links.length > 15, rules);
  for (const link of links) {
    await page.goto(link);
    assert.equal(await page.getAttribute("main [data-code]", "data-code"), link.split("/").pop());
  }
  await page.goto(`${heddle.control}/ui/help`);
  const reasons = await page.$$eval("main section.card:last-of-type p a", (found) => found.map((one) => /** @type {HTMLAnchorElement} */ (one).href));
  assert.ok(reasons.length > 20, String(reasons));
  await page.goto(reasons[0]);
  assert.match(await page.innerText("main"), /reason of a condition/);
  assert.deepEqual(faults, []);
  await close();
});

test("a change of verdict is shown and told without a reload", async () => {
  const { page, faults, close } = await tab();
  await page.goto(`${heddle.control}/ui/applications/shop?ns=team-a`);
  await page.waitForSelector('#live[data-state="live"]');
  // Without its link the application no longer has a way into the namespace, and the page says so.
  heddle.run("delete", "subscriptions.messaging.knative.dev", "shop-team-a", "-n", "kyma-integration");
  await page.waitForSelector('main[data-page="refused"], #verdict:not([data-verdict="healthy"])', { timeout: 60_000 });
  await shop(heddle, subscribers.url);
  await page.waitForSelector('#verdict[data-verdict="healthy"]', { timeout: 60_000 });
  // The browser itself complains of the answer that says so.
  assert.deepEqual(faults.filter((fault) => !fault.includes("404")), []);
  await close();
});

test("what strangers wrote is text everywhere, and large numbers are exact", async () => {
  const { page, faults, close } = await tab();
  const letters = await heddle.get("/heddle/v1/dead-letters");
  for (const letter of letters.items) {
    await page.goto(`${heddle.control}/ui/dead-letters/${encodeURIComponent(letter.name)}`);
    const text = await page.textContent("main");
    assert.ok(text?.includes(letter.id));
    assert.ok(letter.id === HOSTILE || text?.includes("9007199254740993"), text ?? "");
    assert.equal(await page.locator("main img, main script").count(), 0);
  }
  assert.deepEqual(faults, []);
  await close();
});

test("every answer below /ui/ has the headers, and nobody gets in without a token", async () => {
  for (const path of ["/ui/", "/ui/login", "/ui/nowhere", "/ui/a/0/nothing.js"]) {
    const response = await fetch(heddle.control + path, { redirect: "manual" });
    assert.match(response.headers.get("content-security-policy") ?? "", /default-src 'none'.*require-trusted-types-for 'script'; trusted-types heddle$/);
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.equal(response.headers.get("referrer-policy"), "no-referrer");
    assert.equal(response.headers.get("cross-origin-opener-policy"), "same-origin");
    assert.equal(response.headers.get("cross-origin-resource-policy"), "same-origin");
  }
  const stranger = await fetch(`${heddle.control}/ui/applications/shop`, { redirect: "manual" });
  assert.equal(stranger.status, 303);
  assert.equal(stranger.headers.get("location"), "/ui/login?next=%2Fui%2Fapplications%2Fshop");
  assert.equal((await fetch(`${heddle.control}/ui/nothing.js`)).status, 404);
  const root = await fetch(heddle.control, { headers: { Accept: "text/html,*/*;q=0.8" }, redirect: "manual" });
  assert.equal(root.headers.get("location"), "/ui/");
});

test("a killed server is found again by itself", async () => {
  const { page, close } = await tab();
  await page.goto(`${heddle.control}/ui/`);
  await page.waitForSelector('#live[data-state="live"]');
  const port = new URL(heddle.control).port;
  await heddle.kill();
  await page.waitForSelector('#live[data-state="reconnecting"]');
  await heddle.launch(`127.0.0.1:${port}`);
  await page.waitForSelector('#live[data-state="live"]', { timeout: 60_000 });
  await close();
});
