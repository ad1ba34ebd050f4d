// The real binary in a directory of its own, with subscribers that answer as a test wants, and a browser that looks at it.
// @ts-check
import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, existsSync, readFileSync, rmSync, mkdirSync } from "node:fs";
import { createServer, request as ask } from "node:http";
import { tmpdir } from "node:os";
import { join, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const here = dirname(fileURLToPath(import.meta.url));
export const artefacts = join(here, "artefacts");
mkdirSync(artefacts, { recursive: true });

export const binary = process.env.HEDDLE ?? join(here, "../../target/debug/heddle");
const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 60_000);

/** Waits for a condition; a failsafe ends it. @template T @param {() => Promise<T> | T} look @param {string} what @param {number} [patience] @returns {Promise<T>} */
export async function until(look, what, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  let last;
  for (;;) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`waited in vain until ${what}: ${last ?? ""}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** An HTTP server of this test: paths with their answers, and what came. */
export async function subscriber() {
  /** @type {Record<string, number>} */
  const answers = {};
  /** How long it takes to answer on a path, in milliseconds. @type {Record<string, number>} */
  const takes = {};
  /** @type {{path: string, id: string}[]} */
  const arrived = [];
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      const path = request.url ?? "";
      arrived.push({ path, id: String(request.headers["ce-id"] ?? "") });
      const answer = () => {
        response.writeHead(answers[path] ?? 200, { "Content-Type": "text/plain" });
        response.end(answers[path] ? "pool exhausted" : "");
      };
      if (takes[path]) setTimeout(answer, takes[path]);
      else answer();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}`, answers, takes, arrived, close: () => server.close() };
}

export class Heddle {
  /** @param {string[]} [args] */
  static async start(args = []) {
    const heddle = new Heddle(mkdtempSync(join(tmpdir(), "heddle-ui-")), args);
    await heddle.launch();
    return heddle;
  }

  /** @param {string} dir @param {string[]} args */
  constructor(dir, args) {
    this.dir = dir;
    this.args = args;
    this.control = "";
    this.token = "";
  }

  async launch(listen = "127.0.0.1:0") {
    const data = join(this.dir, "data");
    const endpoints = join(data, "endpoints.json");
    rmSync(endpoints, { force: true });
    const child = spawn(binary, ["serve", "--data-dir", data, "--listen", listen, "--events", "127.0.0.1:0", "--log", "warn", ...this.args], { stdio: ["ignore", "ignore", "inherit"] });
    this.child = child;
    await until(() => {
      if (child.exitCode !== null) throw new Error(`heddle ended with ${child.exitCode}`);
      return existsSync(endpoints);
    }, "heddle is ready");
    const published = JSON.parse(readFileSync(endpoints, "utf8"));
    this.control = published.control;
    const kubeconfig = readFileSync(join(data, "admin.kubeconfig"), "utf8");
    this.token = /token: "?([^"\s]+)"?/.exec(kubeconfig)?.[1] ?? "";
    this.env = { ...process.env, KUBECONFIG: join(data, "admin.kubeconfig"), HEDDLE_DATA_DIR: data };
    await until(async () => (await fetch(`${this.control}/readyz`)).ok, "heddle is ready for work");
  }

  /** A command of heddle. @param {...string} args */
  run(...args) {
    return execFileSync(binary, args, { env: this.env, encoding: "utf8", stdio: ["pipe", "pipe", "pipe"] });
  }

  /** @param {string} text */
  apply(text) {
    execFileSync(binary, ["apply", "-f", "-"], { env: this.env, input: text, stdio: ["pipe", "ignore", "inherit"] });
  }

  /** The body that answers a question. @param {string} path */
  async get(path) {
    const response = await fetch(this.control + path, { headers: { Authorization: `Bearer ${this.token}` } });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  async kill() {
    const child = this.child;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async close() {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A mesh as `heddle demo` has it: one subscriber that works, one that fails. @param {Heddle} heddle @param {string} subscribers */
export async function shop(heddle, subscribers) {
  const text = readFileSync(join(here, "../../crates/heddle/src/cmd/demo/shop.yaml"), "utf8");
  heddle.apply(text.replaceAll("SUBSCRIBERS", subscribers));
  await until(async () => {
    const list = await heddle.get("/apis/eventing.knative.dev/v1/triggers");
    const ready = (/** @type {any} */ trigger) => trigger.status?.conditions?.some((/** @type {any} */ found) => found.type === "Ready" && found.status === "True");
    return list.items.length === 2 && list.items.every(ready);
  }, "both triggers are ready");
}

/**
 * A proxy that has heddle below a path, and takes that path off. It knows what came by: each answer with its bytes as they were
 * sent, which streams are open, and what was asked outside of the path.
 * @param {Heddle} heddle
 */
export async function proxy(heddle, prefix = "") {
  /** @type {{method: string, path: string, bytes: number}[]} */
  const seen = [];
  /** @type {string[]} */
  const strays = [];
  const streams = new Set();
  const server = createServer((request, response) => {
    const url = request.url ?? "";
    if (!url.startsWith(`${prefix}/`)) {
      strays.push(url);
      return void response.writeHead(404).end();
    }
    const path = url.slice(prefix.length);
    const one = { method: request.method ?? "", path, bytes: 0 };
    seen.push(one);
    const { hostname, port } = new URL(heddle.control);
    const inner = ask({ hostname, port, path, method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      if (isStream(path)) streams.add(one);
      answer.on("data", (chunk) => { one.bytes += chunk.length; });
      answer.pipe(response);
    });
    inner.on("error", () => response.destroy());
    response.on("close", () => { streams.delete(one); inner.destroy(); });
    request.pipe(inner);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const asked = () => seen.filter(({ path }) => !isStream(path));
  return { url: `http://127.0.0.1:${port}${prefix}`, asked, strays, streams, close: () => { server.closeAllConnections(); server.close(); } };
}

/** @param {string} path */
const isStream = (path) => path.startsWith("/heddle/v1/stream");

/** @param {string[]} [extraArgs] */
export function browser(extraArgs = []) {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath, args: [...args, ...extraArgs] });
}
