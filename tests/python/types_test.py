"""What editors and type checkers know of the package: mypy over programs, with the package as one that is installed."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import cadre
from pages_test import BLOCKS

pytest.importorskip("mypy", reason="no mypy")

PACKAGE = pathlib.Path(cadre.__file__).parent

# The types of what programs get. A name without a type is Any, and assert_type refuses that.
KNOWN = """
from typing import Any, Iterable, assert_type

import cadre
import cadre as ray
from cadre import data, train, tune
from cadre.train.torch import TorchTrainer
from cadre.tune.schedulers import ASHAScheduler, PopulationBasedTraining, TrialScheduler, create_scheduler


def trains(config: dict[str, Any]) -> None:
    checkpoint = tune.get_checkpoint()
    assert_type(checkpoint, tune.Checkpoint | None)
    if checkpoint:
        with checkpoint.as_directory() as directory:
            assert_type(directory, str)
    assert_type(tune.get_context().get_trial_id(), str)
    assert_type(tune.get_context().get_trial_resources(), dict[str, float])
    tune.report({"loss": 1.0})
    tune.report({"loss": 1.0}, checkpoint=lambda directory: print(directory))


tuner = tune.Tuner(trains, param_space={"lr": tune.loguniform(1e-4, 1)},
                   tune_config=tune.TuneConfig(metric="loss", mode="min", scheduler=ASHAScheduler(max_t=10)),
                   run_config=tune.RunConfig(storage_path="s3://bucket/x", publish_config=tune.PublishConfig(interval_s=1)))
assert_type(tuner.fit(), tune.ResultGrid)
assert_type(tune.Tuner.restore("x", extend=tune.Extension(num_samples=3)), tune.Tuner)
assert_type(tune.Tuner.can_restore("x"), bool)
results = ray.tune.Tuner(trains).fit()
best = results.get_best_result("loss", "min")
assert_type(best, tune.Result)
assert_type(best.metrics, dict[str, Any])
assert_type(best.config, dict[str, Any])
assert_type(best.checkpoint, tune.Checkpoint | None)
assert_type(best.error, tune.TrialError | None)
assert_type(results[0], tune.Result)
assert_type([one.path for one in results], list[str])
assert_type(results.interrupted, bool)
assert_type(tune.run(trains).best_config, dict[str, Any])
assert_type(create_scheduler("pbt"), TrialScheduler)
PopulationBasedTraining(hyperparam_mutations={"lr": tune.uniform(0, 1)}, perturbation_interval=4)

trainer = TorchTrainer(trains, scaling_config=train.ScalingConfig(num_workers=2), datasets={"train": data.range(3)})
result = trainer.fit()
assert_type(result, train.Result)
assert_type(result.metrics, dict[str, Any] | None)
assert_type(result.best_checkpoints, list[tuple[train.Checkpoint, dict[str, Any]]])
assert_type(train.get_context().get_world_rank(), int)
assert_type(train.get_dataset_shard("train"), data.DataIterator)
assert_type(train.get_checkpoint(), train.Checkpoint | None)

rows = data.read_parquet("images").filter(expr="label < 10").map_batches(lambda batch: batch, batch_size=16)
assert_type(rows, data.Dataset)
assert_type(rows.count(), int)
assert_type(rows.take(3), list[dict[str, Any]])
assert_type(rows.iter_torch_batches(batch_size=3), Iterable[Any])
assert_type(rows.train_test_split(0.2), tuple[data.Dataset, data.Dataset])
assert_type(rows.groupby("label").mean("size"), data.Dataset)
assert_type(data.expressions.col("fare") > 10, data.expressions.Expr)
assert_type(cadre.put(3), cadre.ObjectRef)
try:
    tuner.fit()
except cadre.InvalidArgument as error:
    assert_type(error, cadre.InvalidArgument)
    fault: ValueError = error
except cadre.NotFound as error:
    missing: FileNotFoundError = error
"""

WRONG = {
    "cadre.tuner": "tuner",
    'tune.TuneConfig(num_samples="many")': "num_samples",
    "tune.Tuner(print).fit().best": "ResultGrid",
    "tune.report(3)": "report",
    'tune.RunConfig(storage="x")': "storage",
    'data.range("3")': "range",
    "train.ScalingConfig(workers=2)": "workers",
}


def mypy(folder, *arguments):
    """Returns what mypy says about programs, in a folder from which the package is not seen as a part of them."""
    # Other libraries are large, and not what is asked about.
    (folder / "mypy.ini").write_text("[mypy]\nfollow_imports = skip\n[mypy-cadre.*]\nfollow_imports = normal\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--no-error-summary", "--cache-dir", str(folder / "cache"),
         *map(str, arguments)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("types")  # one cache for all


def test_what_programs_get_has_types(folder):
    (folder / "known.py").write_text(KNOWN)
    assert mypy(folder, "known.py") == ""


def test_programs_of_pages_and_examples_have_the_right_types(folder):
    files = []
    for page, number, block in BLOCKS:
        file = folder / f"{re.sub(r'[^a-z]', '_', page.lower())}_{number}.py"
        # A page leaves out what is the reader's own.
        file.write_text("# mypy: disable-error-code=name-defined\n" + block)
        files.append(file)
    for example in (PACKAGE / "tune" / "examples").rglob("*.py"):
        if example.name not in ("__init__.py",):
            copy = folder / f"example_{example.name}"
            copy.write_text(example.read_text())
            files.append(copy)
    assert len(files) > 10
    assert mypy(folder, "--check-untyped-defs", *files) == ""


def test_the_package_uses_itself_as_its_types_say(folder):
    assert mypy(folder, "--python-version", "3.10", "-p", "cadre") == ""


def test_mistakes_are_found(folder):
    (folder / "wrong.py").write_text("import cadre; from cadre import data, train, tune\n" + "".join(f"{line}\n" for line in WRONG))
    said = mypy(folder, "wrong.py").splitlines()
    for number, name in enumerate(WRONG.values(), start=2):
        assert any(line.startswith(f"wrong.py:{number}: error: ") and name in line for line in said), said


@pytest.mark.parametrize("extension", ["_core", "_data"])
def test_extensions_have_stubs(extension):
    if extension == "_data":
        pytest.importorskip("pyarrow")
    stub = (PACKAGE / f"{extension}.pyi").read_text()
    compile(stub, f"{extension}.pyi", "exec")
    assert "class " in stub
