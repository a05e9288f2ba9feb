#!/usr/bin/env bash
# Installs what is missing to build and run Cadre. Does nothing, quickly, when nothing is missing.
#
#   tools/setup.sh [tests] [docs] [package] [format] [lint] [sanitizers]
#
# Debian packages (with root or sudo; else it says which libraries and programs are missing, and ends), a Python virtual
# environment in .venv (libtorch and Arrow come out of its torch and pyarrow wheels) and MNIST in data/mnist. Groups add:
# the Python packages and Debian tools that the tests ask for; Doxygen; what makes Debian packages; clang-format; that
# and clang-tidy; what sanitizers and coverage take. Long output goes to log files in .setup/, where tests find Slurm, too.
#   TORCH_BUILD, TORCH_INDEX_URL   which build of torch, and from where; see tools/install_torch.sh
#   CMAKE_PREFIX_PATH              where libraries are that are in none of the usual places, with : between
#   CXX, PYTHON                    compiler and Python, where they are not clang++-19 and /usr/bin/python3
set -euo pipefail
cd "$(dirname "$0")/.."

readonly torch_version="2.13.0"
readonly arrow_requirement="pyarrow==26.0.1"
readonly numpy_requirement="numpy==2.4.6"  # tools/fetch_mnist.py
readonly package_requirements="nanobind==3.1.0 cloudpickle==3.1.3"  # what builds the Python package, and what it needs
readonly tests_requirements="tools/tests-requirements.txt"
readonly azurite_version="3.37.0"
readonly torchvision_version="0.28.0"
readonly logs=".setup"
readonly python=".venv/bin/python"

packages=(
  clang-19 ccache cmake ninja-build make ca-certificates python3 python3-dev python3-venv
  capnproto libcapnp-dev libsqlite3-dev libfmt-dev rapidjson-dev zlib1g-dev libcli11-dev libtomlplusplus-dev libxxhash-dev
  libcurl4-openssl-dev libssl-dev libeigen3-dev libnlopt-dev libjpeg-dev libpng-dev
  libgtest-dev libgmock-dev
)
with_tests=""
for group in "$@"; do
  case "$group" in
    tests) with_tests=yes; packages+=(dpkg-dev file lld-19 doxygen libclang-rt-19-dev dataset-fashion-mnist chromium librsvg2-2 zsh fish man-db mandoc) ;;
    docs) packages+=(doxygen) ;;
    package) packages+=(dpkg-dev file lld-19) ;;  # CPack asks file which files are programs
    format) packages+=(clang-format-19) ;;
    lint) packages+=(clang-format-19 clang-tidy-19) ;;
    sanitizers) packages+=(libclang-rt-19-dev llvm-19) ;;  # llvm-19: names in their reports; the report of coverage
    *) echo "setup: unknown group \"$group\"; there are: tests, docs, package, format, lint, sanitizers" >&2; exit 2 ;;
  esac
done

say() { echo "setup: $*"; }

fail() {
  echo "setup: $*" >&2
  exit 1
}

# run_logged <log name> <what it does> <command...>: on failure shows the end of the log and stops.
run_logged() {
  local log="$logs/$1.log" what="$2"
  shift 2
  if ! "$@" >>"$log" 2>&1 </dev/null 9>&-; then
    tail -n 15 "$log" >&2
    fail "could not $what; the whole output is in $log"
  fi
}

missing_packages() {
  local installed
  installed=" $(dpkg-query -W -f '${db:Status-Abbrev}${Package} ' "${packages[@]}" 2>/dev/null || true) "
  local package
  for package in "${packages[@]}"; do
    [[ "$installed" == *" ii $package "* || "$installed" == *" hi $package "* ]] || echo "$package"
  done
}

# Runs apt-get as root, as "${as_root[@]}" says. Waits ten minutes for another program that installs packages: apt-get does
# that by itself for the lock of dpkg, and not for that of the package lists.
apt_get() {
  local attempt said
  for ((attempt = 1; ; ++attempt)); do
    if said="$("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 "$@" 2>&1)"; then
      echo "$said"
      return
    fi
    echo "$said"
    [[ "$said" == */lists/lock* && $attempt -lt 120 ]] || return 1
    sleep 5
  done
}

install_packages() {
  local missing as_root=()
  if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    mapfile -t missing < <(missing_packages | sort -u)
    [[ ${#missing[@]} -eq 0 ]] && return
  fi
  if [[ -z "${missing+set}" ]] || ! may_install; then
    tools/check_libraries.sh "${packages[@]}" || exit 1
    return 0
  fi
  [[ $(id -u) -eq 0 ]] || as_root=(sudo)
  say "installing Debian packages: ${missing[*]}"
  run_logged apt "read the package lists (apt-get update)" apt_get update
  run_logged apt "install Debian packages" apt_get install -y --no-install-recommends "${missing[@]}"
}

# Being root, or one who may become root.
may_install() { [[ $(id -u) -eq 0 ]] || { command -v sudo >/dev/null && sudo -v; }; }

# pip_install <group> <what it is, and what makes it another one> <pip's arguments...>: once, for .venv/.installed-<group>
# keeps what was installed.
pip_install() {
  local stamp=".venv/.installed-$1" wanted="$2"
  shift 2
  [[ -f "$stamp" && "$(cat "$stamp")" == "$wanted" ]] && return
  say "installing $(tr '\n' ' ' <<<"$wanted")into .venv"
  rm -f "$stamp"  # an installation that is interrupted has changed what was there
  run_logged pip "install $wanted" "$python" -m pip --disable-pip-version-check --no-input install "$@"
  printf '%s' "$wanted" >"$stamp"
}

system_python() {
  if [[ -n "${PYTHON:-}" ]]; then
    echo "$PYTHON"
  elif [[ -x /usr/bin/python3 ]]; then
    echo /usr/bin/python3
  else
    echo python3
  fi
}

install_python_packages() {
  tools/make_venv.sh "$(system_python)" .venv || fail "could not make the virtual environment .venv"
  TORCH_LOG="$logs/torch.log" tools/install_torch.sh .venv "$torch_version"
  pip_install arrow "$arrow_requirement" "$arrow_requirement"
  pip_install data "$numpy_requirement" "$numpy_requirement"
  # shellcheck disable=SC2086
  pip_install package "$package_requirements" $package_requirements
  [[ -z "$with_tests" ]] ||
    pip_install tests "$(grep -v '^#' "$tests_requirements")" "$numpy_requirement" -r "$tests_requirements"
}

# Microsoft's emulator of Azure's storage, in .venv/azurite: it comes from npm, which tests-requirements.txt brings, and
# scripts of its packages look for node in PATH.
install_azurite() {
  [[ -n "$with_tests" ]] || return 0
  local installed
  installed=$(sed -n 's/^  "version": "\(.*\)",/\1/p' .venv/azurite/node_modules/azurite/package.json 2>/dev/null || true)
  # npm's own record is the last that it writes.
  local record=.venv/azurite/node_modules/.package-lock.json
  [[ "$installed" != "$azurite_version" || ! -f "$record" ]] || return 0
  say "installing azurite $azurite_version into .venv/azurite"
  mkdir -p .venv/azurite
  rm -f "$record"
  PATH="$PWD/.venv/bin:$PATH" run_logged azurite "install azurite $azurite_version" \
    .venv/bin/npm install --no-audit --no-fund --prefix .venv/azurite "azurite@$azurite_version"
}

# What changes of images are compared with, in .venv/torchvision: beside another build of torch than its own it cannot be
# imported as a whole, and programs that find it among the packages import it.
install_torchvision() {
  [[ -n "$with_tests" && ! -d ".venv/torchvision/torchvision-$torchvision_version.dist-info" ]] || return 0
  say "installing torchvision $torchvision_version into .venv/torchvision"
  run_logged torchvision "install torchvision $torchvision_version" "$python" -m pip --disable-pip-version-check --no-input \
    install --no-deps --upgrade --target .venv/torchvision "torchvision==$torchvision_version"
}

# A Slurm for tests of a cluster, in .setup/slurm: nothing of it is installed.
install_slurm() { [[ -z "$with_tests" ]] || tools/install_slurm.sh "$logs/slurm"; }

fetch_data() {
  [[ -d data/mnist ]] && return
  say "fetching MNIST into data/mnist"
  run_logged data "fetch MNIST" "$python" tools/fetch_mnist.py data/mnist
}

# Build folders are configured again where something has been installed since: CMakeLists.txt looks at this file.
remember_installation() {
  [[ -e "$logs/installed" && -z "$(find "$logs" -name '*.log' -newer "$logs/installed")" ]] || touch "$logs/installed"
}

# Takes turns with others: two would install into .venv at once. A service that a package starts does not keep the lock.
mkdir -p "$logs"
exec 9>"$logs/lock"
flock -n 9 || { say "waiting for the set-up of this checkout that is running already"; flock 9; }

install_packages
install_python_packages
install_azurite
install_torchvision
install_slurm
fetch_data
remember_installation
