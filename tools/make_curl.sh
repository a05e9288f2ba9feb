#!/usr/bin/env bash
# Builds the libcurl of the wheels into a folder, out of Debian's sources: an archive that speaks HTTP and HTTPS only. The
# libcurl of a distribution needs thirty other libraries. Does nothing when it is there.
#
#   tools/make_curl.sh <folder>
#   CC   the compiler (default: clang-19)
#
# Certificates are those that OpenSSL finds on the machine at hand. Needs apt-get, dpkg-source, OpenSSL and CMake.
set -euo pipefail
[[ $# -eq 1 ]] || { sed -n 's/^# \?//; 2,8p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
readonly folder stamp="$folder/version"
readonly sources="$folder/sources" log="$folder/log"

fail() {
  [[ ! -f "$log" ]] || tail -n 15 "$log" >&2
  echo "make_curl: $*; the whole output is in $log. An archive of libcurl's that is there already does as well: CURL_ROOT=<prefix>" >&2
  exit 1
}

# Reads the lists of the machine's own mirrors for sources, beside those of the system, and unpacks libcurl's.
unpack() {
  local apt=(-qq -o "Dir::Etc::SourceList=$sources/list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$sources/lists"
    -o "Dir::Cache=$sources/cache" -o "APT::Sandbox::User=$(id -un)")
  mkdir -p "$sources/lists/partial" "$sources/cache"
  local origin
  for origin in Debian Ubuntu; do
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' "Origin: $origin" 'Component: main' |
      sed 's/^/deb-src /; s/$/ main/' >>"$sources/list"
  done
  apt-get "${apt[@]}" update && (cd "$sources" && apt-get "${apt[@]}" source curl)
}

# Its steps are joined, because a function that is followed by || does not end at a command that fails.
build() {
  local source
  source="$(echo "$sources"/curl-*/)"
  cmake -G Ninja -S "$source" -B "$sources/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$folder" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_C_COMPILER="${CC:-clang-19}" -DCMAKE_C_FLAGS="-ffunction-sections -fdata-sections" \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DENABLE_MANUAL=OFF \
    -DPICKY_COMPILER=OFF -DHTTP_ONLY=ON -DCURL_DISABLE_NTLM=ON -DCURL_DISABLE_COOKIES=ON -DCURL_DISABLE_ALTSVC=ON \
    -DCURL_DISABLE_HSTS=ON -DCURL_DISABLE_DOH=ON -DCURL_DISABLE_GETOPTIONS=ON -DCURL_USE_OPENSSL=ON -DCURL_ZLIB=OFF \
    -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBPSL=OFF -DUSE_LIBIDN2=OFF -DUSE_NGHTTP2=OFF -DCURL_BROTLI=OFF -DCURL_ZSTD=OFF \
    -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none -DCURL_CA_FALLBACK=ON &&
    cmake --build "$sources/build" --target install &&
    install -D -m 644 "$source/COPYING" "$folder/share/licenses/curl.txt"
}

[[ ! -f "$stamp" ]] || exit 0
rm -rf "$sources" "$log"
echo "make_curl: building libcurl in $folder"
for program in apt-get dpkg-source; do
  command -v "$program" >/dev/null || fail "Debian's sources of libcurl need $program"
done
unpack >"$log" 2>&1 || fail "cannot get Debian's sources of libcurl"
build >>"$log" 2>&1 || fail "cannot build libcurl"
basename "$sources"/curl-*/ >"$stamp"
rm -rf "$sources"
