// Registries in the browser: an outage withdraws nothing and says so; what disappears at once is named and waits for somebody.
// @ts-check
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { Heddle, artefacts, browser, here, until } from "./harness.mjs";
import { openTab, serious, sideways } from "./look.mjs";

/** So much at once is not believed. */
const MANY = 6;

/** @type {Heddle} */ let heddle;
/** @type {Awaited<ReturnType<typeof images>>} */ let registry;
/** @type {import("playwright-core").Browser} */ let chromium;

/** As much of a registry as a push and a reading need. */
async function images() {
  /** @type {Map<string, Buffer>} */ const blobs = new Map();
  /** @type {Map<string, Map<string, {kind: string, body: Buffer}>>} */ const repositories = new Map();
  const state = { broken: false };
  const digest = (/** @type {Buffer} */ body) => `sha256:${createHash("sha256").update(body).digest("hex")}`;
  const server = createServer((request, response) => {
    /** @type {Buffer[]} */ const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts);
      const { pathname, searchParams } = new URL(request.url ?? "", "http://registry");
      const answer = (/** @type {number} */ status, /** @type {Record<string, string>} */ headers = {}, /** @type {Buffer | string} */ text = "") => {
        response.writeHead(status, { "Content-Length": String(Buffer.byteLength(text)), ...headers });
        response.end(request.method === "HEAD" ? undefined : text);
      };
      const json = (/** @type {unknown} */ value) => answer(200, { "Content-Type": "application/json" }, JSON.stringify(value));
      // Only who says so in these words proves that something is gone.
      const unknown = (/** @type {string} */ code) => answer(404, { "Content-Type": "application/json" }, JSON.stringify({ errors: [{ code, message: "unknown" }] }));
      if (state.broken) return answer(503);
      if (pathname === "/v2/") return json({});
      if (pathname === "/v2/_catalog") return json({ repositories: [...repositories.keys()].sort() });
      const found = /^\/v2\/(.+?)\/(blobs|manifests|tags)\/(.*)$/.exec(pathname);
      if (!found) return answer(404);
      const [, name, what, reference] = found;
      const own = repositories.get(name);
      if (what === "tags") return own ? json({ name, tags: [...own.keys()].filter((tag) => !tag.includes(":")) }) : unknown("NAME_UNKNOWN");
      if (what === "manifests" && request.method === "PUT") {
        const manifest = { kind: String(request.headers["content-type"]), body };
        const known = own ?? new Map();
        known.set(reference, manifest).set(digest(body), manifest);
        repositories.set(name, known);
        return answer(201, { "Docker-Content-Digest": digest(body) });
      }
      if (what === "manifests") {
        const manifest = own?.get(reference);
        return manifest ? answer(200, { "Content-Type": manifest.kind, "Docker-Content-Digest": digest(manifest.body) }, manifest.body) : unknown(own ? "MANIFEST_UNKNOWN" : "NAME_UNKNOWN");
      }
      if (request.method === "POST") return answer(202, { Location: `/v2/${name}/blobs/uploads/1` });
      if (request.method === "PUT") {
        blobs.set(searchParams.get("digest") ?? "", body);
        return answer(201, { "Docker-Content-Digest": searchParams.get("digest") ?? "" });
      }
      const blob = blobs.get(reference);
      return blob ? answer(200, { "Content-Type": "application/octet-stream", "Docker-Content-Digest": reference }, blob) : answer(404);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}`, state, forget: () => repositories.clear(), close: () => server.close() };
}

/** A command of heddle that talks to the registry, which answers meanwhile. @param {...string} args */
const run = (...args) => promisify(execFile)(process.env.HEDDLE ?? join(here, "../../target/debug/heddle"), args, { env: heddle.env });

/** Reads the registry; whether it went well. */
const sync = () => run("registry", "sync", "lab", "--wait").then(() => true, () => false);

const offered = async () => (await heddle.get("/apis/heddle.dev/v1alpha1/bundles")).items.filter((/** @type {any} */ bundle) => bundle.status?.phase === "Live").length;

before(async () => {
  registry = await images();
  heddle = await Heddle.start();
  const bundle = join(heddle.dir, "many");
  mkdirSync(join(bundle, "rootfs/bin"), { recursive: true });
  copyFileSync(join(here, "../../bundles/shared-secret/bundle.yaml"), join(bundle, "bundle.yaml"));
  writeFileSync(join(bundle, "rootfs/bin/entrypoint"), "#!/bin/sh\n", { mode: 0o755 });
  for (let number = 0; number < MANY; number += 1) {
    await run("bundle", "push", bundle, "--to", `${registry.url}/acme/many-${number}:latest`);
  }
  heddle.run("registry", "add", "lab", "--type", "apiv2", "--url", registry.url, "--allow", ".*");
  await until(async () => (await sync()) && (await offered()) === MANY, "all of them are offered");
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  await heddle?.close();
  registry?.close();
});

test("an outage withdraws nothing, and the page says so", async () => {
  const { page, faults, close } = await openTab(chromium, heddle);
  registry.state.broken = true;
  assert.equal(await sync(), false);
  await page.goto(`${heddle.control}/ui/registries`);
  const card = page.locator('[data-registry="lab"]');
  await until(async () => {
    await page.reload();
    return /in vain since; nothing is withdrawn meanwhile/.test(await card.innerText());
  }, "the page says so");
  assert.notEqual(await card.getAttribute("data-verdict"), "healthy");
  assert.equal(await card.locator("tbody tr").count(), MANY);
  assert.equal(await offered(), MANY);
  assert.equal(await card.locator("[data-suspects]").count(), 0);
  for (const fault of await serious(page)) assert.fail(JSON.stringify(fault));
  assert.equal(await sideways(page), 0);
  await page.screenshot({ path: join(artefacts, "registries-outage.png"), fullPage: true });
  registry.state.broken = false;
  assert.equal(await sync(), true);
  assert.deepEqual(faults, []);
  await close();
});

test("what disappears at once is named, one by one, and stays until somebody says that it is gone", async () => {
  const { page, faults, close } = await openTab(chromium, heddle);
  registry.forget();
  await sync();
  const suspicion = await until(async () => (await heddle.get("/apis/heddle.dev/v1alpha1/registries/lab")).status.suspicion, "it is suspected");
  assert.equal(suspicion.count, MANY);
  assert.equal(await offered(), MANY);
  await page.goto(`${heddle.control}/ui/registries`);
  const named = await page.$$eval("[data-suspects] li", (found) => found.map((one) => one.textContent?.trim().replace("bundle/", "")));
  assert.deepEqual(named.sort(), [...suspicion.bundles].sort());
  assert.equal(named.length, suspicion.count);
  await page.click('button:has-text("They are gone")');
  await page.waitForSelector('output:has-text("Approved")');
  await until(async () => { await sync(); return (await offered()) === 0; }, "they are withdrawn");
  assert.deepEqual(faults, []);
  await close();
});
