#!/usr/bin/env bash
# Runs one fuzzer.
#
#   run.sh <program> <seconds> <folder>            always the same, for a test: from its seeds, with a fixed random seed
#   run.sh --grow <program> <seconds> <folder>     goes on from the corpus in <folder>, which grows
#
# What the fuzzer says goes to <folder>/<name>.log, an input that is a finding to <folder>/<name>-*. It runs in an empty
# root, <folder>/root/<name>, where it may change nothing but what it makes in /tmp.
set -euo pipefail
grow=
[[ "$1" == --grow ]] && { grow=1; shift; }
name="$(basename "$1" _fuzz)"
program="$(realpath "$1")"
here="$(cd "$(dirname "$0")" && pwd)"
mkdir -p "$3"
cd "$3"
here="$(realpath --relative-to=. "$here")"
readonly name program here seconds="$2" log="$name.log" corpus="corpus/$name" root="$PWD/root/$name"

# What is in the root, and what its files say.
content_of_root() {
  (cd "$root" && find . -path ./proc -prune -o -path './tmp/*' -prune -o -printf '%p %y %m %l\n' -type f -exec cat {} + | sort)
}
rm -rf "$root"
mkdir -p "$root/proc" "$root/tmp" "$root/outside/folder"
echo 'nobody reads or writes this' | tee "$root/file" "$root/outside/file" >"$root/outside/folder/file"
before="$(content_of_root)"
readonly before

shopt -s nullglob
seeds=("$here/seeds/$name"/*)
options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=1024 -malloc_limit_mb=256 -artifact_prefix="$name-"
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

export UBSAN_OPTIONS=print_stacktrace=1
if CADRE_FUZZ_ROOT="$root" TMPDIR=/tmp "$program" "${options[@]}" >"$log" 2>&1; then
  if ! diff <(echo "$before") <(content_of_root); then
    echo "$name: CHANGED SOMETHING OUTSIDE of its folder, in $root; see above"
    exit 1
  fi
  echo "$name: $(grep -ao 'Done [0-9]* runs in [0-9]* second' "$log" || true)s, nothing found"
else
  tail -n 60 "$log"
  echo "$name: FOUND SOMETHING. The input is $PWD/$(sed -n "s/.*Test unit written to //p" "$log" | tail -n 1); again, with the
names of functions, by: ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 $program <that file>"
  exit 1
fi
