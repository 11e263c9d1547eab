#!/usr/bin/env bash
# Puts the library of whisper.cpp that tests/it/service/whisper.rs runs into target/whisper; pinned, with hashes. Does
# nothing, and needs no network, where it is there already. With --check it only looks whether it is.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../pinned.sh"

begin whisper requirements.txt
has_library() { is_as_pinned && [[ -e $to/libwhisper.so ]]; }
end_if has_library "the pinned library of whisper.cpp" "$@"

echo "$me: installing the pinned library of whisper.cpp into target/whisper"
rm -rf "$to"
make_python
# The library is the same for each version of Python: the wheel for one of them is taken, whichever is here.
pip download --dest "$to" --only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 \
    --platform "manylinux_2_28_$(uname -m)" -r requirements.txt ||
    give_up "the library could not be fetched: that needs the network, once"
"$to/python/bin/python" -m zipfile --extract "$to"/pywhispercpp-*.whl "$to"
rm -rf "$to/python" "$to"/pywhispercpp-*.whl "$to"/*.dist-info "$to/pywhispercpp"
finish
