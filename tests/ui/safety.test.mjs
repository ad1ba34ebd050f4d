// What others try with somebody's browser: a name of theirs that leads to this server, a page on another port of the same host, a
// server there that is shown the cookie. Nothing is read, and nothing is changed.
// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Heddle, browser, until } from "./harness.mjs";
import { byType, oneTrigger, publish, resting, untilResting } from "./letters.mjs";

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof byType>>} */ let subscriber;
/** @type {import("playwright-core").Browser} */ let chromium;
/** @type {string} */ let letter;

before(async () => {
  subscriber = await byType();
  subscriber.manners.refused = { status: 400 };
  heddle = await Heddle.start();
  await oneTrigger(heddle, subscriber.url);
  await publish(heddle, "refused", ["kept"]);
  await untilResting(heddle, "", 1);
  letter = (await heddle.get("/heddle/v1/dead-letters")).items[0].name;
  chromium = await browser(["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  subscriber?.close();
});

/** A server on another port that shows one page, and what it was shown. @param {string} body */
async function elsewhere(body) {
  /** @type {string[]} */
  const cookies = [];
  const server = createServer((request, response) => {
    cookies.push(String(request.headers.cookie ?? ""));
    response.setHeader("Content-Type", "text/html");
    response.end(`<title>elsewhere</title>${body}`);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}/`, cookies, close: () => { server.closeAllConnections(); server.close(); } };
}

/** A browser in which an administrator is logged in. @param {{javaScriptEnabled?: boolean}} [how] */
async function loggedIn(how = {}) {
  const context = await chromium.newContext(how);
  const page = await context.newPage();
  await page.goto(`${heddle.control}/ui/`);
  await page.fill("input[name=token]", heddle.token);
  await page.click("button[type=submit]");
  await page.waitForSelector('main[data-page="mesh"] [data-verdict]');
  return { context, page };
}

/** Nothing has happened: the letter rests, and who was logged in still is. @param {import("playwright-core").Page} page */
async function untouched(page) {
  assert.equal(await resting(heddle, ""), 1);
  assert.equal(subscriber.arrived.length, 1, "it was sent again");
  await page.goto(`${heddle.control}/ui/`);
  await page.waitForSelector('main[data-page="mesh"] [data-verdict]');
}

test("a name that is not this server's own opens nothing, wherever it leads", async () => {
  const { events } = JSON.parse(readFileSync(join(heddle.dir, "data/endpoints.json"), "utf8"));
  const context = await chromium.newContext();
  const page = await context.newPage();
  const renamed = (/** @type {string} */ url) => url.replace("127.0.0.1", "evil.example");
  for (const path of ["/ui/", "/ui/login", "/metrics", "/readyz", "/heddle/v1/health"]) {
    const answer = await page.goto(renamed(heddle.control) + path);
    assert.equal(answer?.status(), 421, path);
    assert.doesNotMatch((await answer?.text()) ?? "", /team-a|heddle_/, path);
  }
  const before = (await heddle.get("/heddle/v1/events")).items.length;
  await page.goto(renamed(events));
  const sent = await page.evaluate(async () => {
    const headers = { "Content-Type": "application/cloudevents+json" };
    const body = JSON.stringify({ specversion: "1.0", id: "rebound", source: "/evil", type: "x", data: 1 });
    return (await fetch("/broker/team-a/default", { method: "POST", headers, body })).status;
  });
  assert.equal(sent, 421);
  assert.equal((await heddle.get("/heddle/v1/events")).items.length, before);
  await context.close();
});

test("a page on another port changes nothing with a logged-in browser, and reads nothing", async () => {
  const body = JSON.stringify({ all: true });
  // A form can send what looks like JSON, as plain text.
  const field = "{&quot;all&quot;:true,&quot;x&quot;:&quot;";
  const form = (/** @type {string} */ path) => `<form id="${path}" method="post" enctype="text/plain" target="sink" action="${heddle.control}/${path}"><input name="${field}" value="&quot;}"></form>`;
  const paths = ["heddle/v1/dead-letters/discard", "heddle/v1/dead-letters/redrive", `heddle/v1/dead-letters/${letter}/try`, "heddle/v1/session", "ui/logout"];
  const other = await elsewhere(`<iframe name="sink"></iframe>${paths.map(form).join("")}`);
  const { context, page } = await loggedIn();
  await page.goto(other.url);
  for (const path of paths) {
    const answered = page.waitForResponse((response) => response.url() === `${heddle.control}/${path}`);
    await page.evaluate((id) => /** @type {HTMLFormElement} */ (document.getElementById(id)).submit(), path);
    const status = (await answered).status();
    assert.ok([401, 403, 415].includes(status), `${path}: ${status}`);
  }
  const tried = await page.evaluate(async ({ control, name, sent }) => {
    const ask = (/** @type {string} */ path, /** @type {RequestInit} */ how) => fetch(control + path, { credentials: "include", ...how }).then((answer) => answer.type === "opaque" ? "sent" : "read", () => "refused");
    const json = { "Content-Type": "application/json" };
    const image = (/** @type {string} */ path) => new Promise((resolve) => {
      const shown = new Image();
      shown.onload = () => resolve("read");
      shown.onerror = () => resolve("refused");
      shown.src = control + path;
    });
    return {
      simple: await ask("/heddle/v1/dead-letters/discard", { method: "POST", mode: "no-cors", body: sent }),
      read: await ask("/heddle/v1/dead-letters", {}),
      metrics: await ask("/metrics", {}),
      page: await ask("/ui/", {}),
      posted: await ask("/heddle/v1/dead-letters/discard", { method: "POST", headers: json, body: sent }),
      header: await ask("/heddle/v1/dead-letters", { headers: { "X-Heddle-Session": "guess" } }),
      deleted: await ask("/heddle/v1/session", { method: "DELETE" }),
      tried: await ask(`/heddle/v1/dead-letters/${name}/try`, { method: "POST", headers: json, body: "{}" }),
      put: await ask("/api/v1/namespaces/team-a", { method: "PUT", headers: json, body: "{}" }),
      icon: await image("/ui/graph.svg"),
      styled: await image("/heddle/v1/dead-letters/discard"),
    };
  }, { control: heddle.control, name: letter, sent: body });
  const { simple, ...others } = tried;
  // What needs no leave is sent, and refused by the server.
  assert.ok(["sent", "refused"].includes(simple), simple);
  assert.deepEqual([...new Set(Object.values(others))], ["refused"], JSON.stringify(tried));
  // Nor is it shown in a frame of theirs.
  await page.evaluate((control) => {
    const frame = document.createElement("iframe");
    frame.id = "framed";
    frame.src = `${control}/ui/`;
    document.body.append(frame);
    return new Promise((resolve) => { frame.onload = resolve; });
  }, heddle.control);
  const framed = page.frames().find((frame) => frame.url().startsWith(`${heddle.control}/ui/`));
  assert.equal(await framed?.locator("main").count().catch(() => 0) ?? 0, 0);
  await untouched(page);
  await context.close();
  other.close();
});

for (const javaScriptEnabled of [true, false]) {
  const what = javaScriptEnabled ? "half a session" : "a session for reading pages";
  test(`a server on another port that is shown the cookie of ${what} changes nothing with it and reads no answer`, async () => {
    const other = await elsewhere("");
    const { context, page } = await loggedIn({ javaScriptEnabled });
    await page.goto(other.url);
    const cookie = await until(() => other.cookies.find((found) => found.includes("heddle-")), "the other server is shown the cookie");
    // Its own client can write any header, those by which a browser says where a page is from too.
    const headers = { Cookie: cookie, "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin", Origin: heddle.control };
    const tries = [
      ["POST", "/heddle/v1/dead-letters/discard"], ["POST", "/heddle/v1/dead-letters/redrive"], ["POST", `/heddle/v1/dead-letters/${letter}/try`],
      ["POST", "/heddle/v1/publish"], ["DELETE", "/heddle/v1/session"], ["POST", "/heddle/v1/session/codes"],
      ["POST", "/api/v1/namespaces"], ["DELETE", "/api/v1/namespaces/team-a"], ["DELETE", "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/all"],
      ["GET", "/heddle/v1/health"], ["GET", "/heddle/v1/events"], ["GET", "/heddle/v1/dead-letters"], ["GET", "/heddle/v1/stream"], ["GET", "/heddle/v1/session"],
      ["GET", "/api/v1/namespaces"], ["GET", "/api/v1/secrets"],
    ];
    for (const [method, path] of tries) {
      const body = method === "POST" ? JSON.stringify({ all: true, names: [letter] }) : undefined;
      const answer = await fetch(heddle.control + path, { method, headers, body });
      assert.equal(answer.status, 401, `${method} ${path}`);
    }
    const seen = await (await fetch(`${heddle.control}/ui/dead-letters`, { headers: { Cookie: cookie } })).text();
    // With the one that a page has the other half of, there is a frame and nothing in it; with the other, pages can be read.
    assert.equal(seen.includes("kept"), !javaScriptEnabled);
    await untouched(page);
    await context.close();
    other.close();
  });
}
