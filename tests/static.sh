#!/usr/bin/env bash
# Builds scribed as a static program and runs it in a root that has nothing else. Needs root for that, and some ten minutes
# for the first build.
#
#   tests/static.sh                  builds it first, without optimization
#   tests/static.sh --binary FILE    with a static program that is built already, as deploy/static.sh builds it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/packages/check.sh

binary=''
[[ ${1:-} != --binary ]] || binary=${2:?--binary needs a file}
[[ -n $binary ]] || binary=$(deploy/static.sh --debug | tail -n 1)

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{tmp,state,media,proc,dev}
cp "$binary" "$root/scribed"
echo '127.0.0.1 localhost' >"$root/hosts"
mkdir "$root/etc"
mv "$root/hosts" "$root/etc/"
printf '[state]\nstore = "sled:/state"\n[[source]]\nfolder = "/media"\n' >"$root/jobs.toml"
inside() { unshare --net --mount chroot "$root" /scribed "$@"; }

step "one file, and what it says"
same 0 eval 'readelf --dynamic "$binary" | grep --count NEEDED || true'
has '(static, without an embedded recogniser)' inside --version
has 'a static program without an embedded recogniser' eval 'inside --config /jobs.toml check 2>&1 || true'
has 'deploy/static.sh' inside manual static-binary

step "what works without a recogniser"
has 'scan' inside schema
same 0 eval 'inside --config /jobs.toml jobs --json | wc -l'

# A program that is built without optimization has the clock of tests.
if [[ ${1:-} == --binary ]]; then
    step "no variable moves its clock"
    echo "$a_year_ahead" >"$root/wall"
    SCRIBED_TEST_WALL=/wall inside --config /jobs.toml plan --save /plan >&2
    dated_now <"$root/plan"
fi

finish "static program"
