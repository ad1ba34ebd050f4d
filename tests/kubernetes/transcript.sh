#!/usr/bin/env bash
# Runs a fixed list of kubectl commands against a server and records what each one said.
#   transcript.sh KUBECTL KUBECONFIG OUTDIR [--crds FILE]
# One file per step, OUTDIR/NN-name.txt: the command, the exit code, standard output, standard error. Two such folders are
# compared by compare.sh. With --crds the definitions in FILE are installed first: a real API server needs that, ours has
# the kinds built in. The server must be fresh, since names are fixed and the transcript does not clean up behind itself.
set -euo pipefail

# Far more than any step needs; a step that waits for ever ends here with exit code 124 and the rest still runs.
step_seconds_max=60

usage() { echo "usage: ${0##*/} KUBECTL KUBECONFIG OUTDIR [--crds FILE]" >&2; exit 2; }
[ $# -eq 3 ] || { [ $# -eq 5 ] && [ "$4" = --crds ]; } || usage
kubectl=$(realpath "$(command -v "$1")") kubeconfig=$(realpath "$2")
crds=${5:+$(realpath "$5")}
mkdir -p "$3"
out=$(cd "$3" && pwd)
rm -f "$out"/*.txt

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$(dirname "${BASH_SOURCE[0]}")/manifests"

# Nothing of the person who runs this may show: no configuration, no discovery cache, no time zone, no colours, no pager.
export HOME=$work/home KUBECONFIG=$kubeconfig TZ=UTC LC_ALL=C KUBERC=off
unset KUBECTL_EXTERNAL_DIFF KUBE_EDITOR EDITOR
mkdir "$HOME"
exec </dev/null

if [ -n "$crds" ]; then
    # Before the first recorded step, and with its own cache, so that the steps discover the kinds afresh.
    HOME=$work "$kubectl" create -f "$crds" >/dev/null
    HOME=$work "$kubectl" wait --for=condition=Established crd --all --timeout=60s >/dev/null
    # A definition is served a moment before it is in the published schema, which kubectl validates with.
    for kind in trigger broker channel application; do
        for _ in $(seq 120); do
            HOME=$work "$kubectl" explain "$kind.spec" >/dev/null 2>&1 && break
            sleep 0.5
        done
    done
fi
if HOME=$work "$kubectl" get namespace transcript >/dev/null 2>&1; then
    echo "namespace transcript exists: the transcript needs a fresh server" >&2
    exit 1
fi

count=0
# open_step NAME COMMAND... - starts the file of the next step.
open_step() {
    count=$((count + 1))
    file=$(printf '%s/%03d-%s.txt' "$out" "$count" "$1")
    shift
    printf '$' >"$file"
    printf ' %q' "$@" >>"$file"
    printf '\n' >>"$file"
}
close_step() { # EXIT_CODE
    {
        printf 'exit: %s\n--- stdout\n' "$1"
        cat "$work/stdout"
        printf -- '--- stderr\n'
        cat "$work/stderr"
    } >>"$file"
    printf '%s exit %s\n' "$(basename "$file" .txt)" "$1"
}

# k NAME ARG... - one step: kubectl with these arguments. kn does the same in the namespace of the transcript.
k() {
    local name=$1 code=0
    shift
    open_step "$name" kubectl "$@"
    timeout -k 5 "$step_seconds_max" "$kubectl" "$@" >"$work/stdout" 2>"$work/stderr" || code=$?
    close_step "$code"
}
kn() {
    local name=$1
    shift
    k "$name" -n transcript "$@"
}

# k_through NAME FILTER ARG... - as k, with the standard output sent through a shell command: for lists in which a real
# server has much more, or that it gives in the order in which it heard of the definitions.
k_through() {
    local name=$1 filter=$2 code=0
    shift 2
    open_step "$name" kubectl "$@"
    timeout -k 5 "$step_seconds_max" "$kubectl" "$@" >"$work/all" 2>"$work/stderr" || code=$?
    bash -c "$filter" <"$work/all" >"$work/stdout" || true
    close_step "$code"
}

# kn_watch NAME LINES ACTION ARG... - watches, runs the function ACTION once the first line is there, and stops the watch
# when it has printed LINES lines (or after a while, which then shows as missing lines).
kn_watch() {
    local name=$1 lines=$2 action=$3 pid
    shift 3
    open_step "$name" kubectl -n transcript "$@"
    timeout -k 5 "$step_seconds_max" "$kubectl" -n transcript "$@" >"$work/stdout" 2>"$work/stderr" &
    pid=$!
    await_lines 1 || true
    "$action" >/dev/null 2>&1 || true
    await_lines "$lines" || true
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    close_step stopped
}
await_lines() {
    for _ in $(seq 100); do
        [ "$(wc -l <"$work/stdout")" -ge "$1" ] && return 0
        sleep 0.1
    done
    return 1
}

# fact NAME COMMAND... - one step that records whether a shell condition holds.
fact() {
    local name=$1 code=0
    shift
    open_step "$name" fact
    : >"$work/stderr"
    if "$@"; then echo yes; else echo no; fi >"$work/stdout"
    close_step "$code"
}

# Unrecorded helpers: a field of an object, and kubectl for its effect alone.
field() { "$kubectl" -n transcript get "$1" "$2" -o "jsonpath={$3}" 2>/dev/null || true; }
quietly() { "$kubectl" "$@" >/dev/null 2>&1 || true; }

# The parts use this one; it is spelled out so that raw requests can be read in the record.
# shellcheck disable=SC2034
triggers=/apis/eventing.knative.dev/v1/namespaces/transcript/triggers

for part in ../transcript/*.sh; do
    # shellcheck source=/dev/null
    . "$part"
done
echo "$count steps recorded in $out"
