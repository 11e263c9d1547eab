#!/usr/bin/env bash
# Puts the S3 server that tests/it/buckets.rs runs into target/s3; pinned, with hashes. Does nothing, and needs no
# network, where it is there already. With --check it only looks whether it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

to=../../target/s3
stamp=$to/installed
hash=$(sha256sum <requirements.txt)

# Says what to do, then ends.
give_up() {
    echo "tests/s3/install.sh: $1" >&2
    exit 1
}

is_there() {
    # The Python that it was installed with may have been updated away.
    [[ -f $stamp && $(<"$stamp") == "$hash" ]] && "$to/python/bin/python" -c '' 2>/dev/null
}

# Prints the first Python that can make a virtual environment: the user's own may lack that, Debian's has it.
find_python() {
    local candidate
    for candidate in python3 /usr/bin/python3; do
        "$candidate" -c 'import venv, ensurepip' 2>/dev/null && echo "$candidate" && return
    done
    return 1
}

if is_there; then
    echo "tests/s3/install.sh: it is there"
    exit 0
fi
[[ ${1:-} != --check ]] || give_up "the pinned S3 server is not installed; run tests/s3/install.sh"

python=$(find_python) || give_up "python3 with venv is missing; run deploy/install.sh --tests"

echo "tests/s3/install.sh: installing the pinned S3 server into target/s3"
mkdir -p "$to"
rm -rf "$stamp" "$to/python"
"$python" -m venv "$to/python"
"$to/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.txt ||
    give_up "the Python packages could not be installed: that needs the network, once"
printf '%s\n' "$hash" >"$stamp"
