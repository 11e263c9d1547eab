#!/usr/bin/env bash
# Tests how scribed is installed: the Debian package, the container image, the manifests of Kubernetes. Installs what it
# needs. Needs root, and the network for Debian's and Python's packages. Some five minutes.
#
#   tests/packages/run.sh                  builds scribed first, as for a release but without optimization
#   tests/packages/run.sh --binary FILE    with another program
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/packages/check.sh

if [[ ${1:-} == --binary ]]; then
    binary=${2:?--binary needs a file}
else
    # With debug assertions, tests could move its clock, which no package allows.
    CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=false cargo build --locked --target-dir target/packages
    binary=target/packages/debug/scribed
fi
[[ -x $binary ]] || fail "$binary is missing"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

step "deploy/package.sh"
install_packages dpkg-dev xz-utils binutils
deploy/package.sh --binary "$binary" --fast --output "$folder"
package=$(echo "$folder"/scribed_*.deb)

tests/packages/debian.sh "$package"
tests/packages/container.sh "$package"
tests/packages/kubernetes.sh "$binary"
