#!/usr/bin/env bash
# Builds the container image of a package, and runs it: as its own user, without privileges, with a read-only root. Runs
# the pods of the manifests of Kubernetes, too.
#
#   tests/packages/container.sh FILE.deb
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/packages/check.sh

deb=$(realpath -- "${1:?name a package}")

step "what the test of the image needs"
# crun of Debian 12 refuses a machine with both versions of cgroups; runc does not.
install_packages mmdebstrap podman runc pocketsphinx-testdata
tests/packages/install.sh

work=$(mktemp -d)
mkdir "$work/home"
# A storage of this test alone, and no host's settings.
cat >"$work/containers.conf" <<CONF
[containers]
# A machine may not allow more than it has.
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
infra_image = "localhost/pause:latest"
tmp_dir = "$work/libpod"
CONF
cat >"$work/storage.conf" <<CONF
[storage]
driver = "vfs"
graphroot = "$work/storage"
runroot = "$work/run"
CONF
export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf HOME=$work/home
# Without systemd here, no timer asks for the health: the test does.
podman() { command podman "$@" 2> >(grep --invert-match 'systemd connection' >&2); }
clean_up() {
    podman rm --all --force --time 0 >/dev/null 2>&1 || true
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT

step "the image"
SCRIBED_BUILDER=podman deploy/container/build.sh --deb "$deb" --without-ffmpeg --tag localhost/scribed:latest \
    >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; fail "deploy/container/build.sh"; }
image() { podman image inspect --format "$1" localhost/scribed:latest; }
same 10001:10001 image '{{.Config.User}}'
same '[/usr/bin/scribed] [run]' image '{{.Config.Entrypoint}} {{.Config.Cmd}}'
has 'scribed status --check' image '{{.Config.Healthcheck}}'

# start NAME OPTION… -- ARGUMENT…: no network, nothing but the volumes can be written. Health is asked here, by hand.
start() {
    local name=$1 options=()
    shift
    while [[ $1 != -- ]]; do options+=("$1"); shift; done
    shift
    podman run --detach --name "$name" --read-only --read-only-tmpfs=false --tmpfs /tmp --cap-drop all \
        --security-opt no-new-privileges --network none --health-interval disable "${options[@]}" \
        localhost/scribed:latest "$@" >/dev/null
}
scribed() { podman exec "$1" scribed "${@:2}"; }

step "the daemon"
install -d -o 10001 -g 10001 -m 750 "$work/media"
start daemon --volume "$work/media:/srv/media" --volume state:/var/lib/scribed --
is_healthy() { podman healthcheck run "$1" >/dev/null 2>&1; }
wait_until is_healthy daemon || { podman logs daemon >&2; podman exec daemon scribed status --check >&2; fail "the daemon is not healthy"; }
same "10001 10001" podman exec daemon sh -c 'echo $(id -u) $(id -g)'
same refused podman exec daemon sh -c 'touch /etc/x /usr/x /var/x /run/x 2>/dev/null || echo refused'
same 0 podman exec daemon sh -c 'ls /etc/x /usr/x /var/x /run/x 2>/dev/null | wc -l'
same 0000000000000000 podman exec daemon sed -n 's/^CapEff:\t//p' /proc/self/status

cp /usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0880.wav "$work/media/.talk"
mv "$work/media/.talk" "$work/media/talk.wav"
has_outputs() { compgen -G "$work/media/talk*.txt" >/dev/null && compgen -G "$work/media/talk*.srt" >/dev/null; }
wait_until has_outputs || { podman logs daemon >&2; fail "no outputs"; }
has 'young man' cat "$work"/media/talk*.txt
same 10001 eval 'stat --format=%u "$work"/media/talk*.txt'
is_written() { [[ $(scribed daemon jobs --stage written --json | wc -l) == 1 ]]; }
wait_until is_written || fail "the job is not written"

step "no variable moves its clock"
dated_now < <(podman exec --env SCRIBED_TEST_WALL=/tmp/wall daemon sh -c \
    "echo $a_year_ahead >/tmp/wall; scribed plan --save /tmp/plan >&2; cat /tmp/plan")

step "stop, and a new container with the same state"
podman stop --time 60 daemon >/dev/null
same 0 podman inspect --format '{{.State.ExitCode}}' daemon
podman rm daemon >/dev/null
start daemon --volume "$work/media:/srv/media" --volume state:/var/lib/scribed --
wait_until is_healthy daemon || fail "the daemon is not healthy with a state of before"
is_written || fail "the state is lost"

step "what the health check reports"
printf '[state]\nstore = "sled:/var/lib/scribed"\n[[source]]\nfolder = "/srv/media/missing"\n' >"$work/jobs.toml"
start faulty --volume "$work/jobs.toml:/etc/scribed/jobs.toml:ro" --
sees_fault() { (scribed faulty status --check || true) | grep --quiet ^SCRIBED.CRITICAL; }
wait_until sees_fault || fail "a missing folder is not critical"
! is_healthy faulty || fail "the health check passes although a folder is missing"
checks=$((checks + 1))

step "the pods of the manifests of Kubernetes"
# In place of the image that podman makes of a program that Debian 12 does not have: what holds a pod's namespaces.
cat >"$work/Containerfile" <<'PAUSE'
FROM scratch
COPY --from=localhost/scribed:latest /bin/sleep /bin/sleep
COPY --from=localhost/scribed:latest /lib/x86_64-linux-gnu/libc.so.6 /lib/x86_64-linux-gnu/
COPY --from=localhost/scribed:latest /lib64/ld-linux-x86-64.so.2 /lib64/
USER 10001
STOPSIGNAL SIGKILL
ENTRYPOINT ["/bin/sleep", "infinity"]
PAUSE
podman build --quiet --tag localhost/pause:latest --file "$work/Containerfile" "$work" >/dev/null
target/packages/python/bin/python tests/packages/manifests.py "$work" deploy/kubernetes/*.yaml
podman play kube --network none "$work/pods.yaml" >"$work/pods.log" 2>&1 || { cat "$work/pods.log" >&2; fail "the pods do not start"; }
# probe POD NAME: the command of this probe, as the manifest has it.
probe() { podman exec --interactive "$1-0-scribed" sh >/dev/null 2>&1 <"$work/$1.$2.sh"; }
wait_until probe scribed startupProbe || { podman logs scribed-0-scribed >&2; fail "the pod scribed does not start"; }
probe scribed livenessProbe || fail "the pod scribed is not alive"
probe scribed readinessProbe || fail "the pod scribed is not ready"
same '/var/lib/scribed/state' podman exec scribed-0-scribed ls -d /var/lib/scribed/state
same refused podman exec scribed-0-scribed sh -c 'touch /etc/scribed/x /x 2>/dev/null || echo refused'
serve_health() {
    podman exec scribed-serve-0-scribed bash -c \
        'exec 3<>/dev/tcp/127.0.0.1/8472; printf "GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n" >&3; cat <&3' 2>/dev/null
}
is_serving() { [[ $(serve_health) == *'{"status":"ok"}'* ]]; }
wait_until is_serving || { podman logs scribed-serve-0-scribed >&2; fail "the pod scribed-serve is not ready"; }
# A probe that cannot fail is none: of a daemon that is not there, only the start and the readiness are told.
podman exec scribed-0-scribed sh -c 'mkdir -p /tmp/none && printf "[state]\nstore = \"sled:/tmp/none\"\n[[source]]\nfolder = \"/srv/none\"\n" >/tmp/none.toml'
fails() { ! podman exec --interactive --env SCRIBED_CONFIG=/tmp/none.toml scribed-0-scribed sh >/dev/null 2>&1 <"$work/scribed.$1.sh"; }
fails startupProbe || fail "the startup probe passes without a daemon"
fails readinessProbe || fail "the readiness probe passes without a folder"
checks=$((checks + 4))

step "the compose file"
compose=deploy/container/compose.yaml
bin=$PWD/target/packages/python/bin
"$bin/check-jsonschema" --builtin-schema vendor.compose-spec "$compose"
sed 's/^    read_only: true/    read_onyl: true/' "$compose" >"$work/wrong.yaml"
! "$bin/check-jsonschema" --builtin-schema vendor.compose-spec "$work/wrong.yaml" >/dev/null 2>&1 ||
    fail "the schema accepts a misspelt setting"
checks=$((checks + 2))

mkdir "$work/compose"
install -d -o 10001 -g 10001 "$work/compose/media"
cp "$compose" deploy/debian/jobs.toml "$work/compose/"
printf 'services:\n  scribed:\n    network_mode: none\n' >"$work/compose/no-network.yaml"
(cd "$work/compose" && "$bin/podman-compose" --in-pod false -f compose.yaml -f no-network.yaml up --detach) >"$work/compose.log" 2>&1 ||
    { cat "$work/compose.log" >&2; fail "podman-compose up"; }
wait_until is_healthy compose_scribed_1 || { podman logs compose_scribed_1 >&2; fail "the container of the compose file is not healthy"; }
same 'true 10001:10001 2147483648 1024' podman inspect \
    --format '{{.HostConfig.ReadonlyRootfs}} {{.Config.User}} {{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}' compose_scribed_1
same refused podman exec compose_scribed_1 sh -c 'echo >>/etc/scribed/jobs.toml || echo refused' 2>/dev/null

finish "container image"
