// Signed deliveries: a key that the page shows once, and what the official library of the Standard Webhooks specification makes
// of what arrives. What must be refused is refused by it, too.
// @ts-check
import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { Heddle, browser, shop, until } from "./harness.mjs";
import { openTab, serious, sideways } from "./look.mjs";

/** @typedef {{path: string, headers: Record<string, string>, body: string}} Arrived */
/** @type {Heddle} */ let heddle;
/** @type {import("node:http").Server} */ let subscriber;
/** @type {import("playwright-core").Browser} */ let chromium;
/** @type {Arrived[]} */ const arrived = [];

const TRIGGER = "/ui/triggers/team-a/orders";
const API = "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/orders";

before(async () => {
  subscriber = createServer((request, response) => {
    /** @type {Buffer[]} */
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const headers = /** @type {Record<string, string>} */ (request.headers);
      arrived.push({ path: request.url ?? "", headers, body: Buffer.concat(chunks).toString() });
      response.writeHead(204).end();
    });
  });
  await new Promise((resolve) => subscriber.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (subscriber.address());
  heddle = await Heddle.start();
  await shop(heddle, `http://127.0.0.1:${port}`);
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  subscriber?.close();
});

/** @param {Parameters<typeof openTab>[2]} [how] */
const tab = (how) => openTab(chromium, heddle, how);

/** Waits until so many keys sign. @param {number} count */
const signing = (count) => until(async () => {
  const { consumers } = await heddle.get("/heddle/v1/accounts?consumer=trigger/team-a/orders");
  return (consumers[0].signing?.keys.length ?? 0) === count;
}, `${count} keys sign`);

let published = 0;

/** Publishes an event and gives what the subscriber got. @returns {Promise<Arrived>} */
async function delivered() {
  published += 1;
  const id = `signed-${published}`;
  heddle.run("publish", "shop", "--id", id, "--type", "order.created", "--data", `{"order":${published},"für":"größer"}`);
  return until(() => arrived.find(({ path, headers, body }) => path === "/orders" && (headers["ce-id"] ?? JSON.parse(body).id) === id), `${id} arrives`);
}

/** Opens the page with its forms. @param {import("playwright-core").Page} page */
async function open(page) {
  await page.goto(heddle.control + TRIGGER);
  await page.click("#signing summary");
}

/** Presses what makes a key, and gives the key that is shown. @param {import("playwright-core").Page} page @param {string} form */
async function press(page, form) {
  await page.click(`${form} button[type=submit]`);
  await page.waitForSelector(`${form} [data-outcome=done]:not([hidden])`);
  return (await page.innerText(`${form} [data-key]`)).trim();
}

/** Ends what an earlier test began. */
async function unsigned() {
  if ((await heddle.get(API)).metadata.annotations?.["heddle.dev/signing"]) heddle.run("trigger", "sign", "team-a/orders", "--off");
  await signing(0);
}

test("a key from the page verifies what arrives, and nothing else does", async (t) => {
  await unsigned();
  const { page, faults, close } = await tab();
  await open(page);
  const key = await press(page, "#sign");
  assert.match(key, /^whsec_/);
  await signing(1);
  const webhook = new Webhook(key);
  for (const format of ["binary", "json"]) {
    heddle.apply(JSON.stringify({
      apiVersion: "eventing.knative.dev/v1", kind: "Trigger", metadata: { name: "orders", namespace: "team-a" },
      spec: { ...(await heddle.get(API)).spec, delivery: { format } },
    }));
    const one = await until(async () => {
      const found = await delivered();
      return ("ce-id" in found.headers) === (format === "binary") && found;
    }, `it is sent as ${format}`);
    const read = /** @type {any} */ (webhook.verify(one.body, one.headers));
    assert.equal((format === "json" ? read.data : read)["für"], "größer");
    assert.match(one.headers["webhook-id"], /^msg_[\w-]{43}$/);
    assert.throws(() => webhook.verify(one.body.replace("größer", "kleiner"), one.headers), /No matching signature/);
    assert.throws(() => webhook.verify(`${one.body} `, one.headers), /No matching signature/);
    assert.throws(() => webhook.verify(one.body, { ...one.headers, "webhook-id": "msg_other" }), /No matching signature/);
    const later = String(Number(one.headers["webhook-timestamp"]) + 1);
    assert.throws(() => webhook.verify(one.body, { ...one.headers, "webhook-timestamp": later }), /No matching signature/);
    const other = new Webhook(`whsec_${Buffer.alloc(32, 7).toString("base64")}`);
    assert.throws(() => other.verify(one.body, one.headers), /No matching signature/);
    t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 301_000 });
    assert.throws(() => webhook.verify(one.body, one.headers), /too old/);
    t.mock.timers.reset();
  }
  assert.deepEqual(faults, []);
  await close();
});

test("a key is shown once, and no page and no answer has it again", async () => {
  await unsigned();
  const { page, faults, close } = await tab();
  await open(page);
  const key = await press(page, "#sign");
  assert.match(await page.innerText("#sign [data-outcome=done]"), /shown only now/);
  assert.deepEqual(await serious(page), []);
  await signing(1);
  await page.click("#sign [data-outcome=done] a");
  await page.waitForSelector("#signed");
  const bare = key.slice("whsec_".length);
  const command = heddle.run("explain", "trigger", "team-a/orders");
  assert.match(command, /HMAC-SHA256 \(v1\)/);
  for (const text of [await page.content(), command, JSON.stringify(await heddle.get(API)), JSON.stringify(await heddle.get("/heddle/v1/accounts"))]) {
    assert.ok(!text.includes(bare));
  }
  const secret = await heddle.get("/api/v1/namespaces/team-a/secrets/orders-signing");
  assert.equal(Buffer.from(secret.data.key, "base64").toString(), key);
  // Another first key is refused, with what to do instead.
  assert.throws(() => heddle.run("trigger", "sign", "team-a/orders"), /--rotate/);
  assert.deepEqual(faults, []);
  await close();
});

test("while keys are rotated both verify, and afterwards the old one does not", async () => {
  await unsigned();
  const { page, faults, close } = await tab();
  await open(page);
  const first = await press(page, "#sign");
  await signing(1);
  await open(page);
  const second = await press(page, "#rotate");
  assert.match(await page.innerText("#rotate [data-outcome=done]"), /signs, too, until 20/);
  await signing(2);
  const both = await delivered();
  assert.equal(both.headers["webhook-signature"].split(" ").length, 2);
  for (const key of [first, second]) new Webhook(key).verify(both.body, both.headers);
  await open(page);
  await page.selectOption("#rotate select", "none");
  const third = await press(page, "#rotate");
  await signing(1);
  const one = await delivered();
  new Webhook(third).verify(one.body, one.headers);
  for (const key of [first, second]) assert.throws(() => new Webhook(key).verify(one.body, one.headers), /No matching signature/);
  assert.deepEqual(faults, []);
  await close();
});

test("a key pair signs, and its subscriber is given what verifies only", async () => {
  await unsigned();
  const { page, faults, close } = await tab({ width: 360 });
  await open(page);
  await page.selectOption("#sign select", "v1a");
  const key = await press(page, "#sign");
  assert.match(key, /^whpk_/);
  assert.ok((await sideways(page)) <= 0);
  await signing(1);
  const one = await delivered();
  const raw = Buffer.from(key.slice("whpk_".length), "base64");
  const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]);
  const publicKey = createPublicKey({ key: spki, format: "der", type: "spki" });
  const [version, signature] = one.headers["webhook-signature"].split(",");
  assert.equal(version, "v1a");
  /** @param {string} body */
  const holds = (body) => verify(null, Buffer.from(`${one.headers["webhook-id"]}.${one.headers["webhook-timestamp"]}.${body}`), publicKey, Buffer.from(signature, "base64"));
  assert.ok(holds(one.body) && !holds(`${one.body} `));
  assert.deepEqual(faults, []);
  await close();
});

test("signing ends from the page, and whoever only looks is told and changes nothing", async () => {
  await unsigned();
  heddle.run("trigger", "sign", "team-a/orders");
  await signing(1);
  const viewer = heddle.run("token", "create", "vera", "--role", "viewer").trim().split("\n").pop() ?? "";
  const looking = await until(async () => {
    const found = await tab({ token: viewer });
    await found.page.goto(heddle.control + TRIGGER);
    if (await found.page.locator("#signed").count()) return found;
    await found.close();
    return false;
  }, "the token is good");
  assert.equal(await looking.page.locator("#signing").count(), 0);
  await looking.close();
  const { page, faults, close } = await tab();
  await open(page);
  await page.click("#unsign button[type=submit]");
  await page.waitForSelector("#unsign [data-outcome=done]:not([hidden])");
  await signing(0);
  const plain = await delivered();
  assert.equal(plain.headers["webhook-signature"], undefined);
  await assert.rejects(heddle.get("/api/v1/namespaces/team-a/secrets/orders-signing"), /404/);
  assert.deepEqual(faults, []);
  await close();
});
