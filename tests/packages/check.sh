# What the scripts that test packages have in common; they source it.

checks=0

step() { printf '\n== %s\n' "$*"; }

fail() {
    echo "tests/packages: $1" >&2
    exit 1
}

# finish NAME: the last line.
finish() { printf '\n%s: %d passed, 0 failed\n' "$1" "$checks"; }

# same WANTED COMMAND…: what the command prints is this.
same() {
    local wanted=$1 printed
    shift
    printed=$("$@") || fail "failed: $*"
    [[ $printed == "$wanted" ]] || fail "$* prints '$printed' and not '$wanted'"
    checks=$((checks + 1))
}

# has PART COMMAND…: what the command prints has this part.
has() {
    local part=$1 printed
    shift
    printed=$("$@" | tr -d '\r') || fail "failed: $*"
    [[ $printed == *"$part"* ]] || fail "$* prints '$printed', without '$part'"
    checks=$((checks + 1))
}

# nothing COMMAND…: the command prints nothing.
nothing() {
    local printed
    printed=$("$@" 2>&1) || true
    [[ -z $printed ]] || fail "$* prints '$printed'"
    checks=$((checks + 1))
}

# wait_until COMMAND…: until it succeeds, for three minutes at most.
wait_until() {
    local end=$((SECONDS + 180))
    until "$@"; do
        [[ $SECONDS -lt $end ]] || return 1
        sleep 0.5
    done
    checks=$((checks + 1))
}

# What the file that SCRIBED_TEST_WALL names has to contain to move a test's clock by a year.
a_year_ahead=31536000000

# dated_now: standard input is a plan (`scribed plan --save`) that was made now. A debug build, and one with the feature
# test-clock, dates it by the clock that SCRIBED_TEST_WALL moves.
dated_now() {
    local made now
    made=$(sed -n '1s/.*"made":\([0-9]\+\).*/\1/p')
    now=$(date +%s%3N)
    [[ -n $made && $made -gt $((now - 600000)) && $made -lt $((now + 600000)) ]] ||
        fail "the plan is dated '$made', and now is $now: a package must ignore SCRIBED_TEST_WALL"
    checks=$((checks + 1))
}

# install_packages NAME…: those that are missing.
install_packages() {
    local missing=() package
    for package in "$@"; do
        [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] ||
            missing+=("$package")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    apt-get update --quiet --quiet || fail "apt-get update failed"
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --quiet --no-install-recommends "${missing[@]}" >/dev/null ||
        fail "apt-get install failed: ${missing[*]}"
}
