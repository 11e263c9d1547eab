#!/usr/bin/env bash
# Installs the Debian package on a clean Debian that it boots, uses, upgrades, removes and purges it.
#
#   tests/packages/debian.sh FILE.deb
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source deploy/apt-sources.sh
source tests/packages/check.sh

first=$(realpath -- "${1:?name a package}")
[[ $EUID -eq 0 ]] || fail "only root can boot a container"

step "what the test of the package needs"
install_packages mmdebstrap systemd-container util-linux lintian pocketsphinx-testdata

work=$(mktemp -d)
root=$work/root
nspawn='' leader=''
clean_up() {
    # Its name is in the command line of the container's first process, which takes the others with it.
    [[ -z $nspawn ]] || { kill -KILL "$nspawn" "$leader" 2>/dev/null || true; wait "$nspawn" 2>/dev/null || true; }
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT

step "the package"
version=$(dpkg-deb --field "$first" Version)

# Wanted: a question at a purge alone, an address that exists nowhere, and no bug that asks for the package.
unwanted=bogus-mail-host,bogus-mail-host-in-debian-changelog,no-debconf-config,initial-upload-closes-no-bugs
lintian --allow-root --fail-on error,warning --suppress-tags "$unwanted" "$first" || fail "lintian finds mistakes"

# The same with a higher version and another default configuration.
dpkg-deb --raw-extract "$first" "$work/second"
sed -i "s/^Version: .*/Version: $version.1/" "$work/second/DEBIAN/control"
echo '# A default of a later release.' >>"$work/second/etc/scribed/jobs.toml"
second=$work/second.deb
dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/second" "$second" >/dev/null

step "a clean Debian"
mmdebstrap --quiet --variant=apt \
    --dpkgopt=force-unsafe-io \
    --include=systemd,systemd-sysv,man-db,adduser,debconf,init-system-helpers,ca-certificates,libpocketsphinx3,pocketsphinx-en-us \
    "$(debian_suite)" "$root" "$(debian_sources)"
cp "$first" "$root/first.deb"
cp "$second" "$root/second.deb"

systemd-nspawn --quiet --boot --directory="$root" --machine="scribed-test-$$" --private-network --register=no --keep-unit \
    --console=pipe </dev/null >"$work/boot.log" 2>&1 &
nspawn=$!

# Runs a command in the container as root.
inside() {
    nsenter --target "$leader" --mount --uts --ipc --net --pid --root --wd \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
as_scribed() { inside runuser -u scribed -- scribed --config /etc/scribed/jobs.toml "$@"; }
apt() { inside apt-get --quiet --quiet --yes -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold "$@" >"$work/apt.log" 2>&1; }
property() { inside systemctl show --value --property "$2" "$1"; }

is_booted() {
    leader=$(pgrep --parent "$nspawn" | head -n 1)
    [[ -n $leader ]] && [[ $(inside systemctl is-system-running 2>/dev/null) =~ ^(running|degraded)$ ]]
}
wait_until is_booted || { cat "$work/boot.log" >&2; fail "the container does not boot"; }

step "install"
apt install /first.deb || { cat "$work/apt.log" >&2; fail "apt-get install"; }
same "$version" inside dpkg-query --show --showformat='${Version}' scribed
same "scribed ${version%-*}" inside scribed --version
same "root root 755" inside stat --format='%U %G %a' /usr/bin/scribed
same "root root 644" inside stat --format='%U %G %a' /etc/scribed/jobs.toml
same "scribed scribed 700" inside stat --format='%U %G %a' /var/lib/scribed
same "/var/lib/scribed:/usr/sbin/nologin" eval 'inside getent passwd scribed | cut -d: -f6-'
same "/etc/scribed/jobs.toml" eval "inside dpkg-query --show --showformat='\${Conffiles}' scribed | awk 'NF { print \$1 }'"

# Nothing starts before an administrator has said what to do.
for unit in scribed.service scribed-serve.service scribed-once.timer; do
    same disabled eval "inside systemctl is-enabled $unit || true"
    same inactive eval "inside systemctl is-active $unit || true"
done
nothing inside bash -c 'systemd-analyze verify --man=no /usr/lib/systemd/system/scribed*.{service,timer}'
nothing grep --recursive --files-with-matches /usr/local "$root/usr/lib/systemd/system" --include='scribed*'

step "manual pages and completions"
commands=$(inside scribed --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\+\) .*/\1/p' | grep --invert-match '^help$')
[[ $(wc -l <<<"$commands") -gt 25 ]] || fail "the help lists too few commands: $commands"
for command in $commands; do
    nothing inside bash -c "man --warnings scribed-$command >/dev/null"
done
same scribed.1.gz eval "inside man --where scribed | xargs basename"
has "-F _scribed scribed" inside bash -c '. /usr/share/bash-completion/completions/scribed; complete -p scribed'
has '#compdef scribed' inside cat /usr/share/zsh/vendor-completions/_scribed
has 'complete -c scribed' inside cat /usr/share/fish/vendor_completions.d/scribed.fish
has Expat inside cat /usr/share/doc/scribed/copyright
has "$version" inside zcat /usr/share/doc/scribed/changelog.Debian.gz
has '[[source]]' inside cat /usr/share/doc/scribed/examples/jobs.example.toml

step "the daemon, with the embedded service"
recordings=/usr/share/pocketsphinx/test/data/librivox
inside install -d -o scribed -g scribed -m 750 /srv/media
# Of the packages that it recommends ffmpeg is not here; the test has WAV.
has 'ok   configuration  /etc/scribed/jobs.toml is valid' eval 'as_scribed check 2>"$work/check.log" || true'
same 2 eval '(as_scribed check 2>/dev/null || true) | grep --count "^BAD .* the program .ff"'
same 2 eval '(as_scribed check 2>/dev/null || true) | grep --count ^BAD'
inside systemctl enable --now scribed || { inside journalctl --no-pager --unit scribed >&2; fail "the daemon does not start"; }
same active inside systemctl is-active scribed
same scribed eval 'inside stat --format=%U "/proc/$(property scribed MainPID)"'

# drop NUMBER: puts this recording into the folder of the source, and waits for its outputs.
drop() {
    local name=sense_and_sensibility_01_austen_64kb-$1
    cp "$recordings/$name.wav" "$root/srv/media/.$1"
    mv "$root/srv/media/.$1" "$root/srv/media/$1.wav"
    outputs_of() { compgen -G "$root/srv/media/$1*.txt" >/dev/null && compgen -G "$root/srv/media/$1*.srt" >/dev/null; }
    wait_until outputs_of "$1" || { inside journalctl --no-pager --unit scribed >&2; fail "no outputs of recording $1"; }
}
written() { as_scribed jobs --stage written --json | wc -l; }

drop 0880
has 'young man' cat "$root"/srv/media/0880*.txt
same scribed inside bash -c 'stat --format=%U /srv/media/0880*.txt'
is_written() { [[ $(written) == "$1" ]]; }
wait_until is_written 1 || fail "the job is not written"

step "no variable moves its clock"
inside sh -c "echo $a_year_ahead >/var/lib/scribed/test-wall; chown scribed: /var/lib/scribed/test-wall"
dated_now < <(inside env SCRIBED_TEST_WALL=/var/lib/scribed/test-wall runuser -u scribed -- sh -c \
    'scribed --config /etc/scribed/jobs.toml plan --save /var/lib/scribed/test-plan >&2; cat /var/lib/scribed/test-plan')
inside rm /var/lib/scribed/test-wall /var/lib/scribed/test-plan

step "the service for others, and a key for the daemon"
echo a-key-of-this-test >"$root/etc/scribed/key"
chmod 600 "$root/etc/scribed/key"
cp -a "$root/etc/scribed/key" "$root/etc/scribed/serve-key"
cat >"$root/etc/scribed/serve.toml" <<'TOML'
[serve]
data = "/var/lib/scribed-serve"
keys = ["file:${CREDENTIALS_DIRECTORY}/serve-key"]
TOML
cat >>"$root/etc/scribed/jobs.toml" <<'TOML'

[service]
url = "http://127.0.0.1:8472"
key = "file:${CREDENTIALS_DIRECTORY}/key"
TOML
inside systemctl enable --now scribed-serve
inside systemctl restart scribed
drop 0930
wait_until is_written 2 || fail "the second job is not written"
has 0930 as_scribed jobs --json
[[ -n $(ls "$root/var/lib/private/scribed-serve/results") ]] || fail "the service for others transcribed nothing"

step "upgrade"
configuration=$(sha256sum <"$root/etc/scribed/jobs.toml")
process=$(property scribed MainPID)
apt install /second.deb || { cat "$work/apt.log" >&2; fail "apt-get install of the second version"; }
same "$version.1" inside dpkg-query --show --showformat='${Version}' scribed
same "$configuration" eval 'sha256sum <"$root/etc/scribed/jobs.toml"'
has 'A default of a later release' cat "$root/etc/scribed/jobs.toml.dpkg-dist"
same active inside systemctl is-active scribed
same active inside systemctl is-active scribed-serve
[[ $(property scribed MainPID) != "$process" ]] || fail "the daemon was not restarted by the upgrade"
same 2 written

step "remove, and install again"
apt remove scribed || { cat "$work/apt.log" >&2; fail "apt-get remove"; }
same inactive eval 'inside systemctl is-active scribed || true'
same inactive eval 'inside systemctl is-active scribed-serve || true'
[[ ! -e $root/usr/bin/scribed ]] || fail "the program is still there"
[[ -n $(ls "$root/var/lib/scribed") ]] || fail "removal took the state"
same "$configuration" eval 'sha256sum <"$root/etc/scribed/jobs.toml"'
apt install /second.deb || { cat "$work/apt.log" >&2; fail "apt-get install after a removal"; }
same enabled inside systemctl is-enabled scribed
inside systemctl start scribed
same 2 written

step "purge"
# Nobody is there to answer: the state stays.
apt purge scribed || { cat "$work/apt.log" >&2; fail "apt-get purge"; }
[[ -n $(ls "$root/var/lib/scribed") ]] || fail "a purge that nobody answered took the state"
[[ ! -e $root/etc/scribed/jobs.toml ]] || fail "the configuration is still there"
same enabled eval '! inside systemctl is-enabled scribed 2>/dev/null && echo enabled'

# On a terminal it asks.
apt install /second.deb || { cat "$work/apt.log" >&2; fail "apt-get install after a purge"; }
echo no | inside env DEBIAN_FRONTEND=teletype TERM=dumb script --quiet --return --command 'dpkg --purge scribed' /dev/null \
    >"$work/purge.log"
has 'Remove the state of scribed too?' cat "$work/purge.log"
[[ -n $(ls "$root/var/lib/scribed") ]] || fail "the answer was no, and the purge took the state"

# The answer may be given before.
apt install /second.deb || { cat "$work/apt.log" >&2; fail "apt-get install after the second purge"; }
echo 'scribed scribed/remove-state boolean true' | inside debconf-set-selections
apt purge scribed || { cat "$work/apt.log" >&2; fail "apt-get purge with the state"; }
for folder in scribed scribed-serve private/scribed-serve; do
    [[ ! -e $root/var/lib/$folder && ! -L $root/var/lib/$folder ]] || fail "/var/lib/$folder is still there"
done
has scribed inside getent passwd scribed
compgen -G "$root/srv/media/0880*.txt" >/dev/null || fail "the purge took outputs"

finish "Debian package"
