#!/usr/bin/env bash
# Builds an old mesh of the release pinned in go.mod, or a client of it.
#   build.sh nats-streaming-server|natss-client|jetstream-client OUTDIR
# Does nothing when OUTDIR already holds what is pinned here. Modules come through the ordinary Go module proxy settings.
set -euo pipefail

usage() { echo "usage: ${0##*/} nats-streaming-server|natss-client|jetstream-client OUTDIR" >&2; exit 2; }
[ $# -eq 2 ] || usage
name=$1 out=$2
case $name in nats-streaming-server | natss-client | jetstream-client) ;; *) usage ;; esac

mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"

# Everything that decides what comes out.
made_from=$(cat go.mod go.sum "$name/main.go" | sha256sum)
if [ -x "$out/$name" ] && [ "$(cat "$out/$name.made-from" 2>/dev/null)" = "$made_from" ]; then
    echo "$out/$name is built already"
    exit 0
fi

started=$SECONDS
# Built beside the final name and moved, so that an interrupted build never looks like a finished one.
CGO_ENABLED=0 nice -n "${BUILD_NICE:-10}" go build -p "${BUILD_JOBS:-2}" -trimpath -buildvcs=false -ldflags "-s -w" \
    -o "$out/.$name.new" "./$name"
mv "$out/.$name.new" "$out/$name"
echo "$made_from" > "$out/$name.made-from"
echo "built $out/$name in $((SECONDS - started)) s"
