#!/bin/sh
# Called as: entrypoint ACTION --extra-vars @/run/bundle/variables.json. Each variable is a file in /run/bundle/variables too.
# /data is the instance's own from provision to deprovision. What is handed out goes to /out.
# Exit 0: done. Exit 8: nothing to do for this action. Anything else: failed, and /out/message says why.
set -eu

case $1 in
provision | update)
    cat /run/bundle/variables/greeting > /data/greeting
    ;;
bind)
    # A greeting with a quote in it would need escaping: keep what you hand out simple, or use a program that writes JSON.
    case $(cat /data/greeting) in
    *[\"\\]*) echo "the greeting cannot be handed out" > /out/message; exit 1 ;;
    esac
    echo "{\"greeting\": \"$(cat /data/greeting)\"}" > /out/credentials.json
    ;;
unbind | deprovision)
    ;;
*)
    exit 8
    ;;
esac
