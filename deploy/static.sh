#!/usr/bin/env bash
# Builds scribed as a static program: one file that runs on every Linux of its processor, without an embedded recogniser.
# Prints its path. How to use it: docs/how-to/static-binary.md.
#
#   deploy/static.sh                   for musl if `rustup target add` has installed that target, else with glibc
#   deploy/static.sh --target TARGET   for this target
#   deploy/static.sh --debug           without optimization
set -euo pipefail

usage() { sed -n '2,7s/^# \{0,1\}//p' "$0"; }

give_up() {
    echo "static.sh: $1" >&2
    exit 1
}

target='' profile=release options=(--release)
while [[ $# -gt 0 ]]; do
    case "$1" in
        --target) target=${2:?--target needs a name}; shift ;;
        --debug) profile=debug options=() ;;
        -h | --help) usage; exit 0 ;;
        *) echo "static.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
    esac
    shift
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."

has_target() { [[ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ]]; }

processor=$(uname -m)
if [[ -z $target ]]; then
    target=$processor-unknown-linux-musl
    has_target "$target" || target=$processor-unknown-linux-gnu
fi
has_target "$target" || give_up "Rust's library for $target is missing: rustup target add $target"
# Some crates have parts in C.
[[ $target != *-musl ]] || command -v "$processor-linux-musl-gcc" >/dev/null ||
    give_up "the C compiler for musl is missing; install it: apt-get install musl-tools"

# Named, so that the flags are those of the program alone, and not of what runs during the build.
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" cargo build "${options[@]}" --locked --target "$target"
program=${CARGO_TARGET_DIR:-target}/$target/$profile/scribed
! readelf --program-headers "$program" | grep --quiet INTERP || give_up "$program is not static"
echo "$program"
