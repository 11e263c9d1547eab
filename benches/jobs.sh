#!/usr/bin/env bash
# Measures whole jobs a second, compared with an aiohttp script. Installs aiohttp into target/bench-venv if it is
# missing. The argument is the number of jobs (2000).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=target/bench-venv
if ! "$venv/bin/python" -c 'import aiohttp' 2>/dev/null; then
    echo "installing aiohttp into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet aiohttp
fi
BENCH_PYTHON="$PWD/$venv/bin/python" exec cargo bench --locked --bench jobs -- "$@"
