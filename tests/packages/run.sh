#!/usr/bin/env bash
# Tests how scribed is installed: the Debian package, the container image, the manifests of Kubernetes. Installs what it
# needs. Needs root, and the network for Debian's and Python's packages. Some five minutes.
#
#   tests/packages/run.sh                  with target/debug/scribed
#   tests/packages/run.sh --binary FILE    with another program
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/packages/check.sh

binary=${CARGO_TARGET_DIR:-target}/debug/scribed
[[ ${1:-} != --binary ]] || binary=${2:?--binary needs a file}
[[ -x $binary ]] || fail "$binary is missing: cargo build --locked, or name a program with --binary"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

step "deploy/package.sh"
install_packages dpkg-dev xz-utils binutils
deploy/package.sh --binary "$binary" --fast --output "$folder"
package=$(echo "$folder"/scribed_*.deb)

tests/packages/debian.sh "$package"
tests/packages/container.sh "$package"
tests/packages/kubernetes.sh "$binary"
