"""Arrow's libraries, which are those of the installed pyarrow: for datasets, object storages and Parquet files."""

import ctypes
import glob
import importlib
import importlib.util
import os
import sys

from cadre import _core


def folder():
    """Returns the folder of the installed pyarrow, without importing it; None if there is none."""
    try:
        found = importlib.util.find_spec("pyarrow")
    except (ImportError, ValueError):
        return None
    return os.path.dirname(found.origin) if found and found.origin else None


def load(user, extra, *libraries):
    """Loads libraries for `user`, such as cadre.data, so that what is linked with them finds them. Raises ImportError,
    which names the extra that brings them, if there is no pyarrow of the version for which Cadre was built."""
    needed = _core.arrow_version
    if not needed:
        raise ImportError(f"{user} needs another build of cadre, because this one was built without pyarrow; the wheels for "
                          "Python 3.11 and later have it")
    how = f'pip install "cadre-tune[{extra}]"'
    place = folder()
    if place is None:
        raise ImportError(f"{user} needs pyarrow {needed}, which is not installed: {how}")
    version = _version(place)
    if version != needed:
        raise ImportError(f"{user} needs pyarrow {needed}, and this is pyarrow {version}, whose binary interface is another "
                          f"one: {how}")
    for library in libraries:
        for file in glob.glob(os.path.join(place, f"lib{library}.so.*")):
            ctypes.CDLL(file)


def fault_of_storage(uri):
    """Loads what an object storage needs. Returns what is missing, for a person; empty if nothing is. Called by the core."""
    try:
        load(uri, "storage", "arrow", "arrow_s3")
    except (ImportError, OSError) as error:  # OSError: of the dynamic loader
        return str(error)
    return ""


def _version(place):
    """Returns the version of the pyarrow in a folder: by its package's record where it is not imported, which takes time."""
    if "pyarrow" not in sys.modules:
        from importlib import metadata

        for found in metadata.Distribution.discover(name="pyarrow", path=[os.path.dirname(place)]):
            return found.version
    return importlib.import_module("pyarrow").__version__
