#!/usr/bin/env bash
# Says which programs and libraries are missing, or too old, to build Cadre, where nothing can install them: one line for
# each, with the oldest version that is tried and how to say where it is. Ends with 1 then. It asks the system, not a
# package manager.
#
#   tools/check_libraries.sh [<Debian package>...]   those that tools/setup.sh installs where it can; default: all known
#
#   CMAKE_PREFIX_PATH, <Name>_ROOT, CXX, PYTHON   where things are; CMake reads the first three too
set -euo pipefail
export LC_ALL=C  # programs say in English what they are

# name in Debian | what it is | oldest version that is tried | where: a program, header, CMake package or file |
# macros or file that have the version | variable
readonly table='
clang-19|clang++ or g++|19|compiler||CXX=<compiler>
cmake|CMake|3.25|program cmake||PATH
ninja-build|Ninja|1.11|program ninja||PATH
make|GNU make|4.3|program make||PATH
python3|Python|3.11|python||PYTHON=<interpreter>
python3-dev|the headers of Python|3.11|python-headers||PYTHON=<interpreter>
python3-venv|the modules venv and ensurepip of Python||python-modules venv ensurepip||PYTHON=<interpreter>
capnproto|the compiler of Cap'\''n Proto|0.9.2|program capnp||PATH
libcapnp-dev|Cap'\''n Proto|0.9.2|header capnp/common.h|CAPNP_VERSION_MAJOR CAPNP_VERSION_MINOR CAPNP_VERSION_MICRO|CMAKE_PREFIX_PATH=<prefix>
libsqlite3-dev|SQLite|3.40.1|header sqlite3.h|SQLITE_VERSION|SQLite3_ROOT=<prefix>
libfmt-dev|{fmt}|9.1.0|package fmt||fmt_ROOT=<prefix>
rapidjson-dev|RapidJSON|1.1.0|header rapidjson/rapidjson.h|RAPIDJSON_MAJOR_VERSION RAPIDJSON_MINOR_VERSION RAPIDJSON_PATCH_VERSION|CMAKE_PREFIX_PATH=<prefix>
zlib1g-dev|zlib|1.2.13|header zlib.h|ZLIB_VERSION|ZLIB_ROOT=<prefix>
libcli11-dev|CLI11|2.1.2|package CLI11||CLI11_ROOT=<prefix>
libtomlplusplus-dev|toml++|3.3.0|header toml++/impl/version.h|TOML_LIB_MAJOR TOML_LIB_MINOR TOML_LIB_PATCH|CMAKE_PREFIX_PATH=<prefix>
libxxhash-dev|xxHash|0.8.1|header xxhash.h|XXH_VERSION_MAJOR XXH_VERSION_MINOR XXH_VERSION_RELEASE|CMAKE_PREFIX_PATH=<prefix>
libeigen3-dev|Eigen|3.4.0|header eigen3/Eigen/src/Core/util/Macros.h|EIGEN_WORLD_VERSION EIGEN_MAJOR_VERSION EIGEN_MINOR_VERSION|CMAKE_PREFIX_PATH=<prefix>
libnlopt-dev|NLopt||header nlopt.h||CMAKE_PREFIX_PATH=<prefix>
libjpeg-dev|libjpeg-turbo|2.1.5|header jconfig.h|LIBJPEG_TURBO_VERSION|JPEG_ROOT=<prefix>
libpng-dev|libpng|1.6.39|header png.h|PNG_LIBPNG_VER_STRING|PNG_ROOT=<prefix>
libcurl4-openssl-dev|libcurl|7.88|header curl/curlver.h|LIBCURL_VERSION|CURL_ROOT=<prefix>
libssl-dev|OpenSSL|3.0|header openssl/opensslv.h|OPENSSL_VERSION_MAJOR OPENSSL_VERSION_MINOR OPENSSL_VERSION_PATCH|OPENSSL_ROOT_DIR=<prefix>
libgtest-dev|GoogleTest|1.12.1|package GTest||GTest_ROOT=<prefix>
libgmock-dev|GoogleMock||header gmock/gmock.h||GTest_ROOT=<prefix>
doxygen|Doxygen|1.9.4|program doxygen||PATH
chromium|Chromium||program chromium||PATH
dpkg-dev|the tools that make Debian packages||program dpkg-shlibdeps||PATH
lld-19|LLVM'\''s linker, for smaller wheels|19|program ld.lld-19||PATH
file|the program file||program file||PATH
clang-format-19|clang-format|19|program clang-format-19||PATH
clang-tidy-19|clang-tidy|19|program clang-tidy-19||PATH
llvm-19|LLVM'\''s tools|19|program llvm-symbolizer-19||PATH
libclang-rt-19-dev|what the compiler links sanitizers with||sanitizers||CXX=<compiler>
dataset-fashion-mnist|Fashion-MNIST||file /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz||--data-dir of the examples
'

compiler="${CXX:-clang++-19}"
python="${PYTHON:-}"
[[ -n "$python" ]] || { [[ -x /usr/bin/python3 ]] && python=/usr/bin/python3 || python=python3; }

# prefixes [<CMake package>]: where CMake looks, in its order.
prefixes() {
  local root="${1:-none}_ROOT"
  [[ -z "${!root:-}" ]] || echo "${!root}"
  tr ':;' '\n\n' <<<"${CMAKE_PREFIX_PATH:-}"
  printf '%s\n' /usr/local /usr
}

# find_file <pattern> [<CMake package>]: the first such file below a prefix.
find_file() {
  local pattern="$1" package="${2:-}" prefix file
  while read -r prefix; do
    [[ -n "$prefix" ]] || continue
    for file in "$prefix"/$pattern; do
      [[ -f "$file" ]] && { echo "$file"; return; }
    done
  done < <(prefixes "$package")
  return 1
}

# find_header <header> <CMake package>
find_header() { find_file "include/$1" "$2" || find_file "include/*-linux-gnu/$1" "$2"; }

first_number() { grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1 || true; }

# macros_version <header> <macro>...: their values with dots between, without quotes.
macros_version() {
  local header="$1" macro values=()
  shift
  for macro in "$@"; do
    values+=("$(sed -nE "s/^ *# *define +$macro +\"?([0-9.]+).*/\1/p" "$header" | head -n 1)")
  done
  local IFS=.
  echo "${values[*]}"
}

# found_version <where> <macros> <variable>: the version, or nothing where it has none. Fails where it is missing.
found_version() {
  local kind="${1%% *}" what="${1#* }" macros="$2" package="" file
  [[ "$3" != *_ROOT=* ]] || package="${3%_ROOT=*}"
  case "$kind" in
    program) command -v "$what" >/dev/null || return 1; "$what" --version 2>/dev/null | first_number ;;
    compiler) command -v "$compiler" >/dev/null || return 1; "$compiler" -dumpfullversion -dumpversion ;;
    sanitizers) "$compiler" -xc++ -fsanitize=address - -o /dev/null <<<'int main() {}' >/dev/null 2>&1 ;;
    python) command -v "$python" >/dev/null || return 1; "$python" --version | first_number ;;
    python-modules) command -v "$python" >/dev/null && "$python" -c "import ${what// /, }" 2>/dev/null ;;
    python-headers)
      command -v "$python" >/dev/null &&
        [[ -f "$("$python" -c "import sysconfig; print(sysconfig.get_path('include'))")/Python.h" ]] ;;
    header)
      file=$(find_header "$what" "$package") || return 1
      [[ -z "$macros" ]] || macros_version "$file" $macros ;;
    package)
      file=$(find_file "lib*/cmake/$what/*onfig*ersion.cmake" "$what" ||
             find_file "lib/*-linux-gnu/cmake/$what/*onfig*ersion.cmake" "$what" ||
             find_file "share/*cmake/$what/*onfig*ersion.cmake" "$what") || return 1
      grep -E 'PACKAGE_VERSION "' "$file" | first_number ;;
    file) [[ -f "$what" ]] ;;
  esac
}

# at_least <version> <version>: the first is not older.
at_least() { [[ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" == "$2" ]]; }

lines=()
while IFS='|' read -r name what oldest where macros variable; do
  [[ -n "$name" && ($# -eq 0 || " $* " == *" $name "*) ]] || continue
  # g++ 12 builds too.
  [[ "$name" != clang-19 || "$("$compiler" --version 2>/dev/null)" != *"Free Software"* ]] || oldest=12
  if ! found=$(found_version "$where" "$macros" "$variable"); then
    state=missing
  elif [[ -n "$oldest" && -n "$found" ]] && ! at_least "$found" "$oldest"; then
    state="is $found"
  else
    continue
  fi
  [[ "$where" != compiler ]] || oldest="19 or 12"
  lines+=("$what|${oldest:--}|$state|$variable|$name")
done <<<"$table"
[[ ${#lines[@]} -eq 0 ]] && exit

{
  echo "setup: these are missing or too old, and there is nobody who may install Debian packages (neither root nor sudo, or no"
  echo "setup: apt-get). Install them in any way, say where they are with the variable, and run this again:"
  printf '%s\n' "what|at least||where it is|in Debian" "${lines[@]}" |
    awk -F'|' '{ printf "  %-44s  %-8s  %-10s  %-26s  %s\n", $1, $2, $3, $4, $5 }'
  echo "setup: CMAKE_PREFIX_PATH=<prefix>:<prefix> is enough for all libraries; the compiler is clang++-19 unless CXX says another."
} >&2
exit 1
