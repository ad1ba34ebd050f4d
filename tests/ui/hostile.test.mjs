// What strangers write is text, wherever it is shown: fifty events that would like to be more, to a subscriber that answers as badly.
// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Heddle, browser } from "./harness.mjs";
import { oneTrigger, untilResting } from "./letters.mjs";
import { openTab } from "./look.mjs";

const SCRIPT = "<script>window.owned=1</script>";
const IMAGE = "<img src=x onerror=\"window.owned=1\">";
const JAVASCRIPT = "javascript:window.owned=1";
const deep = (/** @type {number} */ depth) => "[".repeat(depth) + "1" + "]".repeat(depth);

/** Attributes of an event with those that are its own, and its data as they are written. @typedef {{id?: string, type?: string, source?: string, subject?: string, data?: string, more?: Record<string, unknown>}} Hostile */
/** @type {Record<string, Hostile>} */
const CORPUS = {
  "script in an id": { id: SCRIPT },
  "image in an id": { id: IMAGE },
  "quotes in an id": { id: "\"'`><" },
  "an end of everything in an id": { id: "</title></textarea></script></style></svg>" + SCRIPT },
  "a comment in an id": { id: "<!--" + SCRIPT },
  "entities in an id": { id: "&lt;b&gt;&#x3c;i&#62;&amp;amp;" },
  "a template in an id": { id: "${7*7}{{7*7}}<%= 7 %>#{7}" },
  "slashes in an id": { id: "../../../ui/login?next=//evil.example/" },
  "a query in an id": { id: "x&source=y#z?%00%2e%2e" },
  "javascript as an id": { id: JAVASCRIPT },
  "a terminal's codes without the escape in an id": { id: "[31mred[0m]8;;x" },
  "right to left in an id": { id: "\u202egnp.exe\u202c \u2067abc\u2069" },
  "nothing to see in an id": { id: "\u200b\u200c\u200d\u2060\ufeff" },
  "a name that looks like another": { id: "оrd-1" },
  "marks upon marks in an id": { id: "Z" + "\u0301\u0316\u0489".repeat(60) },
  "pictures beyond the first plane in an id": { id: "👩‍👩‍👧‍👦🏳️‍🌈\u{e0041}" },
  "a long id": { id: "w".repeat(900) },
  "a prototype as an id": { id: "__proto__" },
  "a formula as an id": { id: "=cmd|' /C calc'!A0" },
  "spaces around an id": { id: "   x   " },
  "script in a type": { type: SCRIPT },
  "image in a type": { type: IMAGE },
  "an attribute in a type": { type: "x\" onmouseover=\"window.owned=1\" y=\"" },
  "javascript as a type": { type: JAVASCRIPT },
  "right to left in a type": { type: "order.\u202edetaerc" },
  "a handler in a type": { type: "<svg/onload=window.owned=1>" },
  "a constructor as a type": { type: "constructor" },
  "a long type": { type: "t.".repeat(400) },
  "javascript as a source": { source: JAVASCRIPT },
  "data as a source": { source: "data:text/html,%3Cscript%3Ewindow.owned=1%3C/script%3E" },
  "another host as a source": { source: "//evil.example/%2e%2e/?a=b&c=d%22%3E" },
  "script in a subject": { subject: SCRIPT },
  "a link in a subject": { subject: `<a href="${JAVASCRIPT}">press</a>` },
  "a frame in a subject": { subject: "<iframe srcdoc='<script>parent.owned=1</script>'></iframe>" },
  "a form in a subject": { subject: "<form action=//evil.example><button autofocus onfocus=window.owned=1>" },
  "zero width and direction in a subject": { subject: "\u2066<\u200bscript\u200b>\u2069" },
  "script in an extension": { more: { nasty: SCRIPT, heddlenote: IMAGE } },
  "javascript as a schema": { more: { dataschema: JAVASCRIPT } },
  "integers and truths as extensions": { more: { least: -2147483648, most: 2147483647, truly: true } },
  "script in data": { data: JSON.stringify({ [SCRIPT]: SCRIPT, [IMAGE]: [IMAGE, `<a href='${JAVASCRIPT}'>`] }) },
  "markup as data": { data: JSON.stringify(SCRIPT + IMAGE), more: { datacontenttype: "text/html" } },
  "integers beyond exactness": { data: '{"exact":9007199254740993,"far":-18446744073709551616123}' },
  "a decimal of thirty digits": { data: '{"amount":1000000000000000000000000000000.10,"small":1e-400,"large":1E+400}' },
  "control characters in data": { data: '{"text":"\\u0000\\u0007\\u001b[31mred\\u001b[0m\\u009b\\r\\n\\u2028\\u2029"}' },
  "halves of pairs in data that nobody read": { more: { data_base64: Buffer.from('{"text":"\\ud800","other":"\\udfff\\ud800"}').toString("base64"), datacontenttype: "application/json" } },
  "names twice in data": { data: '{"a":1,"a":2,"__proto__":{"owned":1},"constructor":{"prototype":{"owned":1}}}' },
  "deep data": { data: deep(60) },
  "300 KiB of data": { data: JSON.stringify({ text: IMAGE.repeat(Math.ceil((300 << 10) / IMAGE.length / 2)) }) },
  "300 KiB without a space": { data: JSON.stringify("W".repeat(300 << 10)) },
  "bytes as data": { more: { data_base64: Buffer.from([0, 255, 254, 60, 115, 99, 114, 105, 112, 116, 62, 128, 27]).toString("base64"), datacontenttype: "image/svg+xml" } },
};

/** @typedef {{id: string, type: string, source: string, name: string}} Published */
/** @type {Published[]} */
const published = [];
/** @type {Heddle} */ let heddle;
/** @type {import("node:http").Server} */ let subscriber;
/** @type {import("playwright-core").Browser} */ let chromium;

/** Each answer is another of these: the reason why an event rests. */
const ANSWERS = [SCRIPT, IMAGE, `<a href="${JAVASCRIPT}">${"x".repeat(3000)}`, "\u202e\u0007\u001b[31m\u0000", `{"error":"${"<b>".repeat(500)}"}`, "</textarea></title>" + SCRIPT];

before(async () => {
  let answered = 0;
  subscriber = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      answered += 1;
      response.writeHead(500, { "Content-Type": "text/html" });
      response.end(ANSWERS[answered % ANSWERS.length]);
    });
  });
  await new Promise((resolve) => subscriber.listen(0, "127.0.0.1", () => resolve(undefined)));
  heddle = await Heddle.start();
  const { port } = /** @type {import("node:net").AddressInfo} */ (subscriber.address());
  await oneTrigger(heddle, `http://127.0.0.1:${port}/`);
  const { events } = JSON.parse(readFileSync(join(heddle.dir, "data/endpoints.json"), "utf8"));
  for (const [number, [name, { data, more, ...attributes }]] of Object.entries(CORPUS).entries()) {
    const event = { id: `hostile-${number}`, type: "hostile", source: "/hostile", ...attributes };
    const written = JSON.stringify({ specversion: "1.0", ...event, ...more });
    const body = data === undefined ? written : `${written.slice(0, -1)},"data":${data}}`;
    const response = await fetch(`${events}/broker/team-a/default`, { method: "POST", headers: { "Content-Type": "application/cloudevents+json" }, body });
    assert.equal(response.status, 202, `${name}: ${await response.text()}`);
    published.push({ ...event, name });
  }
  // Half of a pair is no text in JSON that is read, wherever it stands.
  for (const halved of ['"id":"\\ud800"', '"id":"x","data":{"text":"\\udfff"}']) {
    const body = `{"specversion":"1.0","type":"x","source":"/x",${halved}}`;
    const response = await fetch(`${events}/broker/team-a/default`, { method: "POST", headers: { "Content-Type": "application/cloudevents+json" }, body });
    assert.equal(response.status, 400, halved);
  }
  await untilResting(heddle, "", published.length);
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  subscriber?.closeAllConnections();
  subscriber?.close();
});

/** What in a page is not ours, if anything is. @param {import("playwright-core").Page} page */
const foreign = (page) => page.evaluate(() => {
  const found = [];
  if (/** @type {any} */ (window).owned !== undefined || /** @type {any} */ ({}).owned !== undefined) found.push("a script ran");
  for (const element of document.querySelectorAll("*")) {
    const inside = element.closest("main, nav, dialog, title");
    if (inside && element.matches("img:not([src$='icon.svg']), script, iframe, object, embed, style, base, meta, link, video, audio, b, i, picture, template:not([data-row-of])")) found.push(element.outerHTML.slice(0, 200));
    for (const { name, value } of element.attributes) {
      if (/^on|^style$|^srcdoc$|^formaction$/i.test(name)) found.push(`${name} of ${element.tagName}`);
      if (/^(href|src|action|xlink:href)$/i.test(name) && !/^(\/|#|\?|blob:|$)/.test(value)) found.push(`${name}=${value.slice(0, 200)}`);
      if (/^(href|src|action)$/i.test(name) && value.startsWith("//")) found.push(`${name}=${value}`);
    }
  }
  return found;
});

/**
 * Looks at pages with one tab, and has what each shows checked.
 * @param {[string, (text: string, page: import("playwright-core").Page) => unknown][]} pages
 */
async function visit(pages) {
  const { page, faults, close } = await openTab(chromium, heddle);
  for (const [path, check] of pages) {
    await page.goto(heddle.control + path);
    await page.waitForSelector("main[data-page]");
    assert.deepEqual(await foreign(page), [], path);
    await check((await page.textContent("main")) ?? "", page);
    // A page that is not there is a complaint of the browser's own.
    assert.deepEqual(faults.filter((fault) => !/status of 4\d\d/.test(fault)), [], path);
  }
  await close();
}

const trace = (/** @type {Published} */ event) => `/ui/trace?id=${encodeURIComponent(event.id)}&source=${encodeURIComponent(event.source)}`;

test("every event has a page on which all of it is text", async () => {
  assert.equal(published.length, 50);
  await visit(published.map((event) => [trace(event), (text, page) => {
    assert.ok(text.includes(event.id) && text.includes(event.type) && text.includes(event.source), `${event.name}: ${text.slice(0, 500)}`);
    assert.equal(new URL(page.url()).pathname, "/ui/trace");
  }]));
});

test("numbers are shown as they were written", async () => {
  const named = (/** @type {string} */ name) => trace(/** @type {Published} */ (published.find((event) => event.name === name)));
  await visit([
    [named("integers beyond exactness"), (text) => assert.match(text, /9007199254740993[^]*-18446744073709551616123/)],
    [named("a decimal of thirty digits"), (text) => assert.match(text, /1000000000000000000000000000000\.10[^]*1e-400[^]*1E\+400/)],
  ]);
});

test("every dead letter is text, and so is why it rests", async () => {
  const letters = await heddle.get("/heddle/v1/dead-letters?limit=500");
  assert.equal(letters.items.length, published.length);
  await visit(letters.items.map((/** @type {any} */ letter) => [
    `/ui/dead-letters/${encodeURIComponent(letter.name)}`,
    // A list knows the beginning of what is very long.
    (/** @type {string} */ text) => assert.ok(text.includes(letter.id.slice(0, 40)), letter.id),
  ]));
});

test("lists, groups and forms show it as text", async () => {
  const hostile = encodeURIComponent(SCRIPT + IMAGE);
  await visit([
    ["/ui/", (text) => assert.match(text, /team-a/)],
    ["/ui/events", (text) => assert.ok(text.includes(published.at(-1)?.id ?? "-"))],
    [`/ui/events?q=${encodeURIComponent(`type:${JSON.stringify(SCRIPT)}`)}`, (text) => assert.ok(text.includes(SCRIPT))],
    [`/ui/events?q=${hostile}`, () => {}],
    ["/ui/dead-letters", (text) => assert.match(text, /50 events at rest/)],
    ["/ui/dead-letters?by=cause", () => {}],
    ["/ui/dead-letters?by=type", (text) => assert.ok(text.includes(SCRIPT))],
    [`/ui/dead-letters?type=${encodeURIComponent(SCRIPT)}`, (text) => assert.ok(text.includes(SCRIPT))],
    ["/ui/types", (text) => assert.ok(text.includes(SCRIPT) && text.includes(IMAGE))],
    ["/ui/triggers/team-a/all", () => {}],
    [`/ui/triggers/team-a/all?filters=${encodeURIComponent(`exact type = ${SCRIPT}`)}`, () => {}],
    ["/ui/publish", () => {}],
    [`/ui/publish?type=${hostile}&q=${hostile}`, () => {}],
    [`/ui/subscribe?type=${hostile}&name=${hostile}`, () => {}],
    [`/ui/find?q=${hostile}`, () => {}],
    [`/ui/help/${hostile}`, () => {}],
    [`/ui/objects/${hostile}/${hostile}/${hostile}`, () => {}],
    [`/ui/?q=${hostile}&view=table`, () => {}],
    [`/ui/applications/${hostile}?ns=${hostile}`, () => {}],
    [`/ui/audit?user=${hostile}`, () => {}],
    [`/ui/login?next=${encodeURIComponent(JAVASCRIPT)}`, () => {}],
  ]);
});
