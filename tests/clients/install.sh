#!/usr/bin/env bash
# Puts what tests/it/service/official_clients.rs and openai.rs run into target/clients: the official clients for
# Python and JavaScript of the public service and of OpenAI, and a checker of OpenAPI documents; and what
# tests/it/outputs/formats.rs reads outputs with, and the mail server of tests/it/notifications/mail.rs. All pinned, with
# hashes. Does nothing, and needs no network, where they are there already. With --check it only looks whether they are.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../pinned.sh"

begin clients requirements.txt readers.txt mail.txt package.json package-lock.json .npmrc
end_if has_python "the set of pinned clients" "$@"

for program in node npm; do
    command -v "$program" >/dev/null || give_up "$program is missing; run deploy/install.sh --tests"
done

echo "$me: installing the pinned clients into target/clients"
make_python "$to/node_modules"
install_packages requirements.txt readers.txt mail.txt
cp package.json package-lock.json .npmrc "$to/"
npm ci --prefix "$to" --silent --ignore-scripts ||
    give_up "the Node.js packages could not be installed: that needs the network, once"
finish
