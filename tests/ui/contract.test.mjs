// Every page is made from an answer that everybody can have: the command and the request at its bottom give the same one.
// @ts-check
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { Heddle, binary, browser, shop, subscriber, until } from "./harness.mjs";
import { openTab } from "./look.mjs";

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof subscriber>>} */ let subscribers;
/** @type {import("playwright-core").Browser} */ let chromium;

before(async () => {
  subscribers = await subscriber();
  subscribers.answers["/refunds"] = 503;
  heddle = await Heddle.start();
  await shop(heddle, subscribers.url);
  for (const id of ["ord-1", "ord-2"]) heddle.run("publish", "shop", "--id", id, "--type", "order.cancelled", "--data", '{"exact":9007199254740993}');
  await until(async () => (await heddle.get("/heddle/v1/dead-letters")).total === 2, "two letters are dead");
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  subscribers?.close();
});

/** What moves on while nobody does anything: ages, moments and what was counted since. */
const MOVING = /^(at|evidence|ageSeconds|endToEndSeconds|lastProbe|freeBytes|heartbeat|fullIn|forecasts|diskFull|ratePerS)$/;

/** The same without what moves, and a list of objects as it is however it is wrapped. @param {any} value @returns {any} */
function still(value) {
  if (Array.isArray(value)) return value.map(still);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(([key, inner]) => !MOVING.test(key) && key !== "managedFields" && inner !== undefined);
  return Object.fromEntries(kept.map(([key, inner]) => [key, still(inner)]));
}

/** What a list lists: `heddle get` and kubectl have their own words around it, and `heddle catalog` none. @param {any} body */
function content(body) {
  if (/List$/.test(body?.kind ?? "")) return body.items.map((/** @type {any} */ item) => ({ ...item, apiVersion: undefined, kind: undefined }));
  return Array.isArray(body?.services) && Object.keys(body).length === 1 ? body.services : body;
}

/** Runs what can be pasted into a shell. @param {string} command */
function run(command) {
  assert.match(command, /^heddle /);
  const line = / -o json\b/.test(command) ? command : `${command} -o json`;
  const shell = `heddle() { "${binary}" "$@"; }\n${line}`;
  try {
    return execFileSync("sh", ["-c", shell], { env: heddle.env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    // Health that is not well and a doctor that found something say so by their status too.
    const failed = /** @type {any} */ (error);
    assert.equal(failed.status, 1, `${line}: ${failed.stderr}`);
    return failed.stdout;
  }
}

const PAGES = [
  "/ui/",
  "/ui/applications",
  "/ui/applications/shop",
  "/ui/applications/shop?ns=team-a",
  "/ui/triggers/team-a/refunds",
  "/ui/triggers/team-a/refunds/resend",
  "/ui/objects/broker/team-a/default",
  "/ui/subscribe",
  "/ui/types",
  "/ui/delays?by=type&since=2026-01-01T00%3A00%3A00Z&until=2026-02-01T00%3A00%3A00Z",
  "/ui/publish",
  "/ui/events",
  "/ui/events?q=type%3Aorder.cancelled",
  "/ui/trace?id=ord-1",
  "SOURCE",
  "/ui/dead-letters",
  "/ui/dead-letters?namespace=team-a",
  "LETTER",
  "/ui/catalog?ns=team-a",
  "/ui/instances",
  "/ui/registries",
  "/ui/checks",
  "/ui/audit?user=system%3Aadmin",
];

test("the command at the bottom of a page gives what the request beside it gives", async () => {
  const { page, close } = await openTab(chromium, heddle, { javaScriptEnabled: false });
  const letter = (await heddle.get("/heddle/v1/dead-letters")).items[0];
  /** @type {string[]} */
  const different = [];
  for (const path of PAGES) {
    const address = path.replace("LETTER", `/ui/dead-letters/${encodeURIComponent(letter.name)}`).replace("SOURCE", `/ui/trace?id=ord-1&source=${encodeURIComponent(letter.source)}`);
    await page.goto(heddle.control + address);
    const command = (await page.getAttribute("footer.behind [data-copy]", "data-copy")) ?? "";
    const request = (await page.getAttribute("footer.behind a.request", "href")) ?? "";
    assert.ok(command && request, `${address}: ${command} ${request}`);
    try {
      // What was still under way may have ended between the two.
      await until(async () => {
        const [told, asked] = [JSON.parse(run(command)), await heddle.get(request)];
        assert.deepEqual(still(content(told)), still(content(asked)));
        return true;
      }, `${command} and ${request} say the same`, 3_000);
    } catch (error) {
      different.push(`${address}: ${error}`);
    }
  }
  assert.deepEqual(different, []);
  await close();
});

test("the address that a command prints is the page about the same", async () => {
  const { page, faults, close } = await openTab(chromium, heddle);
  const letter = (await heddle.get("/heddle/v1/dead-letters")).items[0].name;
  for (const [line, name, text] of [
    [["trace", "ord-2", "--link"], "event", "ord-2"],
    [["explain", "trigger", "team-a/refunds", "--link"], "trigger", "refunds"],
    [["dead-letters", "show", letter, "--link"], "dead-letter", "order.cancelled"],
  ]) {
    const address = heddle.run(.../** @type {string[]} */ (line)).trim();
    assert.ok(address.startsWith(`${heddle.control}/ui/`), address);
    await page.goto(address);
    await page.waitForSelector(`main[data-page="${name}"]`);
    assert.ok((await page.textContent("main"))?.includes(String(text)), address);
  }
  assert.deepEqual(faults, []);
  await close();
});
