"""Trains populations of models and single large models: hyper-parameter tuning with Population Based Training at its
heart, and checkpoints that survive anything.

Programs for Ray Tune run with their imports changed:

    import cadre as ray
    from cadre import tune
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from cadre._core import CadreError, Interrupted, InvalidArgument, NotFound, ObjectRef, __version__
from cadre._driver import get, init, is_initialized, put, shutdown

if TYPE_CHECKING:
    from cadre import data as data, train as train, tune as tune
else:
    def __getattr__(name):
        """Imports cadre.data, cadre.train and cadre.tune when they are used: `import cadre as ray; ray.data.range(3)`."""
        if name in ("data", "train", "tune"):
            return importlib.import_module(f"cadre.{name}")
        raise AttributeError(f"module 'cadre' has no attribute {name!r}")


__all__ = ["CadreError", "Interrupted", "InvalidArgument", "NotFound", "ObjectRef", "__version__", "get", "init",
           "is_initialized", "put", "shutdown"]
