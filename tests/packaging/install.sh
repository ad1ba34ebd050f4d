#!/usr/bin/env bash
# Packs a binary and lives with the package: installs it on this machine, serves from it as the service would, removes it,
# installs it again, purges it.
#   install.sh BINARY XTASK
# Everything happens on a copy of this machine's files that is thrown away (an overlay in memory, in a mount namespace of its
# own), so that nothing is left behind; what it needs is root, or sudo, and dpkg and systemd-analyze, which are real.
set -euo pipefail

binary=$(realpath "${1:?usage: install.sh BINARY XTASK}")
xtask=$(realpath "${2:?usage: install.sh BINARY XTASK}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
cd "$root"

echo "==> the same sources make the same files"
strip -o "$work/heddle" "$binary"
export SOURCE_DATE_EPOCH=1700000000
for out in one two; do
    "$xtask" dist --binary "$work/heddle" --out "$work/$out"
done
diff -r "$work/one" "$work/two"
(cd "$work/one" && sha256sum --check --strict SHA256SUMS)
deb=$(ls "$work"/one/*.deb)
dpkg-deb --info "$deb"

echo "==> on a copy of this machine"
"${as_root[@]}" unshare --mount --pid --fork --kill-child bash -euo pipefail -c '
    mount -t tmpfs -o mode=0755 tmpfs /mnt
    mkdir /mnt/upper /mnt/work /mnt/machine
    mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/machine
    mount -t proc proc /mnt/machine/proc
    mount --rbind /dev /mnt/machine/dev
    mount -t tmpfs tmpfs /mnt/machine/run
    mount -t tmpfs -o mode=1777 tmpfs /mnt/machine/tmp
    cp "$1" /mnt/machine/tmp/heddle.deb
    cp "$2" /mnt/machine/tmp/installed.sh
    exec chroot /mnt/machine /bin/bash /tmp/installed.sh /tmp/heddle.deb
' bash "$deb" "$root/tests/packaging/installed.sh"
