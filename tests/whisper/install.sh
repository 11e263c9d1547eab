#!/usr/bin/env bash
# Puts the library of whisper.cpp that tests/it/service/whisper.rs runs into target/whisper; pinned, with hashes. Does
# nothing, and needs no network, where it is there already. With --check it only looks whether it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

to=../../target/whisper
stamp=$to/installed
hash=$(sha256sum <requirements.txt)

me=tests/whisper/install.sh
source ../pinned.sh

if [[ -f $stamp && $(<"$stamp") == "$hash" && -e $to/libwhisper.so ]]; then
    echo "$me: it is there"
    exit 0
fi
[[ ${1:-} != --check ]] || give_up "the pinned library of whisper.cpp is not installed; run tests/whisper/install.sh"

python=$(find_python) || give_up "python3 with venv is missing; run deploy/install.sh --tests"

echo "$me: installing the pinned library of whisper.cpp into target/whisper"
rm -rf "$to"
mkdir -p "$to"
"$python" -m venv "$to/python"
# The library is the same for each version of Python: the wheel for one of them is taken, whichever is here.
"$to/python/bin/pip" download --quiet --disable-pip-version-check --require-hashes --no-deps --dest "$to" \
    --only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 \
    --platform "manylinux_2_28_$(uname -m)" -r requirements.txt ||
    give_up "the library could not be fetched: that needs the network, once"
"$python" -m zipfile --extract "$to"/pywhispercpp-*.whl "$to"
rm -rf "$to/python" "$to"/pywhispercpp-*.whl "$to"/*.dist-info "$to/pywhispercpp"
printf '%s\n' "$hash" >"$stamp"
