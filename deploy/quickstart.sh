#!/usr/bin/env bash
# From nothing to the first transcript: installs what is missing, builds scribed, drops a recording
# of human speech into a folder, and shows what appears beside it. Needs no account; once the
# packages and crates are there, no network. Everything it makes is under quickstart/ and target/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Read from "Sense and Sensibility" for LibriVox, public domain; in Debian's package.
speech=/usr/share/pocketsphinx/test/data/librivox
recording=sense_and_sensibility_01_austen_64kb-0870

step() { printf '\n== %s\n' "$*"; }

step "install what is missing"
deploy/install.sh --demo

step "build (the first time takes some minutes)"
cargo build --release --locked

step "put a recording into quickstart/inbox"
mkdir -p quickstart/inbox
# A second run finds the job done already; that is what it would do with yours.
cmp --silent "$speech/$recording.wav" "quickstart/inbox/$recording.wav" ||
    cp "$speech/$recording.wav" quickstart/inbox/
cat >quickstart/jobs.toml <<'TOML'
# The least that works: the embedded service, outputs beside the media.
[[source]]
folder = "inbox"
settle = "1s"
TOML

step "scribed once"
target/release/scribed once --config quickstart/jobs.toml

step "what appeared"
ls -l quickstart/inbox

shopt -s nullglob
texts=(quickstart/inbox/"$recording"*.txt)
subtitles=(quickstart/inbox/"$recording"*.srt)
if [[ ${#texts[@]} -eq 0 || ${#subtitles[@]} -eq 0 ]]; then
    echo "quickstart.sh: no output was written; ask: target/release/scribed jobs --config quickstart/jobs.toml" >&2
    exit 1
fi

step "what was read aloud"
sed -n "s/^<s> \(.*\) <\/s> ($recording)\$/\1/p" "$speech/transcription"
step "what was heard (${texts[0]})"
cat "${texts[0]}"
step "as subtitles (${subtitles[0]})"
head -n 12 "${subtitles[0]}"
