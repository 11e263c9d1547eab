# What the scripts have in common that install pinned programs and Python packages for tests. They source it and then call
# `begin`. What they install is below target/, and is installed again only when what is pinned has changed.

# Says what to do, then ends.
give_up() {
    echo "$me: $1" >&2
    exit 1
}

# begin NAME [FILE…]: goes to tests/NAME, whose install.sh calls this. Sets `to`, where it installs, and `hash`, which stands
# for what is pinned in the files.
begin() {
    local name=$1
    shift
    me=tests/$name/install.sh
    cd "$(dirname "${BASH_SOURCE[0]}")/$name"
    to=$PWD/../../target/$name
    stamp=$to/installed
    hash=$(cat -- "$@" </dev/null | sha256sum)
}

# Whether all was installed, and what is pinned is as it was then.
is_as_pinned() { [[ -f $stamp && $(<"$stamp") == "$hash" ]]; }

# Whether that has a Python that runs: it may have been updated away.
has_python() { is_as_pinned && "$to/python/bin/python" -c '' 2>/dev/null; }

# end_if CHECK WHAT [OPTION]: ends where the command CHECK says that all is there. With the option --check it ends in any case:
# it says that WHAT is missing.
end_if() {
    if "$1"; then
        echo "$me: it is there"
        exit 0
    fi
    [[ ${3:-} != --check ]] || give_up "$2 is not installed; run $me"
}

# Makes an empty virtual environment in target/NAME/python, by the first Python that can make one: the user's own may lack that,
# Debian's has it. Removes what was installed before, and the other paths that are given.
make_python() {
    local candidate
    for candidate in python3 /usr/bin/python3 ''; do
        [[ -n $candidate ]] || give_up "python3 with venv is missing; run deploy/install.sh --tests"
        ! "$candidate" -c 'import venv, ensurepip' 2>/dev/null || break
    done
    mkdir -p "$to"
    rm -rf "$stamp" "$to/python" "$@"
    "$candidate" -m venv "$to/python"
}

# pip COMMAND…: without what only people read. It installs nothing without a hash.
pip() { "$to/python/bin/pip" "$1" --quiet --disable-pip-version-check --require-hashes --no-deps "${@:2}"; }

# install_packages FILE…: installs the packages that these files name.
install_packages() {
    local file
    for file in "$@"; do
        pip install -r "$file" || give_up "the Python packages could not be installed: that needs the network, once"
    done
}

# Notes that all is there.
finish() { printf '%s\n' "$hash" >"$stamp"; }
