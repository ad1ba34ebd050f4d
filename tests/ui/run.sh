#!/usr/bin/env bash
# The page in a browser, against the real binary. Fails when there is no browser: whoever asks for it wants it looked at.
#   run.sh HEDDLE
set -euo pipefail
HEDDLE=$(realpath "${1:?usage: run.sh HEDDLE}")
export HEDDLE CHROMIUM=${CHROMIUM:-$(command -v chromium)}
cd "$(dirname "${BASH_SOURCE[0]}")"
exec node --test --test-concurrency=1 ./*.test.mjs
