"""The process in which experiments are run: the fork server, and the object store."""

from __future__ import annotations

import atexit
import json
import os
import pickle
import subprocess
import sys
import sysconfig
import warnings
from typing import Any, Mapping

from cadre import _core, _pickle

# Executed as the fork server. The path comes first: the program may have changed it, and a json.py in the working directory
# is not the one that is meant.
_GIVEN = ("import sys; sys.path[:] = filter(None, sys.path); import json; given = json.loads(''.join(sys.argv[1:])); "
          "sys.path[:] = given['path']; ")
_SERVER = _GIVEN + "from cadre._server import serve; serve(given)"
_AGENT = _GIVEN + "from cadre._driver import serve_node; serve_node(given)"
_OF_KERNELS = {"IPython", "debugpy", "ipykernel", "ipykernel_launcher", "jedi", "jupyter_client", "jupyter_core", "parso",
               "prompt_toolkit", "tornado", "zmq"}
_LONGEST_ARGUMENT = 100_000  # Linux takes 128 KiB; a program of many libraries has more names of modules

_named_cluster = ""  # CADRE_CLUSTER, which init removes, for an init after a shutdown


def init(address: str | None = None, *, num_cpus: float | None = None, num_gpus: float | None = None,
         resources: Mapping[str, float] | None = None, labels: Mapping[str, str] | None = None,
         accelerator_type: str | None = None, cluster: str | os.PathLike[str] | None = None,
         ignore_reinit_error: bool = False, **others: Any) -> None:
    """Starts the fork server, from which all trials are forked, and returns at once. Without a call, the first Tuner does
    it.

    The server imports what this program has imported so far and installed: call it after the imports, or before them
    if both shall import at the same time (then the server imports nothing, and each trial what it needs).

    num_cpus, num_gpus: of this machine, for trials; default: what it has. resources: further ones by name, with
    amounts. labels: of this machine. accelerator_type: kind of its GPUs, or of each, "A100,A100,A10G"; default: what the
    driver says. With a cluster all these are of each of its nodes.

    cluster: on whose nodes trials run, instead of this machine: "slurm", "ray", or the path of a JSON file with the members of
    ClusterConfig (cadre/cluster.h); default: the environment variable CADRE_CLUSTER, or none. All nodes must see this
    interpreter and the modules that it imports under the same paths, and best the storage path, too. The other arguments
    of ray.init have no meaning here.

    Raises InvalidArgument if the server runs already, unless ignore_reinit_error, and for amounts that cannot be.
    """
    if address not in (None, "auto", "local"):
        raise _core.InvalidArgument(f"init: there is no cluster at {address!r}; leave address out")
    if others:
        warnings.warn(f"init: no meaning here: {', '.join(sorted(others))}", stacklevel=2)
    if is_initialized():
        if ignore_reinit_error:
            return
        raise _core.InvalidArgument("init was called before; shutdown() ends what it has started")
    options: dict[str, Any] = {"num_cpus": num_cpus, "num_gpus": num_gpus, "resources": resources or {}, "labels": labels or {},
               "accelerator_type": accelerator_type}
    given = {"path": [os.path.abspath(folder) for folder in sys.path], "argv": sys.argv, "modules": installed_modules(),
             "options": options}
    compat = sys.modules.get("cadre.compat.ray")
    given["uses_datasets"] = "cadre.data" in sys.modules
    given["imports_ray"] = compat is not None and compat.is_installed()
    global _named_cluster
    _named_cluster = os.environ.pop("CADRE_CLUSTER", _named_cluster)
    # Also if it is empty: the core would otherwise use that of an init before.
    os.environ["CADRE_CLUSTER"] = _named_cluster if cluster is None else os.fspath(cluster)
    try:
        _core.init(server_command(given), **options, agent_command=_command(_AGENT, given))
    finally:
        os.environ.pop("CADRE_CLUSTER", None)  # programs that this one starts have no cluster


def serve_node(given):
    """Becomes the agent of a node. Does not return."""
    sys.argv = given["argv"]
    _core.init(server_command(given), **given["options"])
    raise SystemExit("cadre: the agent was started by hand; an experiment with a cluster starts it")


def server_command(given):
    """Returns the command of a server."""
    return _command(_SERVER, given)


def _command(code, given):
    """Returns a command that runs code in an interpreter like this one."""
    text = json.dumps(given)
    parts = [text[at:at + _LONGEST_ARGUMENT] for at in range(0, len(text), _LONGEST_ARGUMENT)]
    return [sys.executable, *subprocess._args_from_interpreter_flags(), "-c", code, *parts]


def is_initialized() -> bool:
    """Returns true if the fork server runs."""
    return _core.is_initialized()


def init_if_needed():
    """Starts the fork server if it does not run."""
    if not is_initialized():
        init()


def shutdown() -> None:
    """Ends the fork server and waits until it is gone; init() may follow, with other options. Raises InvalidArgument
    while an experiment runs."""
    if is_initialized():
        _core.shutdown()


def put(value: Any) -> _core.ObjectRef:
    """Puts an object into the object store: its pickle, which trials read without a copy for each. Returns an
    ObjectRef, which may be a value in a config; it holds the object."""
    return _core.put_bytes(_pickle.dumps(value))


def get(reference: Any, *, timeout: float | None = None) -> Any:
    """Returns the object of an ObjectRef, or a list of those of a list. In a trial, raises NotFound for an object that
    does not belong to its experiment."""
    del timeout  # an object is there, or it is an error
    if isinstance(reference, (list, tuple)):
        return [get(one) for one in reference]
    return pickle.loads(_core.get_bytes(reference))


def print_lines(lines, is_error):
    """Writes lines, as bytes, to sys.stdout or sys.stderr, and returns true; false where that is the interpreter's own
    stream, to which the core writes itself, and draws on a terminal."""
    stream, own, descriptor = ((sys.stderr, sys.__stderr__, 2) if is_error else (sys.stdout, sys.__stdout__, 1))
    if stream is None:
        return True
    if stream is own and stream.fileno() == descriptor:
        stream.flush()
        return False
    if lines:
        stream.write(lines.decode(errors="replace"))
        stream.flush()
    return True


def installed_modules(names=None):
    """Returns the names of imported modules that are installed or of the standard library, in the order of their
    imports, parents first; of these names or of all. Leaves out what a notebook's kernel is made of, and modules that lie
    where the path does not lead: a debugger has such."""
    folders = tuple(os.path.join(path, "") for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib",
                                                                                                 "purelib", "platlib")})
    found = []
    for name in list(sys.modules) if names is None else names:
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if not file.startswith(folders) or name.startswith("__") or name.split(".")[0] in ("cadre", *_OF_KERNELS):
            continue
        if any(file.startswith(os.path.join(folder, *name.split("."))) for folder in sys.path):
            found.append(name)
    return found


@atexit.register
def _end():
    if is_initialized():
        try:
            _core.shutdown()
        except _core.CadreError:  # an experiment runs in another thread; the server ends with this process
            pass
