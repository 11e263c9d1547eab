#!/usr/bin/env bash
# Puts what tests/packages/run.sh validates the manifests of Kubernetes and the compose file with into target/packages.
# All pinned, with hashes. Does nothing, and needs no network, where it is there already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

to=../../target/packages
stamp=$to/installed
hash=$(sha256sum <requirements.txt)

me=tests/packages/install.sh
source ../pinned.sh

if is_there; then
    echo "$me: it is there"
    exit 0
fi

python=$(find_python) || give_up "python3 with venv is missing; run deploy/install.sh --tests"

echo "$me: installing the pinned validators into target/packages"
mkdir -p "$to"
rm -rf "$stamp" "$to/python"
"$python" -m venv "$to/python"
"$to/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.txt ||
    give_up "the Python packages could not be installed: that needs the network, once"
printf '%s\n' "$hash" >"$stamp"
