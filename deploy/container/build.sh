#!/usr/bin/env bash
# Builds the container image of scribed from Debian's packages and the package of scribed; pulls no image. How to use it:
# docs/how-to/container.md.
#
#   deploy/container/build.sh                 builds the package first (deploy/package.sh)
#   deploy/container/build.sh --deb FILE      takes this package
#   deploy/container/build.sh --without-ffmpeg     a smaller image: WAV, AIFF, FLAC, MP3 and Ogg Vorbis need no ffmpeg
#   deploy/container/build.sh --suite trixie  another release of Debian than this machine's
#   deploy/container/build.sh --tag NAME      default: scribed:VERSION and scribed:latest
#   deploy/container/build.sh --rootfs FILE   writes the root file system, and builds no image of it
set -euo pipefail

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0"; }

give_up() {
    echo "build.sh: $1" >&2
    exit 1
}

# needs PROGRAM PACKAGE
needs() { command -v "$1" >/dev/null || give_up "$1 is missing; install it: apt-get install $2"; }

deb='' suite='' rootfs='' tags=() without='^$'
while [[ $# -gt 0 ]]; do
    case "$1" in
        --deb) deb=$(realpath -- "${2:?--deb needs a file}"); shift ;;
        --suite) suite=${2:?--suite needs a name}; shift ;;
        --tag) tags+=("${2:?--tag needs a name}"); shift ;;
        --rootfs) rootfs=$(realpath -- "${2:?--rootfs needs a file}"); shift ;;
        --without-ffmpeg) without='^ffmpeg$' ;;
        -h | --help) usage; exit 0 ;;
        *) echo "build.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
    esac
    shift
done

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source deploy/apt-sources.sh

needs mmdebstrap mmdebstrap
sources=$(debian_sources) || give_up "neither debian.sources nor sources.list of /etc/apt names where Debian's packages are"
suite=${suite:-$(debian_suite)} || give_up "this is no Debian: name its release with --suite"
if [[ -z $deb ]]; then
    deb=$(deploy/package.sh | tail -n 1)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What the package needs and recommends, by name.
needed() {
    dpkg-deb --field "$deb" Depends Recommends | sed 's/^[A-Za-z]*: //' | tr ',' '\n' |
        sed 's/|.*//; s/(.*//; s/ //g' | grep --extended-regexp --invert-match "$without" | paste --serial --delimiters=,
}

# Neither manual pages nor translations: nobody reads them in a container. The licences stay.
make_rootfs() {
    mmdebstrap --quiet --variant=essential --include="$(needed)" \
        --dpkgopt=force-unsafe-io \
        --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --customize-hook='chroot "$1" groupadd --gid 10001 scribed' \
        --customize-hook='chroot "$1" useradd --uid 10001 --gid 10001 --home-dir /var/lib/scribed --no-create-home \
            --shell /usr/sbin/nologin scribed' \
        --customize-hook="upload '$deb' /scribed.deb" \
        --customize-hook='chroot "$1" dpkg --install /scribed.deb' \
        --customize-hook='install -d -o 10001 -g 10001 -m 0750 "$1/srv/media"' \
        --customize-hook='rm -r "$1/scribed.deb" "$1"/var/cache/* "$1"/var/lib/apt/lists/* "$1"/var/log/* "$1"/tmp/*' \
        "$suite" "$1" "$sources"
}

if [[ -n $rootfs ]]; then
    make_rootfs "$rootfs"
    exit
fi

# SCRIBED_BUILDER has its options too, as `podman --root /scratch`.
read -ra builder <<<"${SCRIBED_BUILDER:-$(command -v podman buildah docker | head -n 1)}"
[[ ${#builder[@]} -gt 0 ]] || give_up "neither podman nor buildah nor docker is here; install one: apt-get install podman"
version=$(dpkg-deb --field "$deb" Version)
[[ ${#tags[@]} -gt 0 ]] || tags=("scribed:${version%-*}" scribed:latest)

make_rootfs "$work/rootfs.tar"
cp deploy/container/Containerfile "$work/"
# Images in OCI's format have no health check; docker knows no other format than its own.
format=(--format docker)
[[ ${builder[0]##*/} != docker ]] || format=()
"${builder[@]}" build "${format[@]}" --quiet --label org.opencontainers.image.title=scribed \
    --label "org.opencontainers.image.version=$version" --label org.opencontainers.image.licenses="MIT OR Apache-2.0" \
    "${tags[@]/#/--tag=}" --file "$work/Containerfile" "$work"
