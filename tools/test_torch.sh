#!/usr/bin/env bash
# Builds what uses libtorch with one build of torch, in build/torch-<version>-<build>, and runs its tests. The virtual
# environment stays in a cache, for the next time.
#
#   tools/test_torch.sh <version of torch> <cpu|cuda|any>
#
# cuda: as pip finds it for everybody; the indexes that pip is set up for on this machine take no part. any: what
# `make setup` would take here.
#
#   CADRE_CACHE   default: ${XDG_CACHE_HOME:-~/.cache}/cadre; a CUDA build takes 5 GB there
#   JOBS          compilers at a time
#   CXX           the compiler of a new build folder (default: clang++-19)
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -eq 2 ]] || { sed -n 's/^# \?//; 2,12p' "$0" >&2; exit 2; }
readonly version="$1" kind="$2"
readonly cache="${CADRE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cadre}"
readonly venv="$cache/torch-$version-$kind"
readonly build="build/torch-$version-$kind"

fail() {
  echo "test_torch: $*" >&2
  exit 1
}

# Another index, folder of wheels or constraint would hide what pip finds everywhere; how to get there is kept.
use_ordinary_pip() {
  local option
  for option in cert client-cert proxy; do
    local variable="PIP_${option^^}"
    variable="${variable//-/_}"
    local value="${!variable:-$(.venv/bin/python -m pip config get "global.$option" 2>/dev/null || true)}"
    [[ -z "$value" ]] || export "$variable=$value"
  done
  unset PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_NO_INDEX PIP_CONSTRAINT
  export PIP_CONFIG_FILE=/dev/null
}

make_venv() {
  tools/make_venv.sh .venv/bin/python "$venv"
  TORCH_BUILD="${kind/any/}" TORCH_INDEX_URL="" tools/install_torch.sh "$venv" "$version" ||
    fail "there is no torch $version for $kind to test with: nothing was tested"
}

mkdir -p "$cache"
exec 9>"$venv.lock"
flock 9
if [[ "$kind" == cuda ]]; then
  (use_ordinary_pip; make_venv)
else
  make_venv
fi
torch=$(echo "$venv"/lib/python3*/site-packages/torch)

# Not optimised: it is compiled in half of the time, and another torch is what is looked at. Without torch all is as in
# build/release, so that it comes out of ccache where that has been built.
cmake --preset release -B "$build" ${CXX:+"-DCMAKE_CXX_COMPILER=$CXX"} \
  -DCADRE_TORCH_OPTIONS=-O0 -DCADRE_TORCH_ROOT="$torch" -DCADRE_ARROW=OFF
if [[ "$kind" == cuda ]]; then
  grep -q 'built_nccl [0-9]' "$build/cadreTorchBuild.cmake" || fail "configured without NCCL; CMake says above why"
fi
cmake --build "$build" -j "${JOBS:-$(nproc)}" --target cadre_torch_tests pbt_mnist
echo "test_torch: running the tests of torch $version ($kind)"
# What needs no GPU, also where there are some: the ranks of all tests are forked from one process.
export CUDA_VISIBLE_DEVICES="" OMP_NUM_THREADS=1
"$build/bin/cadre_torch_tests" --gtest_brief=1
"$build/bin/pbt_mnist" --smoke-test --storage-path "$build/results" --name "smoke_$$" >"$build/smoke.log" 2>&1 ||
  { tail -n 20 "$build/smoke.log" >&2; fail "pbt_mnist does not train with torch $version ($kind)"; }
if [[ "$kind" == cuda ]]; then
  readelf -d "$build/bin/pbt_mnist" | grep -q 'NEEDED.*libtorch_cuda\.so' ||
    fail "pbt_mnist is not linked with libtorch_cuda.so: it would find no GPU"
fi
echo "test_torch: torch $version ($kind) passed"
