# What the scripts that make a clean Debian have in common; they source it.

# Prints the suite of this machine's Debian, as `bookworm`.
debian_suite() {
    local suite
    suite=$(. /etc/os-release && [[ $ID == debian ]] && echo "$VERSION_CODENAME") && echo "$suite"
}

# Prints the file that names where this machine has Debian's packages from.
debian_sources() {
    local file
    for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
        [[ -s $file ]] && echo "$file" && return
    done
    return 1
}
