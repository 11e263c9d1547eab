#!/usr/bin/env bash
# Every test, from a fresh machine: installs what they need, then runs them all. Arguments go to
# cargo test. Some tests mount a small disk and need root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

deploy/install.sh --tests
# Without them the tests that run them fail and say so; the others are no worse for it.
tests/clients/install.sh || echo "run.sh: going on without the clients" >&2
tests/prometheus/install.sh || echo "run.sh: going on without Prometheus" >&2
tests/s3/install.sh || echo "run.sh: going on without the S3 server" >&2
tests/whisper/install.sh || echo "run.sh: going on without the library of whisper.cpp" >&2
# Tests wait for disks, processes and time for about half of theirs: twice as many at a time as there are processors.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(nproc)))}"
# .ci/run makes up more cases, and more worlds for the simulation.
export PROPTEST_CASES="${PROPTEST_CASES:-64}"
exec cargo test --locked "$@"
