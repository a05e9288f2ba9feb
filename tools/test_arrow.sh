#!/usr/bin/env bash
# Builds what uses Arrow with one version of its wheel, in build/arrow-<version>, and runs its tests. The virtual environment
# stays in a cache, for the next time.
#
#   tools/test_arrow.sh <version of pyarrow>
#
#   CADRE_CACHE   default: ${XDG_CACHE_HOME:-~/.cache}/cadre
#   JOBS          compilers at a time
#   CXX           the compiler of a new build folder (default: clang++-19)
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -eq 1 ]] || { sed -n 's/^# \?//; 2,9p' "$0" >&2; exit 2; }
readonly version="$1"
readonly cache="${CADRE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cadre}"
readonly venv="$cache/arrow-$version"
readonly build="build/arrow-$version"

mkdir -p "$cache"
exec 9>"$venv.lock"
flock 9
tools/make_venv.sh .venv/bin/python "$venv"
"$venv/bin/python" -m pip --disable-pip-version-check --no-input -q install "pyarrow==$version" ||
  { echo "test_arrow: there is no pyarrow $version to test with: nothing was tested" >&2; exit 1; }
arrow=$(echo "$venv"/lib/python3*/site-packages/pyarrow)

# Not optimised: it is compiled in half of the time, and another Arrow is what is looked at.
cmake --preset release -B "$build" ${CXX:+"-DCMAKE_CXX_COMPILER=$CXX"} \
  "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG" -DCADRE_ARROW_ROOT="$arrow" -DCADRE_TORCH=OFF
cmake --build "$build" -j "${JOBS:-$(nproc)}" --target cadre_data_tests cadre_object_storage
echo "test_arrow: running the tests of Arrow $version"
OMP_NUM_THREADS=1 "$build/bin/cadre_data_tests" --gtest_brief=1
echo "test_arrow: Arrow $version passed"
