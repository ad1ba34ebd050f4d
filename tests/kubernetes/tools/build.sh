#!/usr/bin/env bash
# Builds kubectl, kube-apiserver or etcd of the release pinned in go.mod.
#   build.sh kubectl|kube-apiserver|etcd OUTDIR
# Does nothing when OUTDIR already holds that release. Modules come through the ordinary Go module proxy settings.
set -euo pipefail

usage() { echo "usage: ${0##*/} kubectl|kube-apiserver|etcd OUTDIR" >&2; exit 2; }
[ $# -eq 2 ] || usage
name=$1 out=$2
case $name in kubectl | kube-apiserver | etcd) ;; *) usage ;; esac

mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"

case $name in etcd) module=go.etcd.io/etcd/server/v3 ;; *) module=k8s.io/kubernetes ;; esac
version=$(sed -n "s|^[[:space:]]*$module \(v[0-9.]*\).*|\1|p" go.mod | head -n 1)
current() {
    case $name in
        kubectl) "$out/kubectl" version --client 2>/dev/null | sed -n 's/^Client Version: //p' ;;
        kube-apiserver) "$out/kube-apiserver" --version 2>/dev/null | sed 's/^Kubernetes //' ;;
        etcd) "$out/etcd" --version 2>/dev/null | sed -n 's/^etcd Version: /v/p' ;;
    esac
}
if [ -x "$out/$name" ] && [ "$(current)" = "$version" ]; then
    echo "$out/$name is $version already"
    exit 0
fi

major=${version#v} minor=${version#v*.}
major=${major%%.*} minor=${minor%%.*}
pkg=k8s.io/component-base/version
started=$SECONDS
# Built beside the final name and moved, so that an interrupted build never looks like a finished one.
CGO_ENABLED=0 nice -n "${BUILD_NICE:-10}" go build -p "${BUILD_JOBS:-2}" -trimpath -buildvcs=false \
    -ldflags "-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=$major -X $pkg.gitMinor=$minor -X $pkg.gitTreeState=clean" \
    -o "$out/.$name.new" "./$name"
mv "$out/.$name.new" "$out/$name"
echo "built $out/$name $version in $((SECONDS - started)) s"
