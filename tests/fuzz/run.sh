#!/usr/bin/env bash
# Runs one fuzzer.
#
#   run.sh <program> <seconds> <folder>            always the same, for a test: from its seeds, with a fixed random seed
#   run.sh --grow <program> <seconds> <folder>     goes on from the corpus in <folder>, which grows
#
# What the fuzzer says goes to <folder>/<name>.log, an input that is a finding to <folder>/<name>-*.
set -euo pipefail
grow=
[[ "$1" == --grow ]] && { grow=1; shift; }
readonly program="$1" seconds="$2" folder="$3"
name="$(basename "$program" _fuzz)"
here="$(cd "$(dirname "$0")" && pwd)"
readonly name here log="$folder/$name.log" corpus="$folder/corpus/$name"

mkdir -p "$folder"
shopt -s nullglob
seeds=("$here/seeds/$name"/*)
options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=1024 -malloc_limit_mb=256 -artifact_prefix="$folder/$name-"
         -max_len=4096)
dictionary="$here/dictionaries/$name"
[[ -f "$dictionary" ]] || dictionary="$here/dictionaries/json"
options+=(-dict="$dictionary")
if [[ -n "$grow" ]]; then
  mkdir -p "$corpus"
  [[ ${#seeds[@]} -gt 0 ]] && cp "${seeds[@]}" "$corpus"
  options+=("$corpus")
else
  options+=(-seed=1)
  [[ ${#seeds[@]} -gt 0 ]] && options+=(-seed_inputs="$(IFS=,; echo "${seeds[*]}")")
fi

export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 UBSAN_OPTIONS=print_stacktrace=1
if "$program" "${options[@]}" >"$log" 2>&1; then
  echo "$name: $(grep -ao 'Done [0-9]* runs in [0-9]* second' "$log" || true)s, nothing found"
else
  tail -n 60 "$log"
  echo "$name: FOUND SOMETHING. The input is in $(sed -n "s/.*Test unit written to //p" "$log" | tail -n 1); again with
  $program <that file>"
  exit 1
fi
