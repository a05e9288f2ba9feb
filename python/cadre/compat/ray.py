"""Runs unchanged programs for Ray Tune and Ray Train on Cadre: python -m cadre.compat.ray program.py ..."""

import importlib
import importlib.abc
import importlib.machinery
import runpy
import sys

# Modules of Ray's that are called otherwise here.
_RENAMED = {
    "ray.tune.schedulers.pb2": "cadre.tune.schedulers",
    "ray.tune.schedulers.pbt": "cadre.tune.schedulers",
    "ray.tune.schedulers.async_hyperband": "cadre.tune.schedulers",
    "ray.tune.search.sample": "cadre.tune.search_space",
    "ray.tune.stopper.stopper": "cadre.tune.stopper",
    "ray.tune.experiment.experiment": "cadre.tune.experiment",
    "ray.tune.experiment.trial": "cadre.tune.experiment",
    "ray.tune.syncer": "cadre.tune.config",
    "ray.tune.tune": "cadre.tune.analysis",
    "ray.tune.tune_config": "cadre.tune.config",
    "ray.tune.logger.logger": "cadre.tune.logger",
    "ray.tune.logger.csv": "cadre.tune.logger",
    "ray.tune.logger.json": "cadre.tune.logger",
    "ray.tune.logger.tensorboardx": "cadre.tune.logger",
    "ray.tune.logger.mlflow": "cadre.air.integrations.mlflow",
    "ray.tune.logger.wandb": "cadre.air.integrations.wandb",
    "ray.air.config": "cadre.train.config",
    "ray.air.session": "cadre.tune.session",
}


def _name_here(name):
    return _RENAMED.get(name) or "cadre" + name[len("ray"):]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ray and its modules here: the module objects are Cadre's own."""

    def find_spec(self, name, path=None, target=None):
        if name != "ray" and not name.startswith("ray."):
            return None
        try:
            if importlib.util.find_spec(_name_here(name)) is None:
                return None
        except ModuleNotFoundError:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return importlib.import_module(_name_here(spec.name))

    def exec_module(self, module):
        pass


def install():
    """Makes `import ray` import Cadre, in this process and in trials. Call it before anything imports ray."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def is_installed():
    return any(type(finder).__name__ == "_Finder" and type(finder).__module__ in (__name__, "__main__")
               for finder in sys.meta_path)


def main():
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m cadre.compat.ray program.py [argument]...")
    from cadre.compat import ray  # not __main__, which the program becomes

    ray.install()
    sys.argv = sys.argv[1:]
    sys.path[0] = str(__import__("pathlib").Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
