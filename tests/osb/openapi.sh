#!/usr/bin/env bash
# Sends what schemathesis invents from the OpenAPI document of the Open Service Broker API to the real binary.
#   openapi.sh DOCUMENT
# The document's own gaps are known: which statuses may occur is not asked, since it lists too few of them.
set -euo pipefail

document=$(realpath "$1")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=${KUBERNETES_TOOLS:-$root/target/kubernetes-tools}
heddle=${HEDDLE:-${CARGO_TARGET_DIR:-$root/target}/debug/heddle}
home=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; wait "${server:-}" 2>/dev/null || true; rm -rf "$home"' EXIT

"$heddle" serve --data-dir "$home/data" --listen 127.0.0.1:0 --events 127.0.0.1:0 --log warn >"$home/log" 2>&1 &
server=$!
for _ in $(seq 300); do
    [ -e "$home/data/endpoints.json" ] && break
    kill -0 "$server" || { cat "$home/log" >&2; exit 1; }
    sleep 0.1
done
field() { sed -n "s/.*\"$2\": \"\([^\"]*\)\".*/\1/p" "$home/data/$1"; }
KUBECONFIG=$home/data/admin.kubeconfig "$heddle" apply -f "$root/examples/shop.yaml"
# It keeps notes where it is started, which should not be the working tree.
cd "$home"
"$tools/schemathesis/bin/schemathesis" run "$document" \
    --url "$(field endpoints.json control)" \
    --auth "$(field osb-credentials.json username):$(field osb-credentials.json password)" \
    --checks not_a_server_error,response_schema_conformance,content_type_conformance,ignored_auth,unsupported_method,missing_required_header \
    --phases examples,coverage,fuzzing --max-examples "${EXAMPLES:-50}" --seed "${SEED:-1}" --no-color
