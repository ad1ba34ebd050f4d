#!/usr/bin/env bash
# Stops what start.sh started in DIR.
#   stop.sh DIR
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: ${0##*/} DIR" >&2; exit 2; }
cd "$1"

grace_seconds=20
for name in kube-apiserver etcd; do
    [ -e "$name.pid" ] || continue
    pid=$(cat "$name.pid")
    # The number may have been given to another process since; only a process of that name is ours.
    if [ "$(ps -o comm= -p "$pid" 2>/dev/null)" = "$name" ]; then
        kill "$pid"
        ended=$((SECONDS + grace_seconds))
        while kill -0 "$pid" 2>/dev/null; do
            if [ "$SECONDS" -ge "$ended" ]; then
                kill -9 "$pid" 2>/dev/null || true
                break
            fi
            sleep 0.1
        done
        echo "stopped $name"
    fi
    rm -f "$name.pid"
done
