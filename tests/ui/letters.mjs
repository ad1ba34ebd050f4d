// Dead letters to act on: a subscriber that answers each type of event as a test wants, and events that it has refused.
// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { until } from "./harness.mjs";

/** @typedef {{status: number, body?: (number: number) => string, waitMs?: number, cut?: boolean}} Manner */

/** An HTTP server that answers by the type of an event. */
export async function byType() {
  /** @type {Record<string, Manner>} */
  const manners = {};
  /** @type {{type: string, id: string, status: number}[]} */
  const arrived = [];
  const server = createServer((request, response) => {
    /** @type {Buffer[]} */
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const inside = request.headers["ce-id"] === undefined;
      const event = inside ? JSON.parse(Buffer.concat(chunks).toString()) : {};
      const [type, id] = ["type", "id"].map((name) => inside ? event[name] : decodeURIComponent(String(request.headers[`ce-${name}`])));
      const manner = manners[type] ?? { status: 200 };
      arrived.push({ type, id, status: manner.cut ? 0 : manner.status });
      if (manner.cut) return request.socket.destroy();
      setTimeout(() => {
        response.writeHead(manner.status, { "Content-Type": "text/plain" });
        response.end(manner.body?.(arrived.length) ?? "");
      }, manner.waitMs ?? 0);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}/`, manners, arrived, close: () => { server.closeAllConnections(); server.close(); } };
}

/** A broker with one trigger that wants everything and gives up at once. @param {import("./harness.mjs").Heddle} heddle @param {string} url */
export async function oneTrigger(heddle, url, namespace = "team-a") {
  heddle.apply(`
apiVersion: v1
kind: Namespace
metadata: {name: ${namespace}}
---
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: default, namespace: ${namespace}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: all, namespace: ${namespace}}
spec:
  broker: default
  delivery: {retry: 0}
  subscriber: {uri: "${url}"}
`);
  await until(async () => {
    const { status } = await heddle.get(`/apis/eventing.knative.dev/v1/namespaces/${namespace}/triggers/all`);
    return status?.conditions?.some((/** @type {any} */ found) => found.type === "Ready" && found.status === "True");
  }, "the trigger is ready");
}

/**
 * Publishes many at once.
 * @param {import("./harness.mjs").Heddle} heddle @param {string} type @param {string[]} ids @param {(id: string) => object} [more]
 */
export async function publish(heddle, type, ids, more = () => ({}), namespace = "team-a") {
  const { events } = JSON.parse(readFileSync(join(heddle.dir, "data/endpoints.json"), "utf8"));
  for (let from = 0; from < ids.length; from += 500) {
    const batch = ids.slice(from, from + 500).map((id) => ({ specversion: "1.0", id, source: "/test", type, data: { id }, ...more(id) }));
    const response = await fetch(`${events}/broker/${namespace}/default`, {
      method: "POST", headers: { "Content-Type": "application/cloudevents-batch+json" }, body: JSON.stringify(batch),
    });
    assert.equal(response.status, 202, await response.text());
  }
}

/** @param {import("./harness.mjs").Heddle} heddle @param {string} query */
export const resting = async (heddle, query) => (await heddle.get(`/heddle/v1/dead-letters?limit=1&${query}`)).total;

/** @param {import("./harness.mjs").Heddle} heddle @param {string} query @param {number} count */
export const untilResting = (heddle, query, count) => until(async () => (await resting(heddle, query)) === count, `${count} rest with ${query}`);

/** Ids with a number each. @param {string} name @param {number} count */
export const ids = (name, count) => Array.from({ length: count }, (_, number) => `${name}-${number}`);
