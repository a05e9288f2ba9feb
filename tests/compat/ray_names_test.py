"""docs/from-ray-tune.md, from-ray-train.md and from-ray-data.md have all public names of Ray, and all names of Cadre in
the tables of docs/from-*.md exist. docs/python.md has the names of Ray that the Python package lacks."""

import ast
import dataclasses
import enum
import importlib
import inspect
import os
import pathlib
import re
import unittest

import ray.data
import ray.train
import ray.train.collective
import ray.train.torch
from ray import tune
from ray.tune.schedulers import AsyncHyperBandScheduler, PopulationBasedTraining
from ray.tune.schedulers.pb2 import PB2

SOURCE = pathlib.Path(os.environ["CADRE_SOURCE"])
DOCS = SOURCE / "docs"

# Names in the right columns that are not Cadre's and not in its headers.
OTHER_NAMES = {"utils", "len", "stdout", "stderr"}


def public(one):
    return [name for name in dir(one) if not name.startswith("_")]


def parameters(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "metrics", "checkpoint")]


class Page:
    def __init__(self, name):
        self.text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        self.names = set(re.findall(r"`([^`\n]+)`", self.text))

    def missing(self, names):
        return sorted(name for name in names if name not in self.names)

    def missing_members(self, one, members):
        return self.missing(f"{one}.{name}" for name in members)


class RayTuneNamesTest(unittest.TestCase):
    PAGE = Page("from-ray-tune")
    CLASSES = (tune.Tuner, tune.ResultGrid, tune.Result, tune.TuneContext, tune.ExperimentAnalysis, tune.Callback)
    CONFIGS = (tune.TuneConfig, tune.RunConfig, tune.CheckpointConfig, tune.FailureConfig)

    def test_ray_tune(self):
        self.assertEqual(self.PAGE.missing(tune.__all__), [])

    def test_sub_modules(self):
        for module in ("search", "stopper", "logger"):
            names = importlib.import_module(f"ray.tune.{module}").__all__
            unknown = self.PAGE.missing(names)
            self.assertEqual(self.PAGE.missing(f"ray.tune.{module}.{name}" for name in unknown), [])
        self.assertEqual(self.PAGE.missing(importlib.import_module("ray.tune.schedulers").__all__), [])

    def test_members_of_classes(self):
        for one in self.CLASSES:
            self.assertEqual(self.PAGE.missing_members(one.__name__, public(one)), [])

    def test_options(self):
        for config in self.CONFIGS:
            fields = [field.name for field in dataclasses.fields(config) if not field.name.startswith("_")]
            self.assertEqual(self.PAGE.missing_members(config.__name__, fields), [])
        for scheduler in (PopulationBasedTraining, AsyncHyperBandScheduler, PB2):
            names = inspect.signature(scheduler).parameters
            self.assertEqual(self.PAGE.missing_members(scheduler.__name__, names), [])


class RayTrainNamesTest(unittest.TestCase):
    PAGE = Page("from-ray-train")

    def test_ray_train(self):
        self.assertEqual(self.PAGE.missing(ray.train.__all__), [])
        self.assertEqual(self.PAGE.missing(ray.train.torch.__all__), [])
        names = [name for name, one in vars(ray.train.collective).items() if hasattr(one, "_annotated")]
        self.assertEqual(self.PAGE.missing_members("ray.train.collective", names), [])

    def test_members_of_classes(self):
        for name in (*ray.train.__all__, "TorchTrainer", "TorchConfig"):
            one = getattr(ray.train, name, None) or getattr(ray.train.torch, name, None)
            if not inspect.isclass(one):
                continue
            members = {member for member in public(one) if not hasattr(enum.Enum, member)}
            if issubclass(one, Exception):
                members -= set(dir(Exception))
            self.assertEqual(self.PAGE.missing_members(name, members), [])

    def test_arguments(self):
        for name in ("report", "ScalingConfig", "RunConfig", "FailureConfig", "CheckpointConfig", "LoggingConfig", "ValidationConfig",
                     "ValidationTaskConfig"):
            arguments = [argument for argument in parameters(getattr(ray.train, name)) if not argument.startswith("_")]
            self.assertEqual(self.PAGE.missing_members(name, arguments), [])
        for name in ("TorchTrainer", "TorchConfig", "prepare_model", "prepare_data_loader"):
            arguments = set(parameters(getattr(ray.train.torch, name))) - {"train_loop_per_worker", "model", "data_loader"}
            self.assertEqual(self.PAGE.missing_members(name, arguments), [])


class RayDataNamesTest(unittest.TestCase):
    PAGE = Page("from-ray-data")

    def test_ray_data(self):
        self.assertEqual(self.PAGE.missing(ray.data.__all__), [])

    def test_members_of_classes(self):
        for one in (ray.data.Dataset, ray.data.DataIterator):
            self.assertEqual(self.PAGE.missing_members(one.__name__, public(one)), [])

    def test_arguments(self):
        for name in ("map_batches", "iter_torch_batches"):
            self.assertEqual(self.PAGE.missing_members(name, parameters(getattr(ray.data.Dataset, name))), [])


class PythonNamesTest(unittest.TestCase):
    PAGE = Page("python")
    PACKAGE = SOURCE / "python" / "cadre"

    def exported(self, package):
        tree = ast.parse((self.PACKAGE / package / "__init__.py").read_text(encoding="utf-8"))
        value, = (node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
        return ast.literal_eval(value)

    def members(self, package, name):
        """Returns the names of the fields of a class, without those of its base."""
        tree = ast.parse((self.PACKAGE / package / "config.py").read_text(encoding="utf-8"))
        one, = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
        return {node.target.id for node in one.body if isinstance(node, ast.AnnAssign)}

    def test_names_that_the_package_lacks_are_on_its_page(self):
        for package, of_ray in (("tune", tune), ("train", ray.train)):
            lacking = set(of_ray.__all__) - set(self.exported(package))
            self.assertEqual(self.PAGE.missing(lacking), [])

    def test_options_have_rays_names(self):
        for name in ("RunConfig", "SyncConfig", "ResumeConfig"):
            fields = {field.name for field in dataclasses.fields(getattr(tune, name))} - {"local_dir"}  # raises there
            self.assertEqual(fields - self.members("tune", name), set())
        for name in ("storage_filesystem", "worker_runtime_env", "logging_config"):
            self.assertIn(name, self.members("train", "RunConfig"))


class CadreNamesTest(unittest.TestCase):
    HEADERS = "".join(path.read_text(encoding="utf-8") for path in (SOURCE / "include").rglob("*.h"))
    KNOWN = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"//.*", "", HEADERS))) | OTHER_NAMES
    COMMANDS = {path.stem for path in (SOURCE / "src" / "cli").glob("*.cc")}

    def unknown_in(self, code):
        """Returns the identifiers in a piece of code that no header has. Ignores files, options and texts."""
        if command := re.match(r"cadre (\w+)", code):
            return [] if command[1] in self.COMMANDS else [code]
        if re.search(r"^\W*$|^kill -9$|^--|\.(json|csv|txt|md|pt)$|/|^\w+ = ", code):
            return []
        identifiers = re.findall(r"[A-Za-z_]\w*", re.sub(r'"[^"]*"', "", code))
        return [name for name in identifiers if name not in self.KNOWN]

    def test_cadre_has_the_names_in_the_right_column(self):
        for path in sorted(DOCS.glob("from-*.md")):
            for row in path.read_text(encoding="utf-8").splitlines():
                cells = row.strip("|").split(" | ")
                if not row.startswith("| ") or len(cells) != 2:
                    continue
                # Names of the left column may be in the right one, too.
                of_others = set(re.findall(r"[A-Za-z_]\w*", cells[0]))
                for code in re.findall(r"`([^`]+)`", cells[1]):
                    with self.subTest(page=path.name, code=code):
                        self.assertEqual([name for name in self.unknown_in(code) if name not in of_others], [])


if __name__ == "__main__":
    unittest.main()
