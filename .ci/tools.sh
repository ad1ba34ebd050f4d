#!/usr/bin/env bash
# Installs what is missing and nothing else, on Debian or a relative of it, as root or with sudo.
#   tools.sh rust|kubectl|fuse|bundles|packaging|prometheus|origins|dist|kube-apiserver|deny|fuzz|schemathesis|browser...
# Ends with an error when something cannot be had: a test that needs it must not be skipped.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=${KUBERNETES_TOOLS:-$root/target/kubernetes-tools}
export PATH=$tools/go/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH

usage() { echo "usage: ${0##*/} rust|kubectl|fuse|bundles|packaging|prometheus|origins|dist|kube-apiserver|deny|fuzz|schemathesis|browser..." >&2; exit 2; }
[ $# -gt 0 ] || usage

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "cannot run as root, and there is no sudo: $*" >&2
        return 1
    fi
}

updated=
update_packages() {
    [ -n "$updated" ] || as_root apt-get update -q
    updated=yes
}

# packages COMMAND=PACKAGE... - installs the packages whose command is absent.
packages() {
    local pair missing=()
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
    done
    [ ${#missing[@]} -eq 0 ] && return
    update_packages
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# The toolchain itself is pinned in rust-toolchain.toml; rustup fetches it at the first use of cargo.
rust() {
    packages cc=build-essential curl=curl git=git
    [ -e /etc/ssl/certs/ca-certificates.crt ] || { update_packages; as_root apt-get install -q -y ca-certificates; }
    if ! command -v cargo >/dev/null; then
        echo "there is no cargo: install Rust with rustup first; rust-toolchain.toml pins the version" >&2
        return 1
    fi
    (cd "$root" && cargo --version)
}

# A Go that can build the pinned release, or one recent enough to fetch the Go that can.
golang() {
    command -v go >/dev/null || packages go=golang-go
    local wanted minor
    wanted=$(sed -n 's/^go \([0-9.]*\)$/\1/p' "$root/tests/kubernetes/tools/go.mod")
    minor=$(go version | sed -n 's/^go version go1\.\([0-9]*\).*/\1/p')
    # Since 1.21 the go command replaces itself by the version that go.mod names. An older one is helped to do so.
    if [ "${minor:-0}" -lt 21 ]; then
        echo "$(go version) is too old for go.mod, which asks for $wanted: fetching that one into $tools/go"
        fetch_go "$wanted"
    fi
    GOTOOLCHAIN=auto go version
}

# From where Go's own modules come, as the go command would.
fetch_go() { # VERSION
    packages curl=curl python3=python3
    local name proxy url
    name=toolchain@v0.0.1-go$1.linux-$(dpkg --print-architecture)
    proxy=$(go env GOPROXY)
    url=${proxy%%[,|]*}/golang.org/${name/@/\/@v\/}.zip
    mkdir -p "$tools"
    rm -rf "$tools/go" "$tools/golang.org"
    curl --proto '=https' -fsSL "$url" -o "$tools/go.zip"
    python3 -m zipfile -e "$tools/go.zip" "$tools"
    mv "$tools/golang.org/$name" "$tools/go"
    rm -r "$tools/golang.org" "$tools/go.zip"
    chmod -R a+x "$tools/go/bin" "$tools/go/pkg/tool"
    hash -r
}

# The kubectl of today and the one Debian has shipped for years.
kubectl() {
    golang
    GOTOOLCHAIN=auto "$root/tests/kubernetes/tools/build.sh" kubectl "$tools"
    if [ ! -x "$tools/debian/kubectl" ]; then
        update_packages
        "$root/tests/kubernetes/tools/debian-kubectl.sh" "$tools/debian"
    fi
}

# What mounts the file system of the power-loss suite. Root needs nothing but the device.
fuse() {
    [ -e /dev/fuse ] || as_root modprobe fuse || true
    if [ ! -e /dev/fuse ]; then
        echo "there is no /dev/fuse: load the kernel's module, or give the container --device /dev/fuse and CAP_SYS_ADMIN" >&2
        return 1
    fi
    [ "$(id -u)" -eq 0 ] || packages fusermount3=fuse3
}

kube_apiserver() {
    packages python3=python3 openssl=openssl curl=curl ps=procps
    golang
    local name
    for name in etcd kube-apiserver; do
        GOTOOLCHAIN=auto "$root/tests/kubernetes/tools/build.sh" "$name" "$tools"
    done
}

deny() {
    command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
    cargo deny --version
}

# The fuzzer itself is C++, and comes with a crate.
fuzz() { packages c++=g++; }

# unpack PACKAGE PROGRAM FILE - takes one program out of a package, without installing it: some start a server of their own.
unpack() {
    local package=$1 program=$2 file=$3
    [ -x "$file" ] && return
    update_packages
    mkdir -p "$(dirname "$file")"
    rm -rf "$file.unpack"
    mkdir -p "$file.unpack"
    (cd "$file.unpack" && apt-get download -q "$package" && dpkg-deb -x ./*.deb root)
    find "$file.unpack/root" -type f -name "$program" -path '*bin*' -exec mv {} "$file" \;
    rm -r "$file.unpack"
    [ -x "$file" ] || { echo "the package $package has no program $program" >&2; return 1; }
}

# A real registry for images, and a shell that needs nothing around it to be put into images.
bundles() {
    unpack docker-registry docker-registry "$tools/bundles/docker-registry"
    unpack busybox-static busybox "$tools/bundles/busybox-static"
}

# What judges alert rules, metrics and dashboards.
prometheus() {
    packages python3=python3 curl=curl
    unpack prometheus promtool "$tools/prometheus/promtool"
    unpack prometheus prometheus "$tools/prometheus/prometheus"
    "$tools/prometheus/promtool" --version
}

# Old meshes that events are taken out of: their servers, and a client of the time.
origins() {
    packages python3=python3 openssl=openssl
    python3 -c 'import ensurepip, venv' 2>/dev/null || { update_packages; as_root apt-get install -q -y python3-venv; }
    golang
    local name
    for name in nats-streaming-server natss-client jetstream-client; do
        GOTOOLCHAIN=auto "$root/tests/origins/tools/build.sh" "$name" "$tools/origins"
    done
    "$root/tests/origins/tools/nats-server.sh" "$tools/origins"
}

# What a package is tried with.
packaging() { packages dpkg-deb=dpkg systemd-analyze=systemd man=man-db strip=binutils setpriv=util-linux adduser=adduser; }

# For a binary that needs no library of the machine it runs on: Rust's half of musl, and a C compiler for the other.
dist() {
    packages musl-gcc=musl-tools
    local target
    target=$(uname -m)-unknown-linux-musl
    (cd "$root" && rustup target list --installed | grep -qx "$target") || (cd "$root" && rustup target add "$target")
}

# Invents requests from an OpenAPI document.
schemathesis() {
    local home=$tools/schemathesis
    if [ ! -x "$home/bin/schemathesis" ]; then
        packages python3=python3
        python3 -c 'import ensurepip, venv' 2>/dev/null || { update_packages; as_root apt-get install -q -y python3-venv; }
        rm -rf "$home"
        python3 -m venv "$home"
        "$home/bin/pip" install --quiet schemathesis
    fi
    "$home/bin/schemathesis" --version
}

# A browser, and what drives it: pinned by the hashes of its lock file, none of it part of heddle.
browser() {
    packages chromium=chromium node=nodejs npm=npm
    local suite=$root/tests/ui
    if [ ! -e "$suite/node_modules/.package-lock.json" ] || [ "$suite/package-lock.json" -nt "$suite/node_modules/.package-lock.json" ]; then
        (cd "$suite" && npm ci --ignore-scripts --no-audit --no-fund)
    fi
    chromium --version
}

for what in "$@"; do
    case $what in
        rust | kubectl | fuse | bundles | packaging | prometheus | origins | dist | deny | fuzz | schemathesis | browser) "$what" ;;
        kube-apiserver) kube_apiserver ;;
        *) usage ;;
    esac
done
