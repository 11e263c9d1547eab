#!/usr/bin/env bash
# Puts what tests/it/service/official_clients.rs and openai.rs run into target/clients: the official clients for
# Python and JavaScript of the public service and of OpenAI, and a checker of OpenAPI documents; and what
# tests/it/outputs/formats.rs reads outputs with, and the mail server of tests/it/notifications/mail.rs. All pinned, with
# hashes. Does nothing, and needs no network, where they are there already. With --check it only looks whether they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

to=../../target/clients
stamp=$to/installed
hash=$(cat requirements.txt readers.txt mail.txt package.json package-lock.json .npmrc | sha256sum)

me=tests/clients/install.sh
source ../pinned.sh

if is_there; then
    echo "$me: all is there"
    exit 0
fi
[[ ${1:-} != --check ]] || give_up "the pinned clients are not installed; run ./tests/run.sh"

python=$(find_python) || give_up "python3 with venv is missing; run deploy/install.sh --tests"
for program in node npm; do
    command -v "$program" >/dev/null || give_up "$program is missing; run deploy/install.sh --tests"
done

echo "$me: installing the pinned clients into target/clients"
mkdir -p "$to"
rm -rf "$stamp" "$to/python" "$to/node_modules"
"$python" -m venv "$to/python"
"$to/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.txt ||
    give_up "the Python packages could not be installed: that needs the network, once"
"$to/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r readers.txt ||
    give_up "the Python packages could not be installed: that needs the network, once"
"$to/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r mail.txt ||
    give_up "the Python packages could not be installed: that needs the network, once"
cp package.json package-lock.json .npmrc "$to/"
npm ci --prefix "$to" --silent --ignore-scripts ||
    give_up "the Node.js packages could not be installed: that needs the network, once"
printf '%s\n' "$hash" >"$stamp"
