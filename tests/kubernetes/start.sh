#!/usr/bin/env bash
# Starts etcd and a real kube-apiserver on 127.0.0.1, with all their state in DIR.
#   start.sh DIR
# Leaves DIR/kubeconfig (cluster admin), DIR/*.pid and DIR/*.log; returns when the server is ready. stop.sh ends both.
# The programs come from $KUBERNETES_TOOLS (default: target/kubernetes-tools) and are built there when absent.
# There is no controller-manager: no garbage collection of owned objects, and namespaces stay Terminating.
set -euo pipefail

ready_seconds_max=180

[ $# -eq 1 ] || { echo "usage: ${0##*/} DIR" >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=${KUBERNETES_TOOLS:-$here/../../target/kubernetes-tools}
"$here/tools/build.sh" etcd "$tools" >&2
"$here/tools/build.sh" kube-apiserver "$tools" >&2
tools=$(cd "$tools" && pwd)

umask 077 # the folder will hold a token that may do everything
mkdir -p "$1"
cd "$1"
for name in etcd kube-apiserver; do
    if [ -e "$name.pid" ] && kill -0 "$(cat "$name.pid")" 2>/dev/null; then
        echo "$name is running in $PWD already" >&2
        exit 1
    fi
done
# A fresh server every time: the transcript relies on it.
rm -rf etcd-data certs ./*.pid ./*.log kubeconfig

# Three ports that were free a moment ago; another process may still take one, then the start fails and says so.
read -r client_port peer_port secure_port < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(3)]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))')

token=$(openssl rand -hex 16)
echo "$token,admin,admin,\"system:masters\"" >token.csv
openssl genrsa -out sa.key 2048 2>/dev/null

etcd_url=http://127.0.0.1:$client_port
peer_url=http://127.0.0.1:$peer_port
nohup "$tools/etcd" --name test --data-dir etcd-data --log-level error \
    --listen-client-urls "$etcd_url" --advertise-client-urls "$etcd_url" \
    --listen-peer-urls "$peer_url" --initial-advertise-peer-urls "$peer_url" --initial-cluster "test=$peer_url" \
    >etcd.log 2>&1 </dev/null &
echo $! >etcd.pid

nohup "$tools/kube-apiserver" --etcd-servers="$etcd_url" \
    --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$secure_port" --cert-dir=certs \
    --service-cluster-ip-range=10.0.0.0/24 --endpoint-reconciler-type=none \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file=sa.key --service-account-signing-key-file=sa.key \
    --token-auth-file=token.csv --authorization-mode=RBAC --disable-admission-plugins=ServiceAccount \
    >kube-apiserver.log 2>&1 </dev/null &
echo $! >kube-apiserver.pid

server=https://127.0.0.1:$secure_port
fail() {
    echo "$1; last lines of the logs in $PWD:" >&2
    tail -n 5 etcd.log kube-apiserver.log >&2
    "$here/stop.sh" "$PWD" >&2
    exit 1
}
# The default namespace is made shortly after the server calls itself ready, and it is asked for first by many.
started=$SECONDS
until curl -fsS --noproxy '*' --cacert certs/apiserver.crt "$server/readyz" >/dev/null 2>&1 &&
    curl -fsS --noproxy '*' --cacert certs/apiserver.crt -H "Authorization: Bearer $token" \
        "$server/api/v1/namespaces/default" >/dev/null 2>&1; do
    kill -0 "$(cat etcd.pid)" 2>/dev/null || fail "etcd ended"
    kill -0 "$(cat kube-apiserver.pid)" 2>/dev/null || fail "kube-apiserver ended"
    [ $((SECONDS - started)) -lt $ready_seconds_max ] || fail "kube-apiserver is not ready after $ready_seconds_max s"
    sleep 0.2
done

cat >kubeconfig <<EOF
apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster: {server: "$server", certificate-authority: certs/apiserver.crt}
users:
- name: admin
  user: {token: $token}
contexts:
- name: test
  context: {cluster: test, user: admin}
EOF
echo "kube-apiserver is ready at $server; kubeconfig: $PWD/kubeconfig"
