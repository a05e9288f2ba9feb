"""Trains populations of models and single large models: hyper-parameter tuning with Population Based Training at its
heart, and checkpoints that survive anything.

Programs for Ray Tune run with their imports changed:

    import cadre as ray
    from cadre import tune
"""

from cadre._core import CadreError, Interrupted, InvalidArgument, NotFound, ObjectRef, __version__
from cadre._driver import get, init, is_initialized, put, shutdown

__all__ = ["CadreError", "Interrupted", "InvalidArgument", "NotFound", "ObjectRef", "__version__", "get", "init",
           "is_initialized", "put", "shutdown"]
