#!/usr/bin/env bash
# Makes a Python virtual environment with pip. Does nothing, quickly, when it is there.
#
#   tools/make_venv.sh <python> <folder>
#
# Completes one that was interrupted while it was made. Makes one anew whose Python has gone or is another version by now, as
# after an upgrade of the system: what was installed in it is for the former one.
set -euo pipefail
[[ $# -eq 2 ]] || { sed -n 's/^# \?//; 2,7p' "$0" >&2; exit 2; }
readonly python="$1" venv="$2"

# Asks for pip's own record, which is the last of it that is written.
is_complete() {
  [[ -x "$venv/bin/python" ]] && "$venv/bin/python" -c 'import importlib.metadata as m; m.version("pip")' 2>/dev/null
}

is_complete && exit
anew=()
! compgen -G "$venv/lib/python3*/site-packages/pip-*.dist-info" >/dev/null || anew=(--clear)
echo "setup: making the virtual environment $venv"
"$python" -m venv "${anew[@]}" "$venv"
