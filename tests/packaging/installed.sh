#!/usr/bin/env bash
# Inside of the throw-away copy: what somebody does with the package over the years. Never run this on a machine of yours.
#   installed.sh DEB
set -euo pipefail
deb=$1
export DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
cd /

fail() { echo "FAILED: $*" >&2; exit 1; }
step() { echo "--- $*"; }
# Files and links by the name of heddle where a package may put some; what `man` keeps of pages it has shown is its own.
traces() { find /etc /lib /usr /var -xdev -iname '*heddle*' -not -path '/var/lib/dpkg/*' -not -path '/var/cache/man/*' 2>/dev/null | sort; }

# serve COMMAND... - a server as the unit runs it, on ports of its own, for as long as COMMAND takes.
serve() {
    local server i
    rm -f /var/lib/heddle/endpoints.json
    HEDDLE_CONFIG=/etc/heddle/heddle.yaml HEDDLE_DATA_DIR=/var/lib/heddle HEDDLE_LOG_FORMAT=json \
        setpriv --reuid=heddle --regid=heddle --clear-groups --no-new-privs --bounding-set=-all \
        heddle serve --listen 127.0.0.1:0 --events 127.0.0.1:0 >/tmp/server.log 2>&1 &
    server=$!
    for ((i = 0; i < 600; i++)); do
        [ ! -e /var/lib/heddle/endpoints.json ] || break
        kill -0 "$server" 2>/dev/null || { cat /tmp/server.log; fail "the server ended"; }
        sleep 0.1
    done
    KUBECONFIG=/var/lib/heddle/admin.kubeconfig "$@" || { cat /tmp/server.log; fail "$*"; }
    kill -TERM "$server"
    wait "$server" || { cat /tmp/server.log; fail "the server did not end well"; }
}

[ -z "$(traces)" ] || fail "heddle is here already: $(traces)"

step install
dpkg --install "$deb"
heddle version --client
id heddle
[ "$(stat -c '%U:%G %a' /var/lib/heddle)" = 'heddle:heddle 700' ] || fail "the data directory is $(stat -c '%U:%G %a' /var/lib/heddle)"
dpkg --verify heddle
[ -L /etc/systemd/system/multi-user.target.wants/heddle.service ] || fail "the service is not enabled"

step "the unit, its program and its pages"
verified=$(systemd-analyze verify /lib/systemd/system/heddle.service 2>&1) || fail "$verified"
[ -z "$verified" ] || fail "systemd-analyze has something to say: $verified"
MANPAGER=cat man heddle-serve | grep -q -- --data-dir || fail "the man page does not tell about --data-dir"
bash -c 'source /usr/share/bash-completion/completions/heddle && complete -p heddle'

step "serve, and keep something"
serve heddle apply -f /usr/share/doc/heddle/examples/shop.yaml
[ -s /var/lib/heddle/store/resources.redb ] || fail "nothing was kept"

step "upgrade over a configuration that somebody changed"
echo 'retentionHours: 1' >>/etc/heddle/heddle.yaml
dpkg --install "$deb"
grep -q 'retentionHours: 1' /etc/heddle/heddle.yaml || fail "the configuration was overwritten"

step "remove: the program goes, data and configuration stay"
dpkg --remove heddle
left=$(find /usr /lib /etc/systemd -xdev -iname '*heddle*' -not -path '*/share/doc/*')
[ -z "$left" ] || fail "left behind: $left"
[ -s /var/lib/heddle/store/resources.redb ] || fail "the data is gone"
grep -q 'retentionHours: 1' /etc/heddle/heddle.yaml || fail "the configuration is gone"

step "install again: everything is there"
dpkg --install "$deb"
serve heddle get application shop

step "purge: nothing is left"
dpkg --purge heddle
[ -z "$(traces)" ] || fail "left behind: $(traces)"
! getent passwd heddle || fail "the user is left"
echo "the package installs, serves, keeps what it should and leaves nothing"
