#!/usr/bin/env bash
# Validates the manifests of deploy/kubernetes against the schemas of Kubernetes, and their configurations with scribed.
#
#   tests/packages/kubernetes.sh PROGRAM
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/packages/check.sh

program=$(realpath -- "${1:?name a program}")
tests/packages/install.sh
bin=$PWD/target/packages/python/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step "the manifests"
for file in deploy/kubernetes/*.yaml; do
    # The oldest of today's releases, and the newest.
    for release in 1.34 1.37; do
        "$bin/kubernetes-validate" --strict --quiet --kubernetes-version "$release" "$file" || fail "$file, Kubernetes $release"
        checks=$((checks + 1))
    done
done
# wrong FILE FROM TO: the schemas refuse this.
wrong() {
    sed "s/$2/$3/" "$1" >"$work/wrong.yaml"
    ! cmp --quiet "$1" "$work/wrong.yaml" || fail "$1 has no $2"
    ! "$bin/kubernetes-validate" --strict --quiet "$work/wrong.yaml" >/dev/null 2>&1 || fail "$3 is accepted in $1"
    checks=$((checks + 1))
}
wrong deploy/kubernetes/scribed.yaml 'runAsNonRoot: true' 'runAsNoRoot: true'
wrong deploy/kubernetes/scribed.yaml 'replicas: 1' 'replicas: one'
wrong deploy/kubernetes/media.yaml 'accessModes: .*' 'accessMode: x'

step "what they say together"
"$bin/python" tests/packages/manifests.py "$work" deploy/kubernetes/*.yaml
checks=$((checks + 1))
# Their folders and keys, below the folder of this test.
mkdir "$work/media" "$work/keys"
echo a-key-of-this-test | tee "$work/keys/key" >"$work/keys/serve-key"
sed --in-place "s|/srv/media|$work/media|; s|/var/lib/scribed|$work/state|; s|/run/secrets/scribed|$work/keys|" "$work"/*.toml
has 'is valid' eval '"$program" --config "$work/scribed.toml" check 2>/dev/null || true'
sed 's/^# \(\[service\]\|url\|key\)/\1/' "$work/scribed.toml" >"$work/hosted.toml"
has 'key = "file:' cat "$work/hosted.toml"
has 'is valid' eval '"$program" --config "$work/hosted.toml" check 2>/dev/null || true'

finish "manifests of Kubernetes"
