#!/usr/bin/env bash
# Puts Prometheus and promtool, which tests/it/api/prometheus.rs runs, into target/prometheus: those of this machine, or
# those of the Debian package, which is unpacked and not installed, so that no service starts. Does nothing, and needs no
# network, where they are there already. With --check it only looks whether they are.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../pinned.sh"

begin prometheus
runs() { "$to/prometheus" --version >/dev/null 2>&1 && "$to/promtool" --version >/dev/null 2>&1; }
end_if runs Prometheus "$@"

mkdir -p "$to"
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    ln -sf "$(command -v prometheus)" "$to/prometheus"
    ln -sf "$(command -v promtool)" "$to/promtool"
else
    command -v apt-get >/dev/null || give_up "this is no Debian or Ubuntu; install prometheus and promtool by your system's means"
    unpacked=$(mktemp -d)
    trap 'rm -rf "$unpacked"' EXIT
    cd "$unpacked"
    download() { apt-get download --quiet prometheus; }
    as_root=()
    [[ $EUID -eq 0 ]] || as_root=(sudo)
    echo "$me: downloading the Debian package of Prometheus"
    download 2>/dev/null || { "${as_root[@]}" apt-get update --quiet && download; } ||
        give_up "the package could not be downloaded: that needs the network, once"
    dpkg-deb -x prometheus_*.deb .
    mv usr/bin/prometheus usr/bin/promtool "$to"
fi
runs || give_up "the programs in target/prometheus do not run"
