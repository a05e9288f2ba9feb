#!/usr/bin/env bash
# Collects what a release of this version is made of in build/cadre-<version>: Python wheels, Debian packages, the source
# archive of the present commit, the notes of CHANGELOG.md, and checksums.
#
#   tools/make_release.sh <build folder>   whose Debian packages are made already
set -euo pipefail
cd "$(dirname "$0")/.."

readonly build="$1"
version=$(sed -n 's/^project(cadre VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
readonly version
readonly release="build/cadre-$version"

if [[ -n "$(git status --porcelain)" ]]; then
  echo "release: there are changes that are not committed; the archive would not have them" >&2
  exit 1
fi
rm -rf "$release"
mkdir -p "$release"
rm -f build/wheels/*.whl  # of other commits
tools/make_wheels.sh
cp build/wheels/cadre_tune-"$version"-*.whl "$release"
cp "$build"/*_"$version"_*.deb "$release"
git archive --prefix="cadre-$version/" -o "$release/cadre-$version.tar.gz" HEAD
# The part of this version.
awk -v begin="## $version" 'index($0, "## ") == 1 {inside = index($0, begin) == 1} inside' CHANGELOG.md >"$release/NOTES.md"
[[ -s "$release/NOTES.md" ]] || { echo "release: CHANGELOG.md has no part \"## $version\"" >&2; exit 1; }
(cd "$release" && sha256sum ./* >SHA256SUMS)
ls -sh "$release"
