#!/usr/bin/env python3
"""Asks a real Prometheus every query of the dashboards, about heddles on which one thing happens each.

    dashboards.py HEDDLE PROMETHEUS QUERIES EXPORTED

A query must find something on the heddles that QUERIES names for it (see xtask/src/dashboards.rs), and nothing, or zero,
on all others. `absent` is a heddle that does not run. The dashboards in the directory EXPORTED ask these queries and no others.
"""

import contextlib
import http.server
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

WINDOW = "20s"  # what rates are taken over
PUBLISHING_SECONDS = 9  # long enough for a rate, short enough for the window
DEADLINE_SECONDS = 60  # for anything that is waited for

SERVICE = "4ad9b1de-6f0c-4ed0-a1d7-21a0a1a2f4b1"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}


def broker(name):
    return {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "metadata": {"name": name, "namespace": "team-a"}}


def trigger(name, subscriber, **spec):
    return {
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": name, "namespace": "team-a"},
        "spec": {"broker": "default", "subscriber": subscriber, **spec},
    }


# A shop, whose events an instance leads into the namespace.
SHOP = [
    NAMESPACE,
    {
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"},
        "spec": {"description": "The web shop", "services": [{
            "id": SERVICE, "name": "order-events", "displayName": "Order events", "description": "Tells of orders",
            "providerDisplayName": "Example Retail", "entries": [{"type": "Events"}],
        }]},
    },
    {
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "ApplicationMapping",
        "metadata": {"name": "shop", "namespace": "team-a"}, "spec": {"services": [{"id": SERVICE}]},
    },
    {
        "apiVersion": "heddle.dev/v1alpha1", "kind": "ServiceInstance",
        "metadata": {"name": "orders", "namespace": "team-a"},
        "spec": {"instanceID": "orders", "serviceID": SERVICE, "planID": SERVICE + "-plan"},
    },
]

# What platforms and flows wait for in vain.
WAITING = [
    NAMESPACE,
    {
        "apiVersion": "heddle.dev/v1alpha1", "kind": "EventFlow", "metadata": {"name": "lost", "namespace": "team-a"},
        "spec": {"application": "nobody", "serviceID": SERVICE},
    },
    {
        "apiVersion": "heddle.dev/v1alpha1", "kind": "ServiceInstance",
        "metadata": {"name": "late", "namespace": "team-a"},
        "spec": {
            "instanceID": "late", "serviceID": SERVICE, "planID": SERVICE + "-plan",
            "application": {"name": "nobody", "serviceID": SERVICE},
            "operation": {
                "id": "late-1", "kind": "provision", "requestHash": "none",
                "acceptedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            },
        },
    },
]

PATIENT = {"retry": 1000, "backoffPolicy": "linear", "backoffDelay": "PT0.3S", "timeout": "PT1S"}
ONLY_OTHERS = [{"exact": {"type": "something.else"}}]


def scenes(subscribers):
    """Of each heddle: what is declared there, where events are published to, their type, and more attributes of theirs."""
    at = lambda path: {"uri": subscribers + path}  # noqa: E731
    simple = [NAMESPACE, broker("default")]
    well = trigger("t", at("/200"))
    ours = "/broker/team-a/default"
    other = {"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "other"}}
    return {
        "idle": ([], None, {}),
        "delivered": (SHOP + [well], "/shop/events", {}),
        "refused": (simple, ours, {"ce-type": ""}),
        "full": (simple, ours, {}),
        "rejecting": (simple + [trigger("t", at("/400"))], ours, {}),
        "failing": (simple + [trigger("t", at("/500"), delivery=PATIENT)], ours, {}),
        "hanging": (simple + [trigger("t", at("/hang"), delivery=PATIENT)], ours, {}),
        "filtered": (simple + [well, trigger("u", at("/200"), filters=ONLY_OTHERS)], ours, {}),
        "unmatched": (simple + [trigger("u", at("/200"), filters=ONLY_OTHERS)], ours, {}),
        "expired": (simple + [well], ours, {"ce-expirytime": "2020-01-01T00:00:00Z"}),
        "replying": (simple + [trigger("t", at("/garbage"))], ours, {}),
        "passing": (simple + [broker("other"), trigger("t", other), {
            **trigger("u", at("/200")), "spec": {"broker": "other", "subscriber": at("/200")},
        }], ours, {}),
        "waiting": (WAITING, None, {}),
        "beating": (SHOP, None, {}),
        "smoking": ([], None, {}),
        "choking": ([], None, {}),
    }


class Subscribers(http.server.BaseHTTPRequestHandler):
    """Answers as the path says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/hang":
            time.sleep(DEADLINE_SECONDS)
        garbage = self.path == "/garbage"
        body = b'{"this": "is no event"}' if garbage else b""
        self.send_response(200 if garbage or self.path == "/hang" else int(self.path[1:]))
        if garbage:
            self.send_header("content-type", "application/cloudevents+json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def until(what, condition):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    sys.exit(f"dashboards: still waiting for {what}")


class Heddle:
    def __init__(self, program, folder, name):
        self.program, self.name, self.data = program, name, folder / name / "data"
        self.data.parent.mkdir()
        config = self.data.parent / "config.yaml"
        # No disk has as much free as is asked to stay so.
        config.write_text("eventsReserveMebibytes: 2000000000\n" if name in ("full", "choking") else "{}\n")
        heartbeats = [] if name in ("beating", "smoking", "choking") else ["--no-heartbeats"]
        self.log = self.data.parent / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [program, "serve", "--data-dir", self.data, "--listen", "127.0.0.1:0", "--events", "127.0.0.1:0",
                 "--log", "warn", "--config", config, *heartbeats],
                stdout=log, stderr=log,
            )

    def until_served(self):
        endpoints = self.data / "endpoints.json"

        def served():
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended:\n{self.log.read_text()}")
            return endpoints.exists() and json.loads(endpoints.read_text())

        found = until(f"{self.name} to serve", served)
        self.control, self.events = found["control"], found["events"]

    def command(self, *arguments, text=None):
        environment = {**os.environ, "HEDDLE_DATA_DIR": str(self.data), "KUBECONFIG": str(self.data / "admin.kubeconfig")}
        return subprocess.run([self.program, *arguments], input=text, env=environment, text=True, capture_output=True)

    def run(self, *arguments, text=None):
        done = self.command(*arguments, text=text)
        if done.returncode:
            sys.exit(f"{self.name}: heddle {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def smoke(self):
        """Whether a smoke test passes."""
        return self.command("smoke").returncode == 0

    def apply(self, objects):
        if objects:
            self.run("apply", "-f", "-", text="".join(f"---\n{json.dumps(one)}\n" for one in objects))

    def is_ready(self, objects):
        """Whether what is to become ready is. Where there is no room nothing is, and `waiting` waits in vain."""
        for one in objects if self.name not in ("waiting", "full") else []:
            if one["kind"] in ("Broker", "Trigger", "ServiceInstance"):
                found = json.loads(self.run("get", one["kind"].lower() + "s", "-A", "-o", "json"))
                conditions = [c for item in found["items"] for c in item.get("status", {}).get("conditions", [])
                              if item["metadata"]["name"] == one["metadata"]["name"]]
                if not any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
                    return False
        return True

    def publish(self, path, number, more):
        headers = {"ce-specversion": "1.0", "ce-id": str(number), "ce-source": "/test", "ce-type": "order.created", **more}
        headers = {key: value for key, value in headers.items() if value}
        request = urllib.request.Request(self.events + path, b"{}", headers, method="POST")
        try:
            return urllib.request.urlopen(request, timeout=10).status
        except urllib.error.HTTPError as refusal:
            return refusal.code


class Prometheus:
    def __init__(self, program, folder, heddles):
        with socket.socket() as unused:
            # Nobody listens there once it is closed, and nobody is given the port while this runs.
            unused.bind(("127.0.0.1", 0))
            nobody = unused.getsockname()[1]
        jobs = [{"job_name": "absent", "static_configs": [{"targets": [f"127.0.0.1:{nobody}"]}]}]
        for heddle in heddles:
            target = urllib.parse.urlsplit(heddle.control)
            jobs.append({
                "job_name": heddle.name, "scheme": target.scheme, "static_configs": [{"targets": [target.netloc]}],
                "authorization": {"credentials_file": str(heddle.data / "metrics-token")},
            })
        config = folder / "prometheus.yml"  # JSON is YAML
        config.write_text(json.dumps({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        with (folder / "prometheus.log").open("wb") as log:
            self.process = subprocess.Popen(
                [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
                 f"--web.listen-address={self.address}"],
                stdout=log, stderr=log,
            )

    def ask(self, what, **parameters):
        url = f"http://{self.address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refusal:
            # It listens before it can answer.
            if refusal.code == 503:
                return None
            sys.exit(f"dashboards: {parameters.get('query')}: {refusal.read().decode()}")
        except OSError:
            return None

    def until_scraping(self, names):
        def scraped():
            found = self.ask("query", query="up == 1") or {"result": []}
            return {one["metric"]["job"] for one in found["result"]} == names

        until("Prometheus to scrape all of them", scraped)


def numbers(values):
    found = [float(value) for value in values]
    return [one for one in found if one and not math.isnan(one)]


def judge(prometheus, query, scene, now):
    """What is wrong with what a query finds on one heddle, if anything is."""
    expression = query["expression"].replace("$__rate_interval", WINDOW).replace("$job", scene)
    expression = expression.replace("$app", ".*").replace("$ns", ".*")
    if "$" in expression:
        return f"a variable that nobody fills in: {expression}"
    if scene in query["found"]:
        # What comes and goes is there at some moment.
        found = prometheus.ask("query_range", query=expression, start=now - 6, end=now, step="1s")["result"]
        values = [value for series in found for _, value in series["values"]]
        return None if numbers(values) else f"finds nothing on {scene}: {expression}"
    found = prometheus.ask("query", query=expression, time=now)["result"]
    odd = [series for series in found if not math.isfinite(float(series["value"][1])) or float(series["value"][1])]
    return f"finds {odd} on {scene}: {expression}" if odd else None


def main(heddle_program, prometheus_program, queries_file, exported):
    asked = json.loads(pathlib.Path(queries_file).read_text())
    boards = [json.loads(file.read_text()) for file in pathlib.Path(exported).glob("*.json")]
    shown = [target["expr"] for board in boards for panel in board["panels"] for target in panel["targets"]]
    if sorted(shown) != sorted(query["expression"] for query in asked["queries"]):
        sys.exit("dashboards: what is exported is not what is tried")
    subscribers = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Subscribers)
    subscribers.daemon_threads = True
    threading.Thread(target=subscribers.serve_forever, daemon=True).start()
    staged = scenes(f"http://127.0.0.1:{subscribers.server_port}")
    if missing := set(asked["scenes"]) ^ {"absent", *staged}:
        sys.exit(f"dashboards: scenes that only one side knows: {missing}")
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def ended(process):
            process.kill()
            process.wait()

        heddles = []
        for name in staged:
            heddles.append(Heddle(heddle_program, folder, name))
            stack.callback(ended, heddles[-1].process)
        for heddle in heddles:
            heddle.until_served()
            objects = staged[heddle.name][0]
            heddle.apply(objects)
        for heddle in heddles:
            until(f"{heddle.name} to be ready", lambda h=heddle: h.is_ready(staged[h.name][0]))
        prometheus = Prometheus(prometheus_program, folder, heddles)
        stack.callback(ended, prometheus.process)
        prometheus.until_scraping(set(staged))
        by_name = {heddle.name: heddle for heddle in heddles}
        until("a smoke test that passes", by_name["smoking"].smoke)
        if by_name["choking"].smoke():
            sys.exit("dashboards: a smoke test passes where there is no room for events")
        publishing = [heddle for heddle in heddles if staged[heddle.name][1]]
        answers = {heddle.name: {"refused": 400, "full": 507}.get(heddle.name, 202) for heddle in publishing}
        for heddle in publishing:
            _, path, more = staged[heddle.name]
            until(f"the door of {heddle.name}", lambda h=heddle, p=path, m=more: h.publish(p, 0, m) == answers[h.name])
        end, number = time.monotonic() + PUBLISHING_SECONDS, 0
        while time.monotonic() < end:
            number += 1
            for heddle in publishing:
                _, path, more = staged[heddle.name]
                status = heddle.publish(path, number, more)
                if status != answers[heddle.name]:
                    sys.exit(f"dashboards: {heddle.name} answered {status} rather than {answers[heddle.name]}")
            time.sleep(0.2)
        until("heartbeats", lambda: prometheus.ask("query", query='heddle_heartbeat_e2e_seconds{app="shop"}')["result"])
        # What was under way has ended, and has been looked at.
        time.sleep(2.5)
        now = time.time()
        wrong = []
        for query in asked["queries"]:
            for scene in asked["scenes"]:
                if fault := judge(prometheus, query, scene, now):
                    wrong.append(f"{query['name']} {fault}")
        if wrong:
            sys.exit("\n".join(wrong))
        count = len(asked["queries"])
        print(f"{count} queries find what happens, on {len(staged)} heddles, and nothing else ({number} rounds)")


if __name__ == "__main__":
    main(*sys.argv[1:])
