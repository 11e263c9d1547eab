#!/usr/bin/env bash
# Whole jobs a second, beside an aiohttp script. Installs aiohttp into target/bench-venv when it is not
# there. An argument is the number of jobs (2000).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=target/bench-venv
if ! "$venv/bin/python" -c 'import aiohttp' 2>/dev/null; then
    echo "installing aiohttp into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet aiohttp
fi
BENCH_PYTHON="$PWD/$venv/bin/python" exec cargo bench --locked --bench jobs -- "$@"
