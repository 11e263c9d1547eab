#!/usr/bin/env bash
# Puts the S3 server that tests/it/sources/buckets.rs runs into target/s3; pinned, with hashes. Does nothing, and needs no
# network, where it is there already. With --check it only looks whether it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

to=../../target/s3
stamp=$to/installed
hash=$(sha256sum <requirements.txt)

me=tests/s3/install.sh
source ../pinned.sh

if is_there; then
    echo "$me: it is there"
    exit 0
fi
[[ ${1:-} != --check ]] || give_up "the pinned S3 server is not installed; run tests/s3/install.sh"

python=$(find_python) || give_up "python3 with venv is missing; run deploy/install.sh --tests"

echo "$me: installing the pinned S3 server into target/s3"
mkdir -p "$to"
rm -rf "$stamp" "$to/python"
"$python" -m venv "$to/python"
"$to/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.txt ||
    give_up "the Python packages could not be installed: that needs the network, once"
printf '%s\n' "$hash" >"$stamp"
