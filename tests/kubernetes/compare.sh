#!/usr/bin/env bash
# Compares two transcripts step by step, after masking times, uids and the like (normalise.py).
#   compare.sh OUT_A OUT_B [MORE]
# Says for every step whether the two servers agreed, and shows the lines where they did not. A difference is accepted when
# expected-differences.txt (or the file MORE, for what only one client sees) names the step and the reason. Exit
# code 1 if any other difference is found.
set -euo pipefail

diff_lines_max=60

[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "usage: ${0##*/} OUT_A OUT_B [MORE]" >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for dir in "$1" "$2"; do
    compgen -G "$dir/*.txt" >/dev/null || { echo "no transcript in $dir" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/normalise.py" "$1" "$work/a"
"$here/normalise.py" "$2" "$work/b"

# By name, since the numbers shift when a step is added.
for side in a b; do
    for file in "$work/$side"/*.txt; do
        name=$(basename "$file" .txt)
        mv "$file" "$work/$side/${name#*-}"
        echo "${name#*-}"
    done >"$work/$side.names"
done
awk '!seen[$0]++' "$work/a.names" "$work/b.names" >"$work/names"
sed -E '/^[[:space:]]*(#|$)/d' ${3:+"$3"} "$here/expected-differences.txt" >"$work/expected"

reason_for() { awk -v name="$1" '$1 == name { $1 = ""; sub(/^ /, ""); print; exit }' "$work/expected"; }

same=0 expected=0 unexpected=0
while read -r name; do
    a=$work/a/$name b=$work/b/$name
    if [ ! -e "$a" ] || [ ! -e "$b" ]; then
        what="only in one transcript"
    elif cmp -s "$a" "$b"; then
        same=$((same + 1))
        printf 'same      %s\n' "$name"
        continue
    elif [ "$(sed -n 's/^exit: //p;/^exit: /q' "$a")" != "$(sed -n 's/^exit: //p;/^exit: /q' "$b")" ]; then
        what="exit code"
    else
        what="text"
    fi
    reason=$(reason_for "$name")
    if [ -n "$reason" ]; then
        expected=$((expected + 1))
        printf 'expected  %s (%s): %s\n' "$name" "$what" "$reason"
    else
        unexpected=$((unexpected + 1))
        printf 'DIFFERS   %s (%s)\n' "$name" "$what"
        diff -U 2 --label "$1" --label "$2" "$a" "$b" 2>&1 | head -n "$diff_lines_max" | sed 's/^/    /' || true
    fi
done <"$work/names"

printf '\n%d steps: %d same, %d expected differences, %d unexpected differences\n' \
    "$(wc -l <"$work/names")" "$same" "$expected" "$unexpected"
# An expectation that has come true for both sides only hides a later regression.
while read -r name _; do
    if cmp -s "$work/a/$name" "$work/b/$name"; then
        echo "note: $name is listed as an expected difference but does not differ"
    fi
done <"$work/expected"
[ "$unexpected" -eq 0 ]
