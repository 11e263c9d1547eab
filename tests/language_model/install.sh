#!/usr/bin/env bash
# Puts the inference server that tests/it/service/language_model_server.rs runs into target/language_model, pinned and with
# hashes, and writes its model, a table of some megabytes. The server is compiled: some ten minutes on two cores. Does
# nothing, and needs no network, where all is there already. With --check it only looks whether it is.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../pinned.sh"

begin language_model requirements.txt make_model.py
end_if has_python "the pinned inference server" "$@"

command -v c++ >/dev/null || give_up "a C++ compiler is missing: install the package g++"

echo "$me: installing the pinned inference server into target/language_model"
make_python
# Without what reads pictures, and for any processor of this kind.
export CMAKE_ARGS="-DLLAVA_BUILD=OFF -DGGML_NATIVE=OFF"
renice --priority 10 $$ >/dev/null
install_packages requirements.txt
"$to/python/bin/python" make_model.py "$to/table.gguf" || give_up "the model could not be written"
finish
