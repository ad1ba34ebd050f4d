#!/usr/bin/env bash
# What Prometheus says of heddle: that the alert rules are rules, that each fires where it should and is silent where it should
# be, that it makes of recorded series what heddle makes of them, that the metrics of the real binary are metrics, and that every query of the dashboards finds what it is about.
#   rules.sh HEDDLE XTASK
set -euo pipefail

heddle=$(realpath "${1:?usage: rules.sh HEDDLE XTASK}")
xtask=$(realpath "${2:?usage: rules.sh HEDDLE XTASK}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=${KUBERNETES_TOOLS:-$root/target/kubernetes-tools}/prometheus
promtool=$tools/promtool
work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; wait "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

echo "==> alert rules"
"$xtask" alerts "$work"
diff <("$heddle" export alerts --url https://heddle.example) rules.yml
"$promtool" check rules rules.yml
"$promtool" test rules tests.yml

echo "==> metrics"
"$heddle" serve --data-dir data --listen 127.0.0.1:0 --events 127.0.0.1:0 --log warn >log 2>&1 &
server=$!
for _ in $(seq 300); do
    [ -e data/endpoints.json ] && break
    kill -0 "$server" || { cat log >&2; exit 1; }
    sleep 0.1
done
export KUBECONFIG=$work/data/admin.kubeconfig HEDDLE_DATA_DIR=$work/data
"$heddle" apply -f "$root/examples/shop.yaml"
# The Application has its door a moment later.
accepted=
for _ in $(seq 100); do
    "$heddle" publish shop --type order.created --data '{}' 2>refused && accepted=yes && break
    sleep 0.1
done
[ -n "$accepted" ] || { cat refused >&2; exit 1; }
control=$(sed -n 's/.*"control": "\([^"]*\)".*/\1/p' data/endpoints.json)
# A heartbeat arrives before the judge has looked at it.
for _ in $(seq 600); do
    curl -fsS -H "Authorization: Bearer $(cat data/metrics-token)" "$control/metrics" >metrics
    grep -q '^heddle_heartbeat_age_seconds{app=""' metrics && grep -q '^heddle_health{app="",ns="",plane="all"} 3$' metrics && break
    sleep 0.1
done
grep -q '^heddle_health{app="",ns="",plane="all"} 3$' metrics || { grep '^heddle_health' metrics; exit 1; }
"$promtool" check metrics <metrics
# A rule that asks for a number which nobody tells would never fire. Some are told only once they have happened.
for metric in $(grep -o 'heddle_[a-z_]*' rules.yml | sort -u); do
    metric=${metric%_bucket}
    metric=${metric%_count}
    case $metric in
        heddle_unaccounted | heddle_dead_letters | heddle_oldest_pending_seconds) continue ;;
    esac
    grep -q "^# TYPE ${metric%_total} \|^# TYPE $metric " metrics || { echo "nobody tells $metric" >&2; exit 1; }
done

echo "==> dashboards"
"$xtask" dashboards "$work"
mkdir dashboards
"$heddle" export dashboards dashboards
"$root/tests/prometheus/dashboards.py" "$heddle" "$tools/prometheus" queries.json dashboards
