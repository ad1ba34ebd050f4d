#!/usr/bin/env bash
# Unpacks the kubectl of Debian's kubernetes-client package into OUTDIR/kubectl, without installing the package.
#   debian-kubectl.sh OUTDIR
# It is years older than the pinned kubectl, which is the point: it uses the older discovery and OpenAPI paths.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: ${0##*/} OUTDIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
if [ -x "$out/kubectl" ]; then
    echo "$out/kubectl is there already"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
if ! apt-get download -q kubernetes-client; then
    echo "cannot download kubernetes-client; is 'apt-get update' needed?" >&2
    exit 1
fi
dpkg -x kubernetes-client_*.deb unpacked
install -m 755 unpacked/usr/bin/kubectl "$out/kubectl"
"$out/kubectl" version --client --short
