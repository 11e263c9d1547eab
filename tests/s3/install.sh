#!/usr/bin/env bash
# Puts the S3 server that tests/it/sources/buckets.rs runs into target/s3; pinned, with hashes. Does nothing, and needs no
# network, where it is there already. With --check it only looks whether it is.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../pinned.sh"

begin s3 requirements.txt
end_if has_python "the pinned S3 server" "$@"

echo "$me: installing the pinned S3 server into target/s3"
make_python
install_packages requirements.txt
finish
