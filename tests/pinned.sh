# What the scripts that install pinned Python packages for tests have in common; they source it, and set `me`.

# Says what to do, then ends.
give_up() {
    echo "$me: $1" >&2
    exit 1
}

# Prints the first Python that can make a virtual environment: the user's own may lack that, Debian's has it.
find_python() {
    local candidate
    for candidate in python3 /usr/bin/python3; do
        "$candidate" -c 'import venv, ensurepip' 2>/dev/null && echo "$candidate" && return
    done
    return 1
}

# Whether what the stamp stands for is there: its Python may have been updated away.
is_there() {
    [[ -f $stamp && $(<"$stamp") == "$hash" ]] && "$to/python/bin/python" -c '' 2>/dev/null
}
