#!/usr/bin/env bash
# Installs torch into a Python virtual environment, and says which build and why. Does nothing when that is there already.
#
#   tools/install_torch.sh <virtual environment> <version of torch>
#
#   TORCH_BUILD       cpu or cuda; default: cuda where there is an NVIDIA driver, else cpu
#   TORCH_INDEX_URL   where pip gets torch from, whichever build that is
#   TORCH_LOG         file for what pip says; default: torch.log in the virtual environment
#
# The CPU build comes from what pip is set up to use, if that has one; else from PyTorch's own index, which the installer
# uv knows. What pip finds everywhere is the build for CUDA, of several gigabytes.
set -euo pipefail
[[ $# -eq 2 ]] || { sed -n 's/^# \?//; 2,11p' "$0" >&2; exit 2; }
readonly venv="$1" version="$2"
readonly python="$venv/bin/python"
readonly log="${TORCH_LOG:-$venv/torch.log}"
readonly stamp="$venv/.installed-torch"
readonly former="$venv/.former-torch"  # what was installed before an installation that has not ended yet
index="${TORCH_INDEX_URL:-}"
build="${TORCH_BUILD:-}"

say() { echo "setup: $*"; }

fail() {
  tail -n 15 "$log" >&2
  echo "setup: $*; the whole output is in $log" >&2
  exit 1
}

pip_install() { "$python" -m pip --disable-pip-version-check --no-input install "$@" >>"$log" 2>&1 </dev/null; }

has_nvidia_driver() {
  [[ -e /proc/driver/nvidia/version || -e /dev/nvidiactl ]] || nvidia-smi -L >/dev/null 2>&1
}

# What is installed: 2.13.0+cpu, 2.13.0+cu130.
installed_version() {
  sed -n "s/^__version__ = '\(.*\)'/\1/p" "$venv"/lib/python3*/site-packages/torch/version.py 2>/dev/null || true
}

install_from_index() {
  say "installing torch $version from $index into $venv"
  # Another build of the same version would do for pip, so torch itself comes first, and what it needs then.
  pip_install --index-url "$index" --force-reinstall --no-deps "torch==$version" &&
    pip_install --index-url "$index" "torch==$version" || fail "could not install torch $version from $index"
}

# Installs it with uv, which knows where PyTorch keeps the builds that are not in Python's own index.
install_with_uv() {
  pip_install uv &&
    "$venv/bin/uv" pip install --python "$python" --torch-backend=cpu --reinstall-package torch --link-mode=copy \
      "torch==$version" >>"$log" 2>&1 </dev/null
}

install_cpu_build() {
  say "installing the CPU build of torch $version into $venv$1"
  pip_install "torch==$version+cpu" && return
  install_with_uv && return
  [[ -z "${TORCH_BUILD:-}" ]] || fail "found no CPU build of torch $version: neither pip nor uv has one (TORCH_INDEX_URL=<url of \
an index that has it> says where it is)"
  say "found no CPU build of torch $version (pip is not set up for one, and uv cannot reach PyTorch's index; see $log)"
  install_cuda_build ", because there is no other: TORCH_INDEX_URL=<url> says where a smaller one is"
}

install_cuda_build() {
  say "installing the CUDA build of torch $version into $venv, about 5 GB$1"
  pip_install "torch===$version" || fail "could not install the CUDA build of torch $version"
  install_cuda_headers
}

# torch's wheel brings CUDA's libraries and only a part of the headers. What NCCL's headers include beside them has wheels
# of its own, with the versions that go with this build.
install_cuda_headers() {
  local toolkit
  toolkit=$("$python" -c 'import importlib.metadata as m; print(m.version("cuda-toolkit"))' 2>/dev/null) || return 0
  say "installing the headers of CUDA $toolkit that NCCL needs"
  pip_install "cuda-toolkit[crt,cccl]==$toolkit" ||
    say "could not install them (see $log): Cadre is built without NCCL where no CUDA toolkit is found"
}

case "$build" in
  "") if has_nvidia_driver; then
        build=cuda reason=" (there is an NVIDIA driver)"
      else
        build=cpu reason=": there is no NVIDIA driver (TORCH_BUILD=cuda takes the other one)"
      fi ;;
  cpu | cuda) reason="" ;;
  *) echo "setup: TORCH_BUILD is \"$build\"; there are: cpu, cuda" >&2; exit 2 ;;
esac
wanted="torch $version, ${index:-$build}"
[[ -f "$stamp" && "$(cat "$stamp")" == "$wanted" ]] && exit
rm -f "$stamp"
: >"$log"
[[ -f "$former" ]] || installed_version >"$former"
if [[ -n "$index" ]]; then
  install_from_index
  install_cuda_headers
else
  "install_${build}_build" "$reason"
fi
# A wheel may bring files that are older than what was built with the former one.
[[ "$(installed_version)" == "$(cat "$former")" ]] ||
  find "$venv"/lib/python3*/site-packages/torch/{include,lib,version.py} -type f -exec touch {} +
rm -f "$former"
say "torch is $(installed_version)"
printf '%s' "$wanted" >"$stamp"
