#!/usr/bin/env bash
# Builds the Debian package of scribed, and prints its path. How to use it: docs/how-to/debian-package.md.
#
#   deploy/package.sh                   builds scribed first (cargo build --release --locked)
#   deploy/package.sh --binary FILE     packs this program instead; it has to run on this machine
#   deploy/package.sh --version 0.2-1   another version of the package than that of Cargo.toml
#   deploy/package.sh --output FOLDER   where the package is written; default: target/debian
#   deploy/package.sh --fast            compresses less
set -euo pipefail

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }

give_up() {
    echo "package.sh: $1" >&2
    exit 1
}

binary='' output='' options=()
while [[ $# -gt 0 ]]; do
    case "$1" in
        --binary) binary=$(realpath -- "${2:?--binary needs a file}"); shift ;;
        --version) options+=(--deb-version "${2:?--version needs a version}"); shift ;;
        --output) output=$(realpath -- "${2:?--output needs a folder}"); shift ;;
        --fast) options+=(--fast) ;;
        -h | --help) usage; exit 0 ;;
        *) echo "package.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
    esac
    shift
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
output=${output:-$PWD/target/debian}

cargo_deb=target/tools/bin/cargo-deb
cargo_deb_version=3.8.0
# Where the files are that [package.metadata.deb] in Cargo.toml lists.
files=target/debian-files

install_cargo_deb() {
    # Its Cargo.lock, and no optimization: it runs for seconds. Without its own liblzma it runs Debian's xz.
    [[ "$("$cargo_deb" --version 2>/dev/null)" == *"$cargo_deb_version"* ]] ||
        cargo install --quiet --locked --debug --root target/tools --version "$cargo_deb_version" --no-default-features cargo-deb
}

# The units of deploy/ name the program where an administrator installs it by hand.
write_units() {
    local unit
    for unit in scribed.service scribed-once.service scribed-once.timer scribed-serve.service; do
        sed 's|/usr/local/bin/scribed|/usr/bin/scribed|g; s|docs/how-to/systemd.md|`scribed manual systemd`|g' \
            "deploy/$unit" >"$files/$unit"
    done
    ! grep --quiet /usr/local "$files"/*.service || give_up "a unit of deploy/ names /usr/local in another place"
}

write_changelog() {
    local date version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
    date=$(date --utc --rfc-email --date="@${SOURCE_DATE_EPOCH:-$(stat --format=%Y CHANGELOG.md)}")
    cat >"$files/changelog" <<-CHANGELOG
	scribed ($version-1) unstable; urgency=medium

	  * What changed in each release is in the file changelog.gz beside this one.

	 -- The scribed developers <scribed@localhost>  $date
	CHANGELOG
}

command -v dpkg-shlibdeps >/dev/null || give_up "dpkg-shlibdeps is missing; install it: apt-get install dpkg-dev"
if [[ -z $binary ]]; then
    cargo build --release --locked
    binary=${CARGO_TARGET_DIR:-target}/release/scribed
fi
# Whoever may set a variable could move the clock of such a program, and with it budgets and windows.
[[ "$("$binary" --version)" != *test-clock* ]] || give_up "$binary has the feature test-clock, which is for tests only; build it without"
install_cargo_deb

rm -rf "$files"
mkdir -p "$files/man" "$output"
strip --strip-unneeded -o "$files/scribed" "$binary"
"$binary" --quiet man --to "$files/man" >/dev/null
"$binary" completions bash >"$files/scribed.bash"
"$binary" completions zsh >"$files/_scribed"
"$binary" completions fish >"$files/scribed.fish"
write_units
write_changelog

"$cargo_deb" --no-build --no-strip --quiet --output "$output" "${options[@]}"
