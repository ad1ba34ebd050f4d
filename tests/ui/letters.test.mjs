// Dead letters in the browser: seen by cause, tried, redriven, discarded; by those who may, and by nobody else.
// @ts-check
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Heddle, artefacts, browser, until } from "./harness.mjs";
import { byType, ids, oneTrigger, publish, resting, untilResting } from "./letters.mjs";
import { openTab, serious, sideways } from "./look.mjs";

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof byType>>} */ let subscriber;
/** @type {import("playwright-core").Browser} */ let chromium;

const CAUSES = /** @type {Record<string, import("./letters.mjs").Manner>} */ ({
  "cause.pool": { status: 503, body: (number) => `pool exhausted after ${number} ms` },
  "cause.field": { status: 400, body: () => "unknown field total" },
  "cause.boom": { status: 500, body: () => "boom" },
  "cause.late": { status: 504, body: (number) => `upstream ${number} timed out` },
  "cause.large": { status: 413, body: () => "too large" },
  "cause.odd": { status: 422, body: (number) => `order ${number} is unknown` },
  "cause.cut": { status: 0, cut: true },
});
const EACH = 60;

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

/** @param {Parameters<typeof openTab>[2]} [how] */
const tab = (how) => openTab(chromium, heddle, how);

/** Letters of a type that rest because its subscriber fails. @param {string} type @param {number} count */
async function letters(type, count, more = undefined) {
  subscriber.manners[type] = { status: 503, body: () => `${type} is down` };
  await publish(heddle, type, ids(type, count), more);
  await untilResting(heddle, `type=${encodeURIComponent(type)}`, count);
}

/** @param {import("playwright-core").Page} page @param {string} query */
async function open(page, query) {
  await page.goto(`${heddle.control}/ui/dead-letters?${query}`);
  await page.waitForSelector('main[data-page="dead-letters"]');
  await page.waitForSelector('#live[data-state="live"]');
}

/** What arrived of a type since. @param {string} type @param {number} since */
const arrived = (type, since) => subscriber.arrived.slice(since).filter((one) => one.type === type).map((one) => one.id);

test("seven causes are seven groups, and the page says what the API says", async () => {
  for (const [type, manner] of Object.entries(CAUSES)) {
    subscriber.manners[type] = manner;
    await publish(heddle, type, ids(type, type === "cause.pool" ? EACH * 2 : EACH));
  }
  await untilResting(heddle, "", EACH * 8);
  const { page, faults, close } = await tab();
  await open(page, "");
  const { groups } = await heddle.get("/heddle/v1/dead-letters/groups");
  assert.equal(groups.length, 7);
  const keys = () => page.$$eval("[data-group]", (rows) => rows.map((row) => /** @type {HTMLElement} */ (row).dataset.group));
  assert.deepEqual(await keys(), groups.map((/** @type {any} */ group) => group.key));
  const first = await page.innerText("[data-group] >> nth=0");
  assert.match(first, /120/);
  assert.match(first, /503.*pool exhausted after # ms/s);
  assert.equal(await page.getAttribute("[data-group] [data-now] >> nth=0", "data-now"), groups[0].subscriberNow);
  await page.click('nav.choice a:has-text("by type")');
  await page.waitForURL(/by=type/);
  assert.deepEqual((await keys()).sort(), Object.keys(CAUSES).map((type) => `type:${type}`).sort());
  await page.click('nav.choice a:has-text("by application")');
  await page.waitForURL(/by=application/);
  assert.equal((await keys()).length, 1);
  await page.goBack();
  await page.goBack();
  await page.waitForFunction(() => document.querySelectorAll("[data-group]").length === 7);
  await page.click('[data-group] a:has-text("pool exhausted")');
  await page.waitForURL(/group=cause/);
  assert.equal(await page.locator("[data-group]").count(), 1);
  assert.match(await page.innerText("p.lead"), /120 events at rest/);
  // The command that stands there gives the same.
  const command = (await page.getAttribute(".behind [data-copy]", "data-copy")) ?? "";
  const [, key] = command.match(/--group (\S+)/) ?? [];
  assert.equal(JSON.parse(heddle.run("dead-letters", "list", "--group", key, "-o", "json")).total, 120);
  assert.deepEqual(faults, []);
  await close();
});

test("a preview is what happens, and what comes to rest meanwhile is not taken", async () => {
  await letters("meanwhile", 12);
  const { page, faults, close } = await tab();
  await open(page, "type=meanwhile");
  await page.click('[data-group] a:has-text("Redrive 12")');
  await page.waitForSelector("dialog[open] form.act:not([hidden])");
  assert.equal(await page.getAttribute("dialog [data-count]", "data-count"), "12");
  assert.match(await page.innerText("#act"), /trigger\/team-a\/all/);
  await page.screenshot({ path: join(artefacts, "letters-preview.png") });
  await publish(heddle, "meanwhile", ids("late", 3));
  await untilResting(heddle, "type=meanwhile", 15);
  subscriber.manners.meanwhile = { status: 200 };
  const since = subscriber.arrived.length;
  await page.click('dialog button:has-text("Redrive 12")');
  await page.waitForSelector('dialog [data-outcome="done"]:not([hidden])');
  assert.match(await page.innerText("dialog [data-outcome=done]"), /12 on their way again/);
  await untilResting(heddle, "type=meanwhile", 3);
  await until(() => arrived("meanwhile", since).length === 12, "twelve arrive");
  assert.deepEqual(arrived("meanwhile", since).sort(), ids("meanwhile", 12).sort());
  await page.click("dialog a[data-close] >> visible=true");
  await page.waitForFunction(() => !document.querySelector("dialog[open]"));
  await page.waitForFunction(() => document.querySelectorAll("[data-letter]").length === 3);
  assert.deepEqual(faults, []);
  await close();
});

test("one is tried, says what its subscriber said, and offers the rest", async () => {
  await letters("tried", 5);
  const { page, faults, close } = await tab();
  await open(page, "type=tried");
  await page.click('[data-group] a:has-text("Try one")');
  await page.click('dialog button:has-text("Try this one")');
  await page.waitForSelector('dialog [data-outcome="deadLettered"]:not([hidden])');
  const failed = await page.innerText('dialog [data-outcome="deadLettered"]');
  assert.match(failed, /It answered 503/);
  assert.match(failed, /tried is down/);
  await page.screenshot({ path: join(artefacts, "letters-tried.png") });
  await page.click('dialog [data-outcome="deadLettered"] a:has-text("Close")');
  subscriber.manners.tried = { status: 200 };
  await page.click('[data-group] a:has-text("Try one")');
  await page.click('dialog button:has-text("Try this one")');
  await page.waitForSelector('dialog [data-outcome="delivered"]:not([hidden])');
  assert.match(await page.innerText('dialog [data-outcome="delivered"]'), /It answered 200/);
  assert.equal(await resting(heddle, "type=tried"), 4);
  await page.click('dialog a:has-text("Redrive the other 4")');
  await page.click('dialog button:has-text("Redrive 4")');
  await page.waitForSelector('dialog [data-outcome="done"]:not([hidden])');
  await untilResting(heddle, "type=tried", 0);
  assert.deepEqual(faults, []);
  await close();
});

test("a group is marked with a note, is told apart, and opens again when it recurs", async () => {
  await letters("marked", 3);
  const { page, faults, close } = await tab();
  await open(page, "type=marked");
  await page.click('[data-group] a:text-is("Mark")');
  await page.waitForSelector('main[data-page="dead-letter-mark"] form.send:not([hidden])');
  await page.selectOption('form.send select[name="as"]', "ignored");
  await page.fill('form.send input[name="note"]', "the <b>pool</b> is being mended");
  await page.fill('form.send input[name="more"]', "1");
  await page.screenshot({ path: join(artefacts, "letters-mark.png"), fullPage: true });
  await page.click("form.send button.primary");
  await page.waitForSelector('main[data-page="dead-letters"] [data-mark="ignored"][data-holds="true"]');
  assert.match(await page.innerText('[data-mark="ignored"]'), /ignored until .*the <b>pool<\/b> is being mended/);
  assert.equal(await page.innerText('p.lead [data-marked="ignored"]'), "3 ignored");
  assert.match(heddle.run("dead-letters", "list", "--by", "cause"), /ignored until/);
  const recur = async (/** @type {string} */ prefix, /** @type {number} */ count) => {
    await publish(heddle, "marked", ids(prefix, 1));
    await untilResting(heddle, "type=marked", count);
  };
  await recur("expected", 4);
  await open(page, "type=marked");
  assert.equal(await page.getAttribute("[data-mark]", "data-holds"), "true");
  await recur("beyond", 5);
  await page.waitForSelector('[data-mark="ignored"][data-holds="false"]');
  assert.match(await page.innerText("[data-mark]"), /recurred; was ignored/);
  await page.click('[data-group]:has([data-mark]) a:text-is("Mark")');
  await page.waitForSelector("#marked form.send:not([hidden])");
  await page.click("#marked button");
  await page.waitForSelector('main[data-page="dead-letters"]');
  await open(page, "type=marked");
  assert.equal(await page.locator("[data-mark]").count(), 0);
  heddle.run("dead-letters", "discard", "--type", "marked", "--yes");
  assert.deepEqual(faults, []);
  await close();
});

test("discarding asks for the number to be typed", async () => {
  await letters("thrown", 4);
  const { page, faults, close } = await tab();
  await open(page, "type=thrown");
  await page.click('[data-group] a:has-text("Discard 4")');
  const field = page.locator("dialog input[name=typed]");
  for (const wrong of ["", "3", "44", "4 "]) {
    await field.fill(wrong);
    await page.click('dialog button:has-text("Discard 4")');
    assert.equal(await page.locator('dialog [data-outcome="done"]:not([hidden])').count(), 0, wrong);
  }
  assert.equal(await resting(heddle, "type=thrown"), 4);
  await field.fill("4");
  await page.click('dialog button:has-text("Discard 4")');
  await page.waitForSelector('dialog [data-outcome="done"]:not([hidden])');
  assert.equal(await resting(heddle, "type=thrown"), 0);
  assert.deepEqual(faults, []);
  await close();
});

test("rows are chosen and redriven without a mouse", async () => {
  await letters("chosen", 6);
  subscriber.manners.chosen = { status: 200 };
  const { page, faults, close } = await tab();
  await open(page, "type=chosen");
  // The first row is that of the group.
  for (const key of ["j", "j", "j", "x", "j", "j", "Shift+X"]) await page.keyboard.press(key);
  assert.equal(await page.locator("[data-letter] input:checked").count(), 3);
  assert.match(await page.innerText("[data-chosen]"), /3 selected/);
  const wanted = await page.$$eval("[data-letter]:has(input:checked) th a", (links) => links.map((link) => link.textContent));
  // A selection outlasts what changes behind it.
  await publish(heddle, "unrelated", ["unrelated-1"]);
  await page.waitForTimeout(5_500);
  assert.equal(await page.locator("[data-letter] input:checked").count(), 3);
  await page.focus('button:has-text("Redrive selected")');
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open] form.act:not([hidden])");
  const since = subscriber.arrived.length;
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ""), /Redrive 3/);
  await page.keyboard.press("Enter");
  await page.waitForSelector('dialog [data-outcome="done"]:not([hidden])');
  await until(() => arrived("chosen", since).length === 3, "three arrive");
  assert.deepEqual(arrived("chosen", since).sort(), wanted.sort());
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector("dialog[open]"));
  await page.click('button:has-text("Redrive selected")');
  await page.waitForSelector('dialog h1:has-text("Nothing is selected")');
  await page.keyboard.press("Escape");
  await page.click('a:has-text("Redrive all 3")');
  await page.click('dialog button:has-text("Redrive 3")');
  await untilResting(heddle, "type=chosen", 0);
  assert.deepEqual(faults, []);
  await close();
});

test("a request that fails says so, and nothing is lost", async () => {
  await letters("failing", 3);
  const { page, close } = await tab();
  await open(page, "type=failing");
  await page.click('[data-group] a:has-text("Discard 3")');
  await page.fill("dialog input[name=typed]", "3");
  await page.route("**/heddle/v1/dead-letters/discard", (route) => route.abort());
  await page.click('dialog button:has-text("Discard 3")');
  await page.waitForSelector("dialog [data-fault-of=silence]:not([hidden])");
  await page.unroute("**/heddle/v1/dead-letters/discard");
  await page.route("**/heddle/v1/dead-letters/discard", (route) => route.fulfill({ status: 503, contentType: "application/json", body: '{"code":"closing","message":"the server is closing; ask again in a moment"}' }));
  await page.click('dialog button:has-text("Discard 3")');
  await page.waitForSelector('dialog [data-fault]:has-text("ask again in a moment")');
  assert.equal(await page.locator("dialog [data-fault-of=silence]:not([hidden])").count(), 0);
  await page.unroute("**/heddle/v1/dead-letters/discard");
  assert.equal(await page.inputValue("dialog input[name=typed]"), "3");
  assert.equal(await resting(heddle, "type=failing"), 3);
  await page.click('dialog button:has-text("Discard 3")');
  await untilResting(heddle, "type=failing", 0);
  await close();
});

test("a viewer sees all of it and nothing to press", async () => {
  await letters("viewed", 2);
  const token = heddle.run("token", "create", "vic", "--role", "viewer", "-n", "team-a").trim();
  const { page, faults, close } = await tab({ token });
  await open(page, "type=viewed");
  assert.equal(await page.locator("[data-letter]").count(), 2);
  assert.equal(await page.locator("main form.act, main input[type=checkbox], main a[data-dialog], main button:not(.copy):not(form.fields button)").count(), 0);
  await page.click("[data-letter] th a >> nth=0");
  await page.waitForSelector('main[data-page="dead-letter"]');
  assert.equal(await page.locator("main a[data-dialog]").count(), 0);
  assert.match(await page.innerText("main"), /not shown: it is for those who may read/);
  await page.click('a:has-text("Compare")');
  await page.waitForSelector("#compared");
  await page.goto(`${heddle.control}/ui/trace?id=viewed-0`);
  await page.waitForSelector('main[data-page="event"]');
  assert.equal(await page.locator("main a[data-dialog]").count(), 0);
  assert.deepEqual(faults, []);
  // Whoever goes there by hand is told, and not by an error of the page.
  const refused = await page.goto(`${heddle.control}/ui/dead-letters/preview?act=redrive&type=viewed`);
  assert.equal(refused?.status(), 403);
  await close();
  const other = await openTab(chromium, heddle, { token: heddle.run("token", "create", "eve", "--role", "operator", "-n", "team-b").trim() });
  await open(other.page, "");
  assert.equal(await other.page.locator("[data-letter], [data-group]").count(), 0);
  await other.close();
});

test("a dead letter beside one that was delivered shows the missing field", async () => {
  const type = 'compare "quoted" \\ type';
  subscriber.manners[type] = { status: 200 };
  await publish(heddle, type, ["good"], () => ({ region: "eu", data: { order: 1, total: 17, lines: [{ sku: "a" }] } }));
  await until(() => subscriber.arrived.some((one) => one.id === "good"), "one is delivered");
  subscriber.manners[type] = { status: 400, body: () => "total is missing" };
  await publish(heddle, type, ["bad"], () => ({ data: { order: "2", lines: [{ sku: "a" }] } }));
  await untilResting(heddle, `type=${encodeURIComponent(type)}`, 1);
  const { page, faults, close } = await tab();
  await open(page, `type=${encodeURIComponent(type)}`);
  await page.click("[data-letter] th a");
  await page.waitForSelector('main[data-page="dead-letter"]');
  await page.click('a:has-text("Compare")');
  await page.waitForSelector("#compared tbody tr");
  const fields = await page.$$eval("#compared [data-field]", (rows) => rows.map((row) => [/** @type {HTMLElement} */ (row).dataset.field, /** @type {HTMLElement} */ (row).dataset.change]));
  assert.deepEqual(fields, [["data.total", "missing here"], ["region", "missing here"], ["data.order", "of another type"]]);
  await page.screenshot({ path: join(artefacts, "letters-compare.png"), fullPage: true });
  await page.click('a:has-text("Redrive…")');
  await page.waitForSelector('dialog [data-hint="notCuredByRepeating"]');
  await page.keyboard.press("Escape");
  await page.click('a:has-text("Discard…")');
  await page.fill("dialog input[name=typed]", "1");
  await page.click('dialog button:has-text("Discard 1")');
  await untilResting(heddle, `type=${encodeURIComponent(type)}`, 0);
  assert.deepEqual(faults.filter((fault) => !fault.includes("404")), []);
  await close();
});

test("what strangers wrote is text", async () => {
  const nasty = "<img src=x onerror=alert(1)><script>alert(2)</script>\u0007\u202e javascript:alert(3)";
  subscriber.manners.nasty = { status: 500, body: () => `${nasty} <a href="javascript:alert(4)">` };
  const more = (/** @type {string} */ id) => ({
    subject: "<b>javascript:alert(5)", data: id === "nasty-2" ? "x".repeat(300_000) : { [nasty]: nasty, exact: 0, link: "javascript:alert(6)" },
  });
  await publish(heddle, "nasty", ["nasty-1", "nasty-2", "<script>alert(7)</script>"], more);
  await untilResting(heddle, "type=nasty", 3);
  const { page, faults, close } = await tab();
  await open(page, "type=nasty");
  assert.match(await page.innerText("#groups"), /<img src=x onerror=alert\(#\)>/);
  for (const letter of (await heddle.get("/heddle/v1/dead-letters?type=nasty")).items) {
    await page.goto(`${heddle.control}/ui/dead-letters/${letter.name}?compare=1`);
    await page.waitForSelector('main[data-page="dead-letter"]');
    for (const act of ["try", "redrive", "discard"]) {
      await page.goto(`${heddle.control}/ui/dead-letters/preview?act=${act}&name=${letter.name}`);
      await page.waitForSelector('main[data-page="dead-letter-preview"] form.act:not([hidden])');
    }
    await page.goto(`${heddle.control}/ui/trace?id=${encodeURIComponent(letter.id)}`);
    await page.waitForSelector('main[data-page="event"]');
    const markup = await page.evaluate(() => document.querySelectorAll("main img, main script, main b, main a[href^=javascript]").length);
    assert.equal(markup, 0);
  }
  await open(page, "type=nasty");
  await page.click('[data-group] a:has-text("Try one")');
  await page.click('dialog button:has-text("Try this one")');
  await page.waitForSelector('dialog [data-outcome="deadLettered"]:not([hidden])');
  assert.match(await page.innerText('dialog [data-outcome="deadLettered"] pre.answered'), /<script>alert\(2\)/);
  assert.equal(await page.locator("dialog img, dialog script, dialog a[href^=javascript]").count(), 0);
  assert.deepEqual(faults, []);
  await close();
});

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  for (const width of [1440, 360]) {
    test(`pages and dialogs, ${colorScheme}, ${width} px`, async () => {
      const { page, faults, close } = await tab({ width, height: width < 500 ? 740 : 900, colorScheme });
      await open(page, "");
      const shot = (/** @type {string} */ name) => page.screenshot({ path: join(artefacts, `letters-${name}-${colorScheme}-${width}.png`), fullPage: true });
      const group = '[data-group]:has-text("pool exhausted")';
      await shot("list");
      assert.equal(await sideways(page), 0, "the list");
      assert.deepEqual(await serious(page), []);
      for (const act of ["Try one", "Redrive", "Discard"]) {
        await page.click(`${group} a.button:has-text("${act}")`);
        await page.waitForSelector("dialog[open] form.act:not([hidden])");
        await shot(act.replace(" ", "-"));
        assert.equal(await sideways(page), 0, act);
        assert.equal(await page.evaluate(() => { const dialog = document.getElementById("act"); return (dialog?.scrollWidth ?? 0) - (dialog?.clientWidth ?? 0); }), 0, act);
        assert.deepEqual(await serious(page), []);
        await page.keyboard.press("Escape");
      }
      assert.deepEqual(faults, []);
      await close();
    });
  }
}

test("without a script everything is shown, with the commands", async () => {
  const { page, faults, close } = await tab({ javaScriptEnabled: false });
  await page.goto(`${heddle.control}/ui/dead-letters?type=cause.boom`);
  await page.check("[data-letter] input >> nth=0");
  await page.check("[data-letter] input >> nth=1");
  await page.click('button:has-text("Redrive selected")');
  assert.match(await page.innerText("main"), /Redrive 2 dead letters/);
  assert.match(await page.innerText("main"), /\$ heddle dead-letters redrive \d+ \d+/);
  assert.equal(await page.locator("main button >> visible=true").count(), 0);
  assert.deepEqual(faults, []);
  await close();
});

test("a session with both of its halves may, and its cookie alone may not", async () => {
  await letters("halves", 2);
  subscriber.manners.halves = { status: 200 };
  const { page, faults, close } = await tab({ token: "" });
  await page.goto(`${heddle.control}/ui/dead-letters?type=halves`);
  await page.fill("input[name=token]", heddle.token);
  await page.click("button[type=submit]");
  await page.waitForSelector('[data-group] a:has-text("Redrive 2")');
  const alone = await page.evaluate(async () => {
    const answer = await fetch("/heddle/v1/dead-letters/redrive", { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"type":"halves"}' });
    return answer.status;
  });
  assert.equal(alone, 401);
  assert.equal(await resting(heddle, "type=halves"), 2);
  await page.click('[data-group] a:has-text("Redrive 2")');
  await page.click('dialog button:has-text("Redrive 2")');
  await untilResting(heddle, "type=halves", 0);
  assert.deepEqual(faults.filter((fault) => !fault.includes("401")), []);
  await close();
});
