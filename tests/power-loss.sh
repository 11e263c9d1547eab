#!/usr/bin/env bash
# Power loss, simulated: the store, and the service's ledger, are worked on while every write and sync is
# written down; then disks are built as they may be found after power was lost at some moment, and each is
# opened and looked at.
# The same with every sync left out is the control: it has to fail, or the simulation proves nothing.
# Arguments: number of states (240), seed (1). Needs gcc and python3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
states=${1:-240} seed=${2:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

gcc -Wall -O1 -shared -fPIC -o "$work/shim.so" tests/power-loss/shim.c -ldl
it=$(cargo test --test it --no-run --message-format=json 2>/dev/null |
    python3 -c 'import json,sys
for line in sys.stdin:
    made = json.loads(line)
    if made.get("executable") and made["target"]["name"] == "it": print(made["executable"])')

run() { # name, room of the tests, environment: does the work under the shim, then looks at the states
    export POWER_LOSS_DIR="$work/$1"
    mkdir "$POWER_LOSS_DIR"
    env "${@:3}" LD_PRELOAD="$work/shim.so" POWER_LOSS_LOG="$work/$1.log" POWER_LOSS_WORK="$POWER_LOSS_DIR" \
        "$it" --exact "store::power_loss::${2}work" --ignored --quiet >/dev/null
    echo -n "$1: "
    python3 tests/power-loss/states.py "$work/$1.log" "$states" "$seed" "$work/room" \
        "$it" --exact "store::power_loss::${2}look" --ignored
}

both() { # name, room of the tests
    run "$1" "$2"
    if run "$1-control" "$2" POWER_LOSS_NO_SYNC=1; then
        echo "the control survived: the simulation finds nothing" >&2
        exit 1
    fi
}

both store ""
both ledger ledger_
