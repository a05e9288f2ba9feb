"""The programs of the wheel: cadre, cadre-report for shell scripts that it runs, and cadre-config for builds in C++."""

import os
import sys

from cadre import _arrow

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _become(name):
    arrow = _arrow.folder()
    if arrow is not None:
        os.environ.setdefault("CADRE_ARROW_ROOT", arrow)  # for object storages and Parquet files
    os.execv(os.path.join(_FOLDER, "bin", name), [name, *sys.argv[1:]])


def cadre():
    """Becomes the program cadre."""
    _become("cadre")


def cadre_report():
    """Becomes the program cadre-report."""
    _become("cadre-report")


def cadre_config():
    """Prints where parts of the package are."""
    places = {"--cmake": "lib/cmake/cadre", "--include": "include", "--lib": "lib", "--doc": "share/doc/cadre",
              "--examples": "share/doc/cadre/examples", "--prefix": ""}
    asked = sys.argv[1:]
    if asked == ["--version"]:
        from cadre import __version__

        print(__version__)
    elif len(asked) == 1 and asked[0] in places:
        print(os.path.normpath(os.path.join(_FOLDER, places[asked[0]])))
    else:
        print(f"usage: cadre-config {' | '.join(places)} | --version\n\n"
              "Prints where the installed Cadre has its CMake package, headers, library, pages and examples:\n\n"
              '  cmake -S . -B build -DCMAKE_PREFIX_PATH="$(cadre-config --prefix)"',
              file=sys.stdout if asked == ["--help"] else sys.stderr)
        sys.exit(0 if asked == ["--help"] else 2)
