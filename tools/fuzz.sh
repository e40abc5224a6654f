#!/usr/bin/env bash
# fuzz.sh SECONDS: runs each fuzz target of build-fuzz for that long on its seeds, fuzz/seeds/NAME and build-fuzz/seeds/NAME. What it learns stays in build-fuzz/corpus/NAME,
# a finding is kept as build-fuzz/findings/NAME-*.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
mkdir -p build-fuzz/findings
failed=()
for target in build-fuzz/fuzz/*_fuzz; do
  [[ -x $target ]] || { echo "fuzz: no targets in build-fuzz/fuzz" >&2; exit 1; }
  name=$(basename "$target" _fuzz)
  mkdir -p "build-fuzz/corpus/$name"
  seeds=()
  for folder in "fuzz/seeds/$name" "build-fuzz/seeds/$name"; do
    if [[ -d $folder ]]; then seeds+=("$folder"); fi
  done
  echo "fuzz: $name for $seconds s"
  "$target" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -artifact_prefix="build-fuzz/findings/$name-" -print_final_stats=1 \
    "build-fuzz/corpus/$name" "${seeds[@]}" >"build-fuzz/$name.log" 2>&1 || { failed+=("$name"); tail -40 "build-fuzz/$name.log"; }
  grep -E '^stat::(number_of_executed_units|peak_rss_mb)' "build-fuzz/$name.log" || true
done
[[ ${#failed[@]} == 0 ]] || { echo "fuzz: findings in: ${failed[*]}; see build-fuzz/findings" >&2; exit 1; }
