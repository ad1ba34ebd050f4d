#!/usr/bin/env python3
"""Masks what two correct servers may say differently: times, uids, versions of objects, ages, ports.

    normalise.py IN_DIR OUT_DIR

Reads the files transcript.sh wrote and writes the masked ones under the same names. Masks are narrow on purpose: the
moments and uids that the manifests fix themselves (29 February 2024, ids of one repeated digit) stay, so that a server
that loses microseconds or rewrites a given id is found out; a generated name is masked only if its suffix is well formed.
"""

import json
import re
import sys
from itertools import groupby
from pathlib import Path

FIXED_MOMENT = "2024-02-29"
FIXED_UID = re.compile(r"(\d)\1{7}-")

UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4})")
AGE = r"\d+[ydhms](?:\d+[dhms])?"

# In this order; each a pattern and what stands in for it.
TEXT_MASKS = [
    (re.compile(r"(resourceVersion: )\"\d+\""), r"\1RESOURCE_VERSION"),
    (re.compile(r"(Resource Version:\s+)\d+"), r"\1RESOURCE_VERSION"),
    (re.compile(r"(ResourceVersion in record )\(\d+\)"), r"\1(RESOURCE_VERSION)"),
    (re.compile(r"(Too large resource version: \d+, current: )\d+"), r"\1RESOURCE_VERSION"),
    (re.compile(r"^(Server Version: ).*"), r"\1SERVER_VERSION"),
    (re.compile(r"/\S*/(LIVE|MERGED)-\d+/"), r"/\1/"),
    (re.compile(r"\bmade-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "made-SUFFIX"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(rf"(?<=[\s(]){AGE}(?=[\s)]|$)"), "AGE"),
    # Columns are as wide as their widest cell, and an age may be that cell.
    (re.compile(r"(?<=\S) {2,}(?=\S)"), "  "),
]

# Lines of a list of complaints. The real server visits the fields of an object in random order.
COMPLAINT = re.compile(r"\* |  \.")
# In YAML, and as `kubectl describe` shows them.
MANAGED_FIELDS = re.compile(r"( *)(managedFields|Managed Fields):")

# JSON members whose value says nothing, by name.
MEMBER_MASKS = {"resourceVersion": "RESOURCE_VERSION", "continue": "CONTINUE"}


# What heddle adds to every Trigger, as Knative's webhook does where there is one.
BROKER_LABEL = "eventing.knative.dev/broker"
LABEL_LINE = re.compile(rf"\s+{re.escape(BROKER_LABEL)}: .*")
LABEL_PAIR = re.compile(rf"{re.escape(BROKER_LABEL)}=[^,\s]*,?")


def without_broker_label(lines):
    """Lines of YAML, tables or descriptions without that label, and without a heading that is empty without it."""
    kept = []
    for line in lines:
        if LABEL_LINE.fullmatch(line):
            continue
        if kept and kept[-1].strip() == "labels:" and not line.startswith(kept[-1].replace("labels:", "  ")):
            kept.pop()
        pruned = LABEL_PAIR.sub("", line)
        if pruned != line and (not pruned.strip() or pruned.rstrip().endswith("Labels:") or pruned != pruned.rstrip()):
            pruned = pruned.rstrip() + "  <none>"
        kept.append(pruned)
    return kept


def mask_text(line):
    line = UID.sub(lambda m: m[0] if FIXED_UID.match(m[0]) else "UID", line)
    line = MOMENT.sub(lambda m: m[0] if m[0].startswith(FIXED_MOMENT) else "TIME", line)
    for pattern, replacement in TEXT_MASKS:
        line = pattern.sub(replacement, line)
    return line.rstrip()


def mask_json(value):
    if isinstance(value, dict):
        masked = {}
        for name, member in value.items():
            if name in MEMBER_MASKS and isinstance(member, str) and member:
                masked[name] = MEMBER_MASKS[name]
            elif name == "labels" and isinstance(member, dict) and BROKER_LABEL in member:
                others = {label: value for label, value in member.items() if label != BROKER_LABEL}
                if others:
                    masked[name] = mask_json(others)
            else:
                masked[name] = mask_json(member)
        if isinstance(masked.get("managedFields"), list):
            # The server sorts these by their times, which have whole seconds: two runs may differ in the order.
            masked["managedFields"].sort(key=lambda m: json.dumps(m, sort_keys=True))
        if masked.get("kind") == "APIResourceList" and isinstance(masked.get("resources"), list):
            # In the order in which the server heard of the definitions.
            masked["resources"].sort(key=lambda r: json.dumps(r.get("name")))
        return masked
    if isinstance(value, list):
        return [mask_json(item) for item in value]
    if isinstance(value, str):
        return mask_text(value)
    return value


def as_json(text):
    """The masked lines of a text that is one JSON document, or one per line; None if it is neither."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        documents = [json.loads(text)]
    except ValueError:
        try:
            documents = [json.loads(line) for line in text.splitlines() if line]
        except ValueError:
            return None
    return [line for d in documents for line in json.dumps(mask_json(d), indent=1, sort_keys=True).splitlines()]


def as_text(text):
    """The masked lines of any other text. Managed fields are put in order, as in JSON."""
    lines = [mask_text(line) for line in without_broker_label(text.splitlines())]
    ordered = []
    while lines:
        line = lines.pop(0)
        ordered.append(line)
        heading = MANAGED_FIELDS.fullmatch(line)
        if heading:
            inner = heading[1] + "  "
            first = heading[1] + "- " if heading[2] == "managedFields" else inner + "API Version:"
            entries = []
            while lines and lines[0].startswith((first, inner)):
                if lines[0].startswith(first):
                    entries.append([])
                entries[-1].append(lines.pop(0))
            ordered += [line for entry in sorted(entries) for line in entry]
    return ordered


def sort_complaints(lines):
    ordered = []
    for is_list, run in groupby(lines, key=lambda line: bool(COMPLAINT.match(line))):
        ordered += sorted(run) if is_list else run
    return ordered


def normalise(text):
    head, stdout, stderr = re.fullmatch(r"(.*?)--- stdout\n(.*)--- stderr\n(.*)", text, re.DOTALL).groups()
    lines = head.splitlines()
    lines += ["--- stdout", *(as_json(stdout) or as_text(stdout))]
    lines += ["--- stderr", *sort_complaints(as_text(stderr))]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = map(Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.txt")):
        (target / path.name).write_text(normalise(path.read_text(errors="replace")))


if __name__ == "__main__":
    main()
