#!/usr/bin/env bash
# Puts what tests/packages/run.sh validates the manifests of Kubernetes and the compose file with into target/packages.
# All pinned, with hashes. Does nothing, and needs no network, where it is there already. With --check it only looks
# whether it is.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../pinned.sh"

begin packages requirements.txt
end_if has_python "what validates manifests" "$@"

echo "$me: installing the pinned validators into target/packages"
make_python
install_packages requirements.txt
finish
