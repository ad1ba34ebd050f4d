#!/usr/bin/env bash
# The page in a browser, against the real binary. Fails when there is no browser: whoever asks for it wants it looked at.
#   run.sh HEDDLE
set -euo pipefail
HEDDLE=$(realpath "${1:?usage: run.sh HEDDLE}")
export HEDDLE CHROMIUM=${CHROMIUM:-$(command -v chromium)}
cd "$(dirname "${BASH_SOURCE[0]}")"
# Waits for minutes, since that is how long alerts take, and does little: it goes on beside the others.
patient=./alerts.test.mjs
said=$(mktemp)
node --test "$patient" >"$said" 2>&1 &
waiting=$!
trap 'rm -f "$said"' EXIT
others=()
for file in ./*.test.mjs; do
    [ "$file" = "$patient" ] || others+=("$file")
done
status=0
node --test --test-concurrency=1 "${others[@]}" || status=$?
wait "$waiting" || status=$?
cat "$said"
exit "$status"
