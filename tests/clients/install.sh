#!/usr/bin/env bash
# Puts what tests/it/clients.rs runs into target/clients: the public service's official clients for Python
# and JavaScript, and a checker of OpenAPI documents; pinned, with hashes. Does nothing, and needs no
# network, where they are there already. With --check it only looks whether they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

to=../../target/clients
stamp=$to/installed
hash=$(cat requirements.txt package.json package-lock.json .npmrc | sha256sum)

# Says what to do, then ends.
give_up() {
    echo "tests/clients/install.sh: $1" >&2
    exit 1
}

are_there() {
    # The Python that they were installed with may have been updated away.
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

if are_there; then
    echo "tests/clients/install.sh: all is there"
    exit 0
fi
[[ ${1:-} != --check ]] || give_up "the pinned clients are not installed; run ./tests/run.sh"

python=$(find_python) || give_up "python3 with venv is missing; run deploy/install.sh --tests"
for program in node npm; do
    command -v "$program" >/dev/null || give_up "$program is missing; run deploy/install.sh --tests"
done

echo "tests/clients/install.sh: installing the pinned clients into target/clients"
mkdir -p "$to"
rm -rf "$stamp" "$to/python" "$to/node_modules"
"$python" -m venv "$to/python"
"$to/python/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.txt ||
    give_up "the Python packages could not be installed: that needs the network, once"
cp package.json package-lock.json .npmrc "$to/"
npm ci --prefix "$to" --silent --ignore-scripts ||
    give_up "the Node.js packages could not be installed: that needs the network, once"
printf '%s\n' "$hash" >"$stamp"
