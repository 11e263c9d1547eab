#!/usr/bin/env bash
# Puts the inference server that tests/it/service/language_model_server.rs runs into target/language_model, pinned and with
# hashes, and writes its model, a table of some megabytes. The server is compiled: some ten minutes on two cores. Does
# nothing, and needs no network, where all is there already. With --check it only looks whether it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

to=../../target/language_model
stamp=$to/installed
hash=$(cat requirements.txt make_model.py | sha256sum)

me=tests/language_model/install.sh
source ../pinned.sh

if is_there; then
    echo "$me: all is there"
    exit 0
fi
[[ ${1:-} != --check ]] || give_up "the pinned inference server is not installed; run tests/language_model/install.sh"

python=$(find_python) || give_up "python3 with venv is missing; run deploy/install.sh --tests"
command -v c++ >/dev/null || give_up "a C++ compiler is missing: install the package g++"

echo "$me: installing the pinned inference server into target/language_model"
mkdir -p "$to"
rm -rf "$stamp" "$to/python"
"$python" -m venv "$to/python"
# Without what reads pictures, and for any processor of this kind.
CMAKE_ARGS="-DLLAVA_BUILD=OFF -DGGML_NATIVE=OFF" nice "$to/python/bin/pip" install --quiet \
    --disable-pip-version-check --require-hashes --no-deps -r requirements.txt ||
    give_up "the Python packages could not be installed: that needs the network, once, and a C++ compiler"
"$to/python/bin/python" make_model.py "$to/table.gguf" || give_up "the model could not be written"
printf '%s\n' "$hash" >"$stamp"
