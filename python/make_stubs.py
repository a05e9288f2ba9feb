#!/usr/bin/env python3
"""Writes stubs of the extensions, by which editors and type checkers know them.

    make_stubs.py <the package's folder> <extension>...

The stubs come into the folder, beside the extensions: _core and _data.
"""

import importlib
import pathlib
import re
import sys
import types

from nanobind.stubgen import StubGen

# Classes that programs see in the package, and that are the extension's own.
ERRORS = ("CadreError", "Interrupted", "InvalidArgument", "NotFound", "StopTrial", "TrainingFailedError")


def write(module, file):
    stubs = StubGen(module)
    stubs.put(module)
    # A submodule has no stub of its own, and private names are left out.
    text = re.sub(r"^from cadre\._core import (\w+) as \1$", r"import types\n\n__version__: str\n\1: types.ModuleType", stubs.get(),
                  flags=re.MULTILINE)
    compile(text, file, "exec")
    if "std::" in text:
        raise SystemExit(f"make_stubs: {file.name} has types of C++, for which a header of nanobind/stl is not included:\n{text}")
    file.write_text(text, encoding="utf-8")


def main(arguments):
    folder = pathlib.Path(arguments[0])
    package = types.ModuleType("cadre")  # without what the package imports, which a build environment lacks
    package.__path__ = [str(folder)]
    sys.modules["cadre"] = package
    core = importlib.import_module("cadre._core")
    for name in ERRORS:
        getattr(core, name).__module__ = core.__name__
    write(core, folder / "_core.pyi")
    if "_data" in arguments[1:]:
        importlib.import_module("cadre._arrow").load("_data", "data", "arrow", "arrow_compute", "parquet", "arrow_acero",
                                                     "arrow_dataset")
        data = importlib.import_module("cadre._data")
        data.DatasetError.__module__ = data.__name__
        write(data, folder / "_data.pyi")


if __name__ == "__main__":
    main(sys.argv[1:])
