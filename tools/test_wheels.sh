#!/usr/bin/env bash
# Builds the wheels, installs them into new environments without torch, one for each Python named, and runs the tests in
# Python that need neither torch nor Ray.
#
#   tools/test_wheels.sh <python>...   from 3.10 on; 3.12 and later share a wheel, which 3.12 builds
set -euo pipefail
cd "$(dirname "$0")/.."

readonly tests=(functions experiments programs searchers kills)
readonly requirements="pytest==9.2.0 numpy pandas optuna==5.0.0"

[[ $# -gt 0 ]] || { echo "test_wheels: name the Pythons, such as python3.10 python3.12 python3.13" >&2; exit 2; }
builders=()
for python in "$@"; do
  "$python" -c 'import sys; sys.exit(sys.version_info > (3, 13))' && builders+=("$python")
done
tools/make_wheels.sh "${builders[@]}"
for python in "$@"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  environment="build/wheels/environment-$version"
  echo "test_wheels: Python $version"
  rm -rf "$environment"
  "$python" -m venv "$environment"
  # shellcheck disable=SC2086
  "$environment/bin/pip" --disable-pip-version-check --quiet install $requirements cloudpickle
  "$environment/bin/pip" --disable-pip-version-check --quiet install --no-index --find-links build/wheels cadre-tune
  # shellcheck disable=SC2046
  CADRE_BIN="$PWD/$environment/bin" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 "$environment/bin/python" -m pytest \
    --quiet -p no:cacheprovider -k "not tensors_in_the_driver and not arrows" \
    $(printf "tests/python/%s_test.py " "${tests[@]}")
done
