#!/usr/bin/env bash
# Asks a real kube-apiserver and heddle the same things and compares the answers.
#   side-by-side.sh
# The client suite proves its own checks right on the real server (heddle answers it in `cargo test`); the kubectl transcript
# is recorded on both, with the new and the old kubectl, and compared. All records stay in $WORK, which is named at the end.
#   HEDDLE            the binary (default: target/debug/heddle)
#   KUBERNETES_TOOLS  kubectl, debian/kubectl, kube-apiserver, etcd (default: target/kubernetes-tools)
#   WORK              where records and data go (default: a fresh folder under target)
set -euo pipefail

ready_seconds_max=60

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
tools=${KUBERNETES_TOOLS:-$root/target/kubernetes-tools}
heddle=${HEDDLE:-$target/debug/heddle}
mkdir -p "$target"
work=${WORK:-$(mktemp -d "$target/side-by-side.XXXXXX")}
mkdir -p "$work"
export KUBERNETES_TOOLS=$tools

serving=
cleanup() {
    [ -z "$serving" ] || kill "$serving" 2>/dev/null || true
    for dir in "$work"/real-*; do
        [ ! -e "$dir" ] || "$here/stop.sh" "$dir" || true
    done
}
trap cleanup EXIT

# Without controllers, as the real server has none here: what they write would be compared with nothing.
start_heddle() { # DIR
    "$heddle" serve --no-controllers --data-dir "$1" --listen 127.0.0.1:0 >"$1.log" 2>&1 &
    serving=$!
    local started=$SECONDS
    # Written last, when requests are answered.
    until [ -e "$1/endpoints.json" ]; do
        kill -0 "$serving" 2>/dev/null || { echo "heddle ended:" >&2; tail -n 5 "$1.log" >&2; exit 1; }
        [ $((SECONDS - started)) -lt $ready_seconds_max ] || { echo "heddle is not ready" >&2; exit 1; }
        sleep 0.1
    done
}
stop_heddle() {
    kill "$serving"
    wait "$serving" || { echo "heddle did not end cleanly" >&2; exit 1; }
    serving=
}

"$heddle" crds >"$work/crds.yaml"

echo "==> the client suite against kube-apiserver"
"$here/start.sh" "$work/real-suite"
(cd "$root" && HEDDLE_CONFORMANCE_KUBECONFIG=$work/real-suite/kubeconfig \
    cargo test --locked --workspace --features heddle-sim/kubernetes-tests --test kubernetes)
"$here/stop.sh" "$work/real-suite"

failed=0
for client in kubectl debian/kubectl; do
    name=${client//\//-}
    echo "==> the transcript of $client on both"
    "$here/start.sh" "$work/real-$name"
    "$here/transcript.sh" "$tools/$client" "$work/real-$name/kubeconfig" "$work/$name.real" --crds "$work/crds.yaml" |
        tail -n 1
    "$here/stop.sh" "$work/real-$name"
    start_heddle "$work/data-$name"
    "$here/transcript.sh" "$tools/$client" "$work/data-$name/admin.kubeconfig" "$work/$name.heddle" | tail -n 1
    stop_heddle
    # Both comparisons are shown before the run fails.
    more=
    [ "$client" = kubectl ] || more=$here/expected-differences-old-kubectl.txt
    "$here/compare.sh" "$work/$name.real" "$work/$name.heddle" ${more:+"$more"} >"$work/$name.txt" || failed=1
    grep -v '^same ' "$work/$name.txt"
done
echo "records are in $work"
exit $failed
