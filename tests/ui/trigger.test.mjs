// The page of a trigger: a filter tried while it is typed, brought into force and taken back; pauses; test events; a new
// subscriber; types. With whoever may only look, narrow and dark, and with much to look at.
// @ts-check
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Heddle, artefacts, browser, shop, subscriber, until } from "./harness.mjs";
import { openTab, serious, sideways } from "./look.mjs";

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof subscriber>>} */ let subscribers;
/** @type {import("playwright-core").Browser} */ let chromium;
/** @type {string} */ let viewer;

const TRIGGER = "/ui/triggers/team-a/orders";
const API = "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/orders";

before(async () => {
  subscribers = await subscriber();
  heddle = await Heddle.start();
  await shop(heddle, subscribers.url);
  for (let number = 1; number <= 12; number += 1) {
    const type = number % 3 === 0 ? "order.cancelled" : "order.created";
    heddle.run("publish", "shop", "--id", `ord-${number}`, "--type", type, "--subject", number % 2 ? "eu-1" : "us-1", "--data", `{"order":${number},"exact":9007199254740993}`);
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

/** The numbers of what was tried. @param {import("playwright-core").Page} page */
async function tried(page) {
  const place = page.locator("#tried[data-examined]");
  return [Number(await place.getAttribute("data-examined")), Number(await place.getAttribute("data-matched"))];
}

/** Waits until what is shown is about this text. @param {import("playwright-core").Page} page @param {string} text */
async function type(page, text) {
  await page.fill("#filters", text);
  await page.waitForFunction((wanted) => {
    const shown = new URLSearchParams(location.search).get("filters");
    return shown === wanted && document.querySelector("#tried[data-settled]:not([aria-busy])");
  }, text);
}

test("a filter is tried while it is typed, as heddle explain tries it", async () => {
  const { page, faults, close } = await tab();
  await page.goto(heddle.control + TRIGGER);
  await page.waitForSelector("#tried[data-matched]");
  for (const text of [
    "exact type = order.created", "prefix subject = eu-\nsuffix type = .created", "cesql subject LIKE 'eu-%' AND type <> 'order.created'", "",
    '{"any": [{"exact": {"type": "order.cancelled"}}, {"not": {"prefix": {"subject": "eu-"}}}]}',
  ]) {
    await type(page, text);
    const explained = JSON.parse(heddle.run("explain", "trigger", "team-a/orders", "--filters", text, "-o", "json")).explanation;
    assert.deepEqual(await tried(page), [explained.examined, explained.matched], text);
    const difference = page.locator("#difference");
    assert.equal(Number(await difference.getAttribute("data-gained")), explained.difference?.gained ?? 0, text);
    assert.equal(Number(await difference.getAttribute("data-lost")), explained.difference?.lost ?? 0, text);
    const reasons = await page.$$eval("#reasons tbody tr", (rows) => rows.map((row) => [Number(row.children[0].textContent), row.children[1].textContent]));
    assert.deepEqual(reasons, (explained.reasons ?? []).map((/** @type {any} */ reason) => [reason.count, reason.reason]), text);
    // The same text in another browser shows the same, and so it does without a script.
    const plain = await tab({ javaScriptEnabled: false });
    await plain.page.goto(page.url());
    assert.deepEqual(await tried(plain.page), [explained.examined, explained.matched], text);
    await plain.close();
  }
  assert.deepEqual(faults, []);
  await close();
});

test("what cannot be read is pointed at, and the newest answer wins", async () => {
  const { page, faults, close } = await tab();
  await page.goto(heddle.control + TRIGGER);
  await page.waitForSelector("#tried[data-matched]");
  await type(page, "exact type = order.created\ncesql subject LIKE");
  assert.match(await page.innerText("#tried [role=alert]"), /Line 2, character 1\d/);
  assert.equal(await page.locator("#tried pre.misread mark").count(), 1);
  await page.locator("#filters").pressSequentially(" 'eu-%'", { delay: 20 });
  await page.waitForSelector("#tried[data-matched]:not([aria-busy])");
  assert.equal(await page.inputValue("#filters"), "exact type = order.created\ncesql subject LIKE 'eu-%'");
  assert.deepEqual(await tried(page), [12, 4]);
  assert.deepEqual(faults, []);
  await close();
});

test("each term is told of one event, and a click on an attribute asks for it", async () => {
  const { page, faults, close } = await tab();
  await page.goto(heddle.control + TRIGGER);
  await page.waitForSelector("#sample");
  await type(page, "exact type = order.created\nprefix subject = us-");
  const holds = await page.$$eval("#terms li", (terms) => terms.map((term) => /** @type {any} */ (term).dataset.holds));
  assert.deepEqual(holds, ["true", "true"]);
  await type(page, "");
  await page.click('#sample dl.attributes a:text-is("/heddle/publish")');
  await page.waitForFunction(() => /** @type {any} */ (document.querySelector("#filters")).value.includes("source"));
  await page.waitForSelector("#tried:not([aria-busy]) #terms li");
  const [examined, matched] = await tried(page);
  assert.ok(examined === 12 && matched === 12, `${examined} ${matched}`);
  assert.deepEqual(faults, []);
  await close();
});

test("the whole log is looked through in pieces, and is all of it", async () => {
  const { page, close } = await tab();
  await page.goto(heddle.control + TRIGGER);
  await page.waitForSelector("#tried[data-matched]");
  await page.fill("#filters", "exact type = order.cancelled");
  await page.click('button[name="whole"]');
  await page.waitForFunction(() => document.querySelector("#tried[data-matched]:not([aria-busy])") && location.search.includes("whole"));
  assert.deepEqual(await tried(page), [12, 4]);
  await close();
});

test("a filter is brought into force as it was looked at, says from where, and is taken back", async () => {
  const { page, faults, close } = await tab();
  await page.goto(heddle.control + TRIGGER);
  await page.waitForSelector("#tried[data-matched]");
  const before = await page.inputValue("#filters");
  await type(page, "exact type = order.cancelled");
  assert.match(await page.innerText("#change pre"), /\+ .*order\.cancelled/);
  // Somebody else is faster: nothing is overwritten.
  heddle.run("trigger", "pause", "team-a/orders", "--reason", "meanwhile");
  await page.click("#change button.primary");
  await page.waitForSelector("#change .fault:not([hidden])");
  assert.match(await page.innerText("#change .fault"), /Somebody changed it/);
  assert.notDeepEqual((await heddle.get(API)).spec.filters, [{ exact: { type: "order.cancelled" } }]);
  heddle.run("trigger", "resume", "team-a/orders");
  await page.goto(page.url());
  await page.waitForSelector("#change button.primary");
  await page.click("#change button.primary");
  await page.waitForSelector("#changed");
  assert.deepEqual((await heddle.get(API)).spec.filters, [{ exact: { type: "order.cancelled" } }]);
  await until(async () => {
    await page.goto(page.url());
    return /It holds from place/.test(await page.innerText("#changed"));
  }, "the place is told");
  const account = (await heddle.get("/heddle/v1/accounts?consumer=trigger/team-a/orders")).consumers[0];
  assert.ok((await page.innerText("#changed strong")).replaceAll(",", "") === String(account.filterFrom));
  const command = (await page.getAttribute("#changed [data-copy]", "data-copy")) ?? "";
  const text = /filter team-a\/orders '((?:.|\n)*)'/.exec(command)?.[1] ?? "";
  assert.equal(text, before);
  heddle.run("trigger", "filter", "team-a/orders", text);
  await page.goto(heddle.control + TRIGGER);
  assert.equal(await page.inputValue("#filters"), before);
  // The browser itself complains of the conflict.
  assert.deepEqual(faults.filter((fault) => !fault.includes("409")), []);
  await close();
});

test("a pause keeps events, says who and why, and lets all of them go", async () => {
  const { page, faults, close } = await tab();
  await page.goto(heddle.control + TRIGGER);
  await page.click("#pausing summary");
  await page.fill('#pausing input[name="reason"]', "the pool is being mended");
  await page.selectOption('#pausing select[name="until"]', "3600");
  await page.click("#pausing button.primary");
  await page.waitForSelector("#paused");
  const annotations = (await heddle.get(API)).metadata.annotations;
  const left = Date.parse(annotations["heddle.dev/paused-until"]) - Date.now();
  assert.ok(left > 3_500_000 && left <= 3_601_000, `${left}`);
  assert.match(await page.innerText("#paused"), /the pool is being mended/);
  assert.ok((await page.innerText("#paused")).includes(annotations["heddle.dev/paused-by"]));
  heddle.run("publish", "shop", "--id", "kept-1", "--type", "order.created");
  await until(async () => {
    await page.goto(page.url());
    return /Waiting\s*1,/.test(await page.innerText("#paused"));
  }, "one event waits");
  assert.ok(!subscribers.arrived.some((event) => event.id === "kept-1"));
  await page.screenshot({ path: join(artefacts, "trigger-paused.png"), fullPage: true });
  await page.click("#paused button.primary");
  await page.waitForSelector("#pausing");
  await until(() => subscribers.arrived.some((event) => event.id === "kept-1"), "what was kept is delivered");
  assert.deepEqual(faults, []);
  await close();
});

test("stored events are sent again after a preview, and the page says how far it is", async () => {
  const { page, faults, close } = await tab();
  const account = async () => (await heddle.get("/heddle/v1/accounts?consumer=trigger/team-a/orders")).consumers[0];
  heddle.run("publish", "shop", "--id", "sent-again", "--type", "order.created");
  await until(() => subscribers.arrived.some((event) => event.id === "sent-again"), "it is delivered");
  const before = await account();
  await page.goto(heddle.control + TRIGGER);
  await page.click('section a:has-text("Send stored events")');
  await page.waitForSelector('main[data-page="trigger-resend"]');
  await page.fill("#query", "since:1d id:sent-again");
  await page.click('button:has-text("Preview")');
  await page.waitForSelector("#preview [data-count]");
  assert.equal(await page.getAttribute("#preview [data-count]", "data-count"), "1");
  assert.match(await page.innerText("#preview"), /Oldest\s*sent-again/);
  assert.equal((await account()).sentAgain, before.sentAgain, "a preview does nothing");
  await page.screenshot({ path: join(artefacts, "trigger-resend.png"), fullPage: true });
  await page.click('#preview button:has-text("Send 1 again")');
  await page.waitForSelector('[data-outcome="begun"]:not([hidden])');
  await page.click('[data-outcome="begun"]:not([hidden]) a');
  await page.waitForSelector('#ended [data-state="done"]');
  await until(() => subscribers.arrived.filter((event) => event.id === "sent-again").length === 2, "it comes a second time");
  await until(async () => (await account()).sentAgain === (before.sentAgain ?? 0) + 1, "the account says so");
  await page.goto(heddle.control + TRIGGER);
  assert.match(await page.innerText("[data-sent-again]"), /sent again/);
  assert.deepEqual(faults, []);
  await close();
});

test("a pause with a time ends by itself", async () => {
  heddle.run("trigger", "pause", "team-a/orders", "--until", new Date(Date.now() + 3000).toISOString());
  const held = async () => (await heddle.get("/heddle/v1/accounts?consumer=trigger/team-a/orders")).consumers[0].held;
  await until(held, "it is paused");
  heddle.run("publish", "shop", "--id", "kept-2", "--type", "order.created");
  await until(() => subscribers.arrived.some((event) => event.id === "kept-2"), "it goes on by itself");
  await until(async () => (await held()) === undefined, "it says so");
});

test("a rate is looked at with what it costs, holds, and is taken away again", async () => {
  const { page, faults, close } = await tab();
  await page.goto(heddle.control + TRIGGER);
  await page.click("#rating summary");
  await page.fill('#rating input[name="rate"]', "fast");
  await page.click("#rating form button");
  await page.waitForSelector("#rating .fault");
  assert.match(await page.innerText("#rating .fault"), /such as 100\/s/);
  await page.fill('#rating input[name="rate"]', "1/h");
  await page.click("#rating form button");
  await page.waitForSelector("#rated");
  assert.match(await page.innerText("#rated pre"), /\+ .*heddle\.dev\/rate: 1\/h/);
  assert.equal((await heddle.get(API)).metadata.annotations?.["heddle.dev/rate"], undefined, "nothing happened yet");
  await page.screenshot({ path: join(artefacts, "trigger-rate.png"), fullPage: true });
  await page.click("#rated button.primary");
  await page.waitForSelector("#pausing");
  assert.equal((await heddle.get(API)).metadata.annotations["heddle.dev/rate"], "1/h");
  const account = async () => (await heddle.get("/heddle/v1/accounts?consumer=trigger/team-a/orders")).consumers[0];
  await until(async () => (await account()).rate === "1/h", "it is in force");
  for (const id of ["paced-1", "paced-2", "paced-3"]) heddle.run("publish", "shop", "--id", id, "--type", "order.created");
  await until(async () => (await account()).pending >= 2, "they wait");
  await page.goto(heddle.control + TRIGGER);
  assert.match(await page.innerText("#paced"), /1\/h at most, at which what waits takes \d/);
  heddle.run("trigger", "rate", "team-a/orders", "none");
  await until(() => subscribers.arrived.some((event) => event.id === "paced-3"), "without a rate all are sent");
  assert.deepEqual(faults, []);
  await close();
});

test("a test event goes through the door, says who sent it, and leads to its trace", async () => {
  const { page, faults, close } = await tab();
  heddle.run("publish", "shop", "--id", "sampled", "--type", "order.created", "--data", '{"exact":9007199254740993}');
  const sample = (await heddle.get("/heddle/v1/trace?id=sampled")).events[0].offset;
  await page.goto(`${heddle.control}/ui/publish?sample=${sample}`);
  await page.waitForSelector("form.send:not([hidden])");
  assert.match(await page.inputValue('textarea[name="data"]'), /9007199254740993/);
  await page.fill('input[name="subject"]', "by hand");
  await page.click("form.send button.primary");
  await page.waitForSelector('main[data-page="event"]');
  const { id, source } = Object.fromEntries(new URL(page.url()).searchParams);
  const trace = await heddle.get(`/heddle/v1/trace?id=${id}&source=${source}`);
  const whole = await heddle.get(`/heddle/v1/events/${trace.events[0].offset}`);
  assert.equal(whole.event.subject, "by hand");
  assert.notEqual(whole.event.heddlesentby ?? "", "");
  const delivered = (/** @type {any} */ verdict) => verdict.consumer === "trigger/team-a/orders" && verdict.state === "delivered";
  await until(async () => (await heddle.get(`/heddle/v1/trace?id=${id}&source=${source}`)).events[0].verdicts.some(delivered), "it is delivered");
  assert.deepEqual(faults, []);
  await close();
});

test("a new subscriber comes from a page to its first event", async () => {
  const { page, faults, close } = await tab();
  await page.goto(`${heddle.control}/ui/subscribe`);
  await page.click('a[data-filters]:text-is("order.created")');
  await page.waitForFunction(() => /** @type {any} */ (document.querySelector("#filters")).value === "exact type = order.created");
  await page.fill('input[name="name"]', "onboarded");
  await page.fill('input[name="url"]', `${subscribers.url}/onboarded`);
  await page.fill('input[name="retry"]', "3");
  await page.click("#subscriber button.primary");
  await page.waitForSelector('#reached[data-verdict="healthy"]');
  await page.screenshot({ path: join(artefacts, "subscribe.png"), fullPage: true });
  const yaml = await page.innerText("#manifest");
  await page.click("#trial .send button.primary");
  await page.waitForSelector('main[data-page="trigger"]');
  heddle.run("publish", "shop", "--id", "onboarded-1", "--type", "order.created");
  await until(() => subscribers.arrived.some((event) => event.path === "/onboarded" && event.id === "onboarded-1"), "its first event arrives");
  const made = await heddle.get("/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/onboarded");
  // What was shown as a manifest is what was made.
  heddle.run("delete", "trigger", "onboarded", "-n", "team-a");
  heddle.apply(yaml);
  const again = await heddle.get("/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/onboarded");
  assert.deepEqual(again.spec, made.spec);
  heddle.run("delete", "trigger", "onboarded", "-n", "team-a");
  assert.deepEqual(faults, []);
  await close();
});

test("nobody is reached whom deliveries may not reach", async () => {
  const config = join(heddle.dir, "closed.yaml");
  writeFileSync(config, 'egressDeny: ["127.0.0.0/8"]\n');
  const closed = await Heddle.start(["--config", config]);
  const response = await fetch(`${closed.control}/heddle/v1/subscribers/try`, {
    method: "POST", headers: { Authorization: `Bearer ${closed.token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ namespace: "team-a", url: `${subscribers.url}/forbidden` }),
  });
  const trial = await response.json();
  assert.equal(trial.reachable, false, JSON.stringify(trial));
  assert.ok(!subscribers.arrived.some((event) => event.path.startsWith("/forbidden")));
  await closed.close();
});

test("no link makes this server connect to somewhere", async () => {
  const url = encodeURIComponent(`${subscribers.url}/probed`);
  const { page, close } = await tab({ javaScriptEnabled: false });
  await page.goto(`${heddle.control}/ui/subscribe/try?broker=team-a/default&name=x&url=${url}`);
  await page.goto(`${heddle.control}/ui/subscribe?broker=team-a/default&name=x&url=${url}`);
  assert.match(await page.innerText("#trial"), /was not tried/);
  assert.ok(!subscribers.arrived.some((event) => event.path.startsWith("/probed")));
  await close();
});

test("types say who wants them, and what nobody wants", async () => {
  heddle.run("publish", "shop", "--id", "lost-1", "--type", "order.forgotten", "--data", '{"a":1}');
  await until(async () => (await heddle.get("/heddle/v1/types")).items.some((/** @type {any} */ seen) => seen.type === "order.forgotten"), "the type is seen");
  const { page, faults, close } = await tab();
  await page.goto(`${heddle.control}/ui/types`);
  const shown = await page.$$eval("tbody tr", (rows) => rows.map((row) => /** @type {any} */ (row).dataset.type));
  const listed = JSON.parse(heddle.run("types", "-o", "json")).items;
  assert.deepEqual(shown, listed.map((/** @type {any} */ seen) => seen.type));
  assert.match(await page.innerText('tr[data-type="order.forgotten"]'), /nobody/);
  assert.match((await page.textContent('tr[data-type="order.created"]')) ?? "", /"exact"/);
  assert.deepEqual(faults, []);
  await close();
});

test("whoever may only look finds no button that does not work", async () => {
  const { page, faults, close } = await tab({ token: viewer });
  for (const path of [TRIGGER, `${TRIGGER}?try=1&filters=exact%20type%20%3D%20a`, "/ui/publish", "/ui/types", "/ui/subscribe?broker=team-a/default&name=x&url=http://x/"]) {
    await page.goto(heddle.control + path);
    await page.waitForSelector("main");
    if (path.startsWith(TRIGGER)) await page.waitForSelector("#tried[data-settled]");
    assert.equal(await page.locator("form.send").count(), 0, path);
    assert.equal(await page.locator("#pausing").count(), 0, path);
    assert.doesNotMatch(await page.innerText("main"), /9007199254740993/, `${path} shows data`);
  }
  assert.deepEqual(faults, []);
  await close();
});

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  for (const width of [1440, 360]) {
    test(`the pages around a trigger, ${colorScheme}, ${width} px`, async () => {
      const { page, faults, close } = await tab({ width, height: width < 500 ? 740 : 900, colorScheme });
      /** @type {unknown[]} */
      const found = [];
      const wrong = encodeURIComponent("cesql subject LIKE");
      const other = encodeURIComponent("exact type = order.cancelled");
      const long = encodeURIComponent(`exact type = ${"x".repeat(300)}`);
      for (const [name, path] of [
        ["trigger", TRIGGER], ["trigger-wrong", `${TRIGGER}?try=1&filters=${wrong}`], ["trigger-other", `${TRIGGER}?try=1&filters=${other}`],
        ["trigger-long", `${TRIGGER}?try=1&filters=${long}`], ["trigger-changed", `${TRIGGER}?changed=1&was=${other}`],
        ["types", "/ui/types"], ["publish", "/ui/publish"], ["subscribe", "/ui/subscribe"],
        ["subscribe-tried", `/ui/subscribe?broker=team-a/default&name=x&url=http://x/&filters=${other}`],
      ]) {
        await page.goto(heddle.control + path);
        await page.waitForSelector('#live[data-state="live"]');
        if (name.startsWith("trigger")) await page.waitForSelector("#tried[data-settled]:not([aria-busy])");
        assert.equal(await sideways(page), 0, `${path} scrolls sideways at ${width}`);
        await page.screenshot({ path: join(artefacts, `${name}-${colorScheme}-${width}.png`), fullPage: true });
        for (const fault of await serious(page)) found.push([path, fault]);
      }
      assert.deepEqual(found, []);
      assert.deepEqual(faults, []);
      await close();
    });
  }
}

test("with much to look at, typing stays answered and abandoned questions end", async () => {
  const batch = (/** @type {number} */ from) => JSON.stringify(Array.from({ length: 500 }, (_, index) => ({
    specversion: "1.0", id: `many-${from + index}`, source: "shop", type: ["order.created", "order.cancelled"][index % 2], subject: `eu-${index}`, data: { n: index },
  })));
  const events = JSON.parse(readFileSync(join(heddle.dir, "data/endpoints.json"), "utf8")).events;
  heddle.run("trigger", "pause", "team-a/orders");
  for (let from = 0; from < 10_000; from += 500) {
    const answer = await fetch(`${events}/shop/events`, { method: "POST", headers: { "Content-Type": "application/cloudevents-batch+json" }, body: batch(from) });
    assert.equal(answer.status, 202, await answer.text());
  }
  const { page, faults, close } = await tab();
  await page.goto(heddle.control + TRIGGER);
  await page.waitForSelector("#tried[data-matched]");
  await page.fill("#filters", "");
  // Each key begins a question; only the last one is to be answered.
  await page.locator("#filters").pressSequentially("cesql subject LIKE 'eu-1%' AND type = 'order.created'", { delay: 160 });
  const begun = Date.now();
  await page.waitForFunction(() => {
    const shown = new URLSearchParams(location.search).get("filters") ?? "";
    return shown.endsWith("'order.created'") && document.querySelector("#tried[data-matched]:not([aria-busy])");
  });
  console.log(`answered ${Date.now() - begun} ms after the last key, over 10,000 events`);
  const [examined, matched] = await tried(page);
  assert.ok(examined === 10_000 && matched > 0 && matched < examined, `${examined} ${matched}`);
  heddle.run("trigger", "resume", "team-a/orders");
  assert.deepEqual(faults, []);
  await close();
});
