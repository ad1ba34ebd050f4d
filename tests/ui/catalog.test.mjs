// Self-service in the browser: what a namespace is offered, an instance and a binding by forms, and away again.
// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Heddle, artefacts, browser, here, until } from "./harness.mjs";

/** @type {Heddle} */ let heddle;
/** @type {import("playwright-core").Browser} */ let chromium;
/** @type {Record<string, string>} */ const tokens = {};

before(async () => {
  heddle = await Heddle.start();
  const example = readFileSync(join(here, "../../examples/shop.yaml"), "utf8");
  heddle.apply(example);
  for (const role of ["viewer", "operator"]) {
    tokens[role] = heddle.run("token", "create", role, "--role", role, "-n", "team-a").trim();
  }
  tokens.admin = heddle.token;
  await until(async () => (await heddle.get("/heddle/v1/osb/team-a/v2/catalog")).services.length > 1, "the catalog has the shop");
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
});

/** A tab of somebody, which remembers everything that went wrong. @param {string} role @param {number} [width] */
async function tab(role, width = 1440) {
  const context = await chromium.newContext({
    viewport: { width, height: 900 }, reducedMotion: "reduce",
    extraHTTPHeaders: { Authorization: `Bearer ${tokens[role]}` },
  });
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("console", (message) => { if (message.type() === "error") faults.push(message.text()); });
  page.on("pageerror", (error) => faults.push(String(error)));
  return { page, faults, close: () => context.close() };
}

const instances = async () => (await heddle.get("/apis/heddle.dev/v1alpha1/namespaces/team-a/serviceinstances")).items;

for (const width of [1440, 360]) {
  test(`an operator provisions by a form, sees it become ready, and removes it, ${width} px`, async () => {
    const { page, faults, close } = await tab("operator", width);
    await page.goto(`${heddle.control}/ui/catalog?ns=team-a`);
    await page.click('a:has-text("order-events-4ad9b")');
    await page.waitForSelector('main[data-page="offering"]');
    const sideways = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(sideways, 0);
    await page.screenshot({ path: join(artefacts, `offering-${width}.png`), fullPage: true });
    const id = `orders ${width}/a`;
    await page.fill('input[name="id"]', id);
    await page.click('button:has-text("Provision")');
    await page.waitForSelector('main[data-page="instance"]');
    await page.waitForSelector('#verdict[data-verdict="healthy"]', { timeout: 60_000 });
    const [made] = await instances();
    assert.equal(made.spec.instanceID, id);
    assert.deepEqual(made.spec.originatingIdentity, { platform: "heddle", value: { username: "operator" } });
    await page.screenshot({ path: join(artefacts, `instance-${width}.png`), fullPage: true });

    const removal = page.locator('form[data-change="DELETE"]');
    await removal.locator("input").fill("something else");
    await removal.locator("button").click();
    assert.equal((await instances()).length, 1, "its id must be typed");
    await removal.locator("input").fill(id);
    await removal.locator("button").click();
    await until(async () => (await instances()).length === 0, "it is gone");
    // The browser complains of the answer that says so.
    assert.deepEqual(faults.filter((fault) => !fault.includes("404")), []);
    await close();
  });
}

test("what is refused is told beside the button, and what was typed stays", async () => {
  const { page, close } = await tab("operator");
  heddle.run("provision", "order-events-4ad9b", "-n", "team-a", "--id", "taken", "--wait");
  await page.goto(`${heddle.control}/ui/catalog/team-a/orders-api-9c7a5`);
  await page.fill('input[name="id"]', "taken");
  await page.click('button:has-text("Provision")');
  await page.waitForSelector('output[data-verdict="unhealthy"]');
  assert.match(await page.innerText("output"), /taken/);
  assert.equal(await page.inputValue('input[name="id"]'), "taken");
  heddle.run("deprovision", "taken", "-n", "team-a", "--wait");
  await close();
});

test("a viewer sees the same without a form, and no other namespace", async () => {
  const { page, faults, close } = await tab("viewer");
  await page.goto(`${heddle.control}/ui/catalog/team-a/order-events-4ad9b`);
  assert.match(await page.innerText("main"), /operators of team-a/);
  assert.equal(await page.locator("form[data-change]").count(), 0);
  for (const path of ["instances", "catalog", "applications", "checks", ""]) {
    await page.goto(`${heddle.control}/ui/${path}`);
    await page.waitForSelector('main:not([data-page="refused"])');
  }
  assert.deepEqual(faults, []);
  await page.goto(`${heddle.control}/ui/catalog?ns=team-b`);
  await page.waitForSelector('main[data-page="refused"]');
  assert.equal(await page.locator('nav.tabs a:has-text("Registries")').count(), 0);
  await close();
});

test("numbers of a form are as they were typed, and groups are objects", async () => {
  const { page, close } = await tab("operator");
  await page.goto(`${heddle.control}/ui/catalog/team-a/order-events-4ad9b`);
  const sent = page.waitForRequest("**/heddle/v1/nowhere");
  await page.evaluate(() => {
    const form = document.createElement("form");
    Object.assign(form.dataset, { change: "POST", to: "/heddle/v1/nowhere" });
    for (const [at, how, value] of [["/n", "json", "9007199254740993"], ["/a/b~1c/~0", "text", "x\"y"], ["/a/empty", "text", ""], ["/list", "json", " [1, 2] "]]) {
      const field = document.createElement("input");
      Object.assign(field.dataset, { at, value: how });
      field.value = value;
      form.append(field);
    }
    document.body.append(form);
    form.requestSubmit();
  });
  assert.equal((await sent).postData(), '{"n":9007199254740993,"a":{"b/c":{"~":"x\\"y"}},"list":[1, 2]}');
  await close();
});

test("an instance that waits for a mapping says the same as the command, and leads to what must change", async () => {
  heddle.apply(`
apiVersion: v1
kind: Namespace
metadata: {name: team-c}
---
apiVersion: heddle.dev/v1alpha1
kind: ServiceInstance
metadata: {name: late, namespace: team-c}
spec:
  instanceID: late
  serviceID: 4ad9b1de-6f0c-4ed0-a1d7-21a0a1a2f4b1
  planID: 4ad9b1de-6f0c-4ed0-a1d7-21a0a1a2f4b1-plan
  application: {name: shop, serviceID: 4ad9b1de-6f0c-4ed0-a1d7-21a0a1a2f4b1}
  originatingIdentity: {platform: kubernetes, value: {username: ada}}
  operation: {id: late-1, kind: provision, requestHash: none, acceptedAt: "${new Date().toISOString()}"}
`);
  const explain = () => JSON.parse(heddle.run("explain", "instance", "late", "-n", "team-c", "-o", "json"));
  await until(() => explain().waitsFor.some((/** @type {any} */ wait) => wait.reason === "MappingMissing"), "it waits for a mapping");
  const context = await chromium.newContext({ extraHTTPHeaders: { Authorization: `Bearer ${heddle.token}` } });
  const page = await context.newPage();
  await until(async () => {
    await page.goto(`${heddle.control}/ui/instances/team-c/late`);
    const told = explain();
    const said = await page.innerText("#waits");
    for (const wait of told.waitsFor) {
      for (const part of [`${wait.condition} of ${wait.object}`, wait.reason, wait.message || wait.meaning]) assert.ok(said.includes(part), `${part} in ${said}`);
    }
    assert.match(said, /Somebody has to act first: MappingMissing does not go away by itself\./);
    if (told.failsAt) assert.match(said, /the platform is told that it failed at/);
    return true;
  }, "page and command say the same");
  assert.equal(await page.getAttribute("#waits a.object", "href"), "/ui/objects/applicationmapping/team-c/shop");
  assert.match(await page.innerText("main"), /ada of kubernetes/);
  assert.match(heddle.run("explain", "instance", "late", "-n", "team-c"), /somebody has to act first: MappingMissing/);
  await context.close();
});

test("checks on the page are those of the command, and both are the answer of the API", async () => {
  const { page, faults, close } = await tab("admin");
  const levels = { bad: "unhealthy", warn: "degraded", ok: "healthy" };
  const plain = (/** @type {string} */ text) => text.replace(/\s+/g, " ").trim();
  // What is counted goes on while it is looked at.
  await until(async () => {
    const asked = await heddle.get("/heddle/v1/checks");
    await page.goto(`${heddle.control}/ui/checks`);
    const rows = await page.$$eval("main tbody tr", (found) => found.map((row) => {
      const cells = [...row.querySelectorAll("td")].map((cell) => cell.textContent ?? "");
      return [row.getAttribute("data-check"), row.getAttribute("data-verdict"), ...cells];
    }));
    const told = JSON.parse(heddle.run("doctor", "-o", "json"));
    assert.deepEqual(told, asked);
    const expected = asked.findings.map((/** @type {any} */ found) => [
      `${found.id} ${found.about}`, levels[/** @type {keyof typeof levels} */ (found.level)], found.about, found.what, found.remedy || "–",
    ]);
    assert.deepEqual(rows.map((row) => row.map((cell) => plain(cell ?? ""))), expected.map((/** @type {string[]} */ row) => row.map(plain)));
    return true;
  }, "page, command and API say the same");
  assert.match(await page.innerText("main"), /HD-016/);
  assert.deepEqual(faults, []);
  await close();
});
