#!/usr/bin/env bash
# Collects what a release of this version is made of in build/cadre-<version>: Python wheels, Debian packages, the source
# archive of the present commit, the notes of CHANGELOG.md, and checksums.
#
#   tools/make_release.sh <build folder> [python...]
#     the build folder has the Debian packages; Python 3.10, 3.11 and 3.12, default: those in PATH
set -euo pipefail
cd "$(dirname "$0")/.."

readonly build="$1"
shift
version=$(sed -n 's/^project(cadre VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
readonly version
readonly release="build/cadre-$version"

if [[ -n "$(git status --porcelain)" ]]; then
  echo "release: there are changes that are not committed; the archive would not have them" >&2
  exit 1
fi
rm -rf "$release"
mkdir -p "$release"
# The part of this version.
awk -v begin="## $version" 'index($0, "## ") == 1 {inside = index($0, begin) == 1} inside' CHANGELOG.md >"$release/NOTES.md"
[[ -s "$release/NOTES.md" ]] || { echo "release: CHANGELOG.md has no part \"## $version\"" >&2; exit 1; }
rm -f build/wheels/*.whl  # of other commits
tools/make_wheels.sh "$@"
for tag in cp310-cp310 cp311-cp311 cp312-abi3; do
  if ! compgen -G "build/wheels/cadre_tune-$version-$tag-*.whl" >/dev/null; then
    echo "release: there is no wheel $tag; name Python 3.10, 3.11 and 3.12: make release PYTHONS='<python>...'" >&2
    exit 1
  fi
done
cp build/wheels/cadre_tune-"$version"-*.whl "$release"
cp "$build"/*_"$version"_*.deb "$release"
git archive --prefix="cadre-$version/" -o "$release/cadre-$version.tar.gz" HEAD
(cd "$release" && sha256sum ./* >SHA256SUMS)
ls -sh "$release"
