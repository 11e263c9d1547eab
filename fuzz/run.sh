#!/usr/bin/env bash
# Fuzzes the parsers of clients' bytes: the upload's multipart body, the create's JSON, the lists' query; and the
# readers of caption files. Runs each
# target for SECONDS (default 180), or only TARGET:
#   fuzz/run.sh [SECONDS [TARGET]]
# Findings are kept in fuzz/artifacts; put them into fuzz/seeds/TARGET, and `cargo test fuzzed` checks them from then
# on. Any toolchain works: coverage is measured without a nightly one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
targets=${2:-multipart create query captions}
for target in $targets; do
  mkdir -p "corpus/$target"
  cargo fuzz run --fuzz-dir . --sanitizer none "$target" "corpus/$target" "seeds/$target" -- \
    -max_total_time="${1:-180}" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
done
