#!/usr/bin/env bash
# Installs what scribed uses from Debian's packages: ffmpeg for every kind of recording, and the
# recogniser with its English model for the embedded service. Asks for root only when something is
# missing. Can be run again at any time.
#
#   deploy/install.sh                  what is needed to build and run
#   deploy/install.sh --demo           and recorded speech to try it with
#   deploy/install.sh --translation    and Apertium: English to Spanish, Catalan, Galician, Esperanto
#   deploy/install.sh --tests          and what the tests need
#   deploy/install.sh --pages          and what .ci/run looks at pages with: LibreOffice and Chromium
set -euo pipefail

packages=(build-essential ca-certificates ffmpeg libpocketsphinx3 pocketsphinx-en-us)

translation=(apertium apertium-eng-spa apertium-eng-cat apertium-en-gl apertium-eo-en)

usage() { sed -n '2,10s/^# \{0,1\}//p' "$0"; }

for argument in "$@"; do
    case "$argument" in
        --demo) packages+=(pocketsphinx-testdata) ;;
        --translation) packages+=("${translation[@]}") ;;
        # openssl: certificates for the tests of TLS. mount: some tests fill a small disk. bindfs: a file system that tells of no changes, as shares do. rsync: one of the programs that bring recordings. systemd: its systemd-analyze reads the unit; nothing is started. apertium-es-pt: a language behind another one.
        # Python and Node.js: the service's clients run with them; where they are there by other means, these do.
        --tests)
            packages+=(pocketsphinx-testdata bindfs mount openssl rsync systemd)
            packages+=("${translation[@]}" apertium-es-pt)
            python3 -c 'import venv, ensurepip' 2>/dev/null || packages+=(python3-venv)
            command -v node >/dev/null || packages+=(nodejs)
            command -v npm >/dev/null || packages+=(npm)
            ;;
        --pages) packages+=(chromium chromium-driver libreoffice-writer-nogui poppler-utils) ;;
        -h | --help) usage; exit 0 ;;
        *) echo "install.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
    esac
done

is_installed() {
    [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

# What to do by hand, then the end.
give_up() {
    echo "install.sh: $1" >&2
    echo "install.sh: missing packages: ${missing[*]}" >&2
    exit 1
}

install_packages() {
    local as_root=()
    command -v apt-get >/dev/null || give_up "this is no Debian or Ubuntu; install these by your system's means"
    if [[ $EUID -ne 0 ]]; then
        command -v sudo >/dev/null || give_up "neither root nor sudo; have them installed by: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    echo "install.sh: installing ${missing[*]}"
    "${as_root[@]}" apt-get update --quiet || give_up "apt-get update failed"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --quiet --no-install-recommends "${missing[@]}" || give_up "apt-get install failed"
}

missing=()
for package in "${packages[@]}"; do
    is_installed "$package" || missing+=("$package")
done

if [[ ${#missing[@]} -gt 0 ]]; then
    install_packages
else
    echo "install.sh: all packages are installed"
fi

if ! command -v cargo >/dev/null; then
    echo "install.sh: cargo is missing; install Rust by https://rustup.rs and run this again" >&2
    exit 1
fi
