#!/usr/bin/env bash
# Unpacks Slurm and the programs that tests of a cluster run into a folder, from Debian's packages. Installs nothing: no
# service starts, now or at the next boot, and removing the folder removes everything. Does nothing when it is there.
#
#   tools/install_slurm.sh <folder>
#
# Without apt-get, or without access to packages, says so and succeeds: the tests that need Slurm are skipped.
set -euo pipefail
[[ $# -eq 1 ]] || { sed -n 's/^# \?//; 2,7p' "$0" >&2; exit 2; }
readonly folder="$1"
readonly packages="slurmctld slurmd slurm-client munge nftables iproute2 iputils-ping"
readonly stamp="$folder/packages"

say() { echo "setup: $*"; }

# The packages, and those that they need and this machine has not got.
wanted_packages() {
  # shellcheck disable=SC2086
  apt-get -qq -s install --no-install-recommends $packages | awk '/^Inst/ { print $2 }'
}

# As on a machine where /bin is a link to /usr/bin, and with the names that the packages give their programs when they
# are installed.
merge_into_usr() {
  local name program
  for name in bin sbin lib; do
    [[ ! -d "$1/$name" ]] || { mkdir -p "$1/usr/$name" && cp -a "$1/$name/." "$1/usr/$name/" && rm -r "${1:?}/$name"; }
  done
  for program in "$1"/usr/sbin/*-wlm; do
    [[ ! -e "$program" ]] || ln -s "$(basename "$program")" "${program%-wlm}"
  done
}

unpack() {
  local unpacked="$folder.new" downloads="$folder.downloads" package wanted
  wanted="$(wanted_packages)" || return 1
  rm -rf "$unpacked" "$downloads"
  mkdir -p "$unpacked" "$downloads"
  if [[ -n "$wanted" ]]; then
    # shellcheck disable=SC2086
    (cd "$downloads" && apt-get -qq download -o APT::Sandbox::User="$(id -un)" $wanted) || return 1
    for package in "$downloads"/*.deb; do dpkg -x "$package" "$unpacked" || return 1; done
    merge_into_usr "$unpacked"
  fi
  echo "$packages" >"$unpacked/packages"
  rm -rf "$folder" "$downloads"
  mv "$unpacked" "$folder"
}

[[ ! -f "$stamp" || "$(cat "$stamp")" != "$packages" ]] || exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
  say "no apt-get: tests that need Slurm will be skipped"
  exit 0
fi
say "unpacking Slurm into $folder"
unpack >&2 || say "cannot get Debian's packages of Slurm (apt-get update?): tests that need it will be skipped"
