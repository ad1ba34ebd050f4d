// A tab that remembers everything that went wrong, and what is wrong with a page for whoever cannot see it well.
// @ts-check
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * A tab of somebody who may look.
 * @param {import("playwright-core").Browser} chromium
 * @param {import("./harness.mjs").Heddle} heddle
 * @param {{width?: number, height?: number, colorScheme?: "light" | "dark", javaScriptEnabled?: boolean, token?: string}} [how]
 */
export async function openTab(chromium, heddle, { width = 1440, height = 900, colorScheme = "light", javaScriptEnabled = true, token = heddle.token } = {}) {
  const context = await chromium.newContext({
    viewport: { width, height }, colorScheme, javaScriptEnabled, reducedMotion: "reduce",
    extraHTTPHeaders: token ? { Authorization: `Bearer ${token}` } : {},
  });
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("console", (message) => { if (message.type() === "error" || /Content Security Policy|TrustedHTML/.test(message.text())) faults.push(message.text()); });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => { faults.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(heddle.control) && !request.url().startsWith("blob:")) faults.push(`a request to ${request.url()}`); });
  return { page, faults, close: () => context.close() };
}

/** @param {import("playwright-core").Page} page @returns {Promise<unknown[]>} */
export async function serious(page) {
  // The policy of the page lets no script in; the tool comes by the back door of the browser.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const { result } = await session.send("Runtime.evaluate", {
    expression: "axe.run(document, {resultTypes: ['violations']}).then((found) => JSON.stringify(found.violations.filter((fault) => ['serious', 'critical'].includes(fault.impact)).map((fault) => [fault.id, fault.nodes.slice(0, 3).map((node) => node.html + ' ' + node.failureSummary)])))",
    awaitPromise: true, returnByValue: true,
  });
  return JSON.parse(result.value);
}

/** How far a page scrolls sideways. @param {import("playwright-core").Page} page */
export const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
