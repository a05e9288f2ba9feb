"""Programs for Ray: unchanged (python -m cadre.compat.ray program.py), and what they use beside Tuner."""

import pathlib
import shutil
import subprocess
import sys

import pytest

import cadre
from cadre import train, tune
from cadre.tune.schedulers import FIFOScheduler

TUNES = """
import os
import sys
import tempfile

import ray
from ray import train, tune
from ray.tune import Checkpoint, RunConfig
from ray.tune.experiment import Experiment, Trial
from ray.tune.result import SHOULD_CHECKPOINT, TRAINING_ITERATION
from ray.tune.schedulers import PopulationBasedTraining
from ray.tune.tune import run_experiments

if ray.is_initialized():
    ray.shutdown()
ray.init(num_cpus=2)


def trains(config):
    import ray.tune  # in the trial too

    step = 0
    checkpoint = ray.tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as directory:
            with open(os.path.join(directory, "step")) as file:
                step = int(file.read())
    while step < 12:
        step += 1
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "step"), "w") as file:
                file.write(str(step))
            tune.report({"mean_accuracy": step * config["lr"], "argument": sys.argv[1]},
                        checkpoint=Checkpoint.from_directory(directory))


scheduler = PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=4, metric="mean_accuracy",
                                    mode="max", hyperparam_mutations={"lr": tune.uniform(0.01, 0.1)})
results = tune.Tuner(
    trains,
    run_config=RunConfig(name="pbt_test", storage_path=sys.argv[1], verbose=0, stop={"training_iteration": 12},
                         checkpoint_config=tune.CheckpointConfig(checkpoint_score_attribute="mean_accuracy", num_to_keep=4)),
    tune_config=tune.TuneConfig(scheduler=scheduler, num_samples=4),
    param_space={"lr": tune.uniform(0.001, 0.1)}).fit()
best = results.get_best_result(metric="mean_accuracy", mode="max")
print("BEST", best.metrics["training_iteration"], best.metrics["argument"] == sys.argv[1], len(results.errors), __name__)

analysis = tune.run(lambda config: {"loss": config["x"] ** 2}, config={"x": tune.grid_search([3, -1, 2])}, metric="loss",
                    mode="min", name="run", storage_path=sys.argv[1], verbose=0)
print("RUN", analysis.best_config, sorted(analysis.dataframe()["loss"]),
      tune.ExperimentAnalysis(sys.argv[1] + "/run").best_config)
trials = run_experiments(Experiment("older", lambda config: {"loss": 5}, storage_path=sys.argv[1]), verbose=0)
print("OLDER", [trial.last_result["loss"] for trial in trials])
"""


def test_a_program_for_ray_runs_unchanged(programs, tmp_path):
    command = programs.write("program.py", TUNES)
    done = subprocess.run([sys.executable, "-m", "cadre.compat.ray", command[1], str(tmp_path)], env=programs.environment,
                          cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "BEST 12 True 0 __main__" in done.stdout
    assert "RUN {'x': -1} [1, 4, 9] {'x': -1}" in done.stdout
    assert "OLDER [5]" in done.stdout


def test_a_failed_trial_raises_from_run(tmp_path):
    def fails(config):
        raise ValueError("no")

    with pytest.raises(cadre.CadreError, match="(?s)trials did not complete: 00000: .*ValueError: no"):
        tune.run(fails, name="fails", storage_path=str(tmp_path), verbose=0)
    analysis = tune.run(fails, name="fails", storage_path=str(tmp_path), verbose=0, raise_on_failed_trial=False)
    assert len(analysis.trials) == 1 and analysis.trials[0].error


def test_metadata_of_a_checkpoint_travel_with_it(fit, tmp_path):
    def trains(config):
        directory = tmp_path / "made"
        directory.mkdir()
        (directory / "state").write_text("1")
        checkpoint = tune.Checkpoint.from_directory(directory)
        checkpoint.set_metadata({"classes": 10})
        checkpoint.update_metadata({"more": "text"})
        tune.report({"x": 1}, checkpoint=checkpoint)

    checkpoint = fit(trains)[0].checkpoint
    assert checkpoint.get_metadata() == {"classes": 10, "more": "text"}
    copy = checkpoint.to_directory()
    assert tune.Checkpoint(copy).get_metadata()["classes"] == 10
    shutil.rmtree(copy)


def test_a_copy_of_a_checkpoint_that_is_read_only_can_be_written_to(tmp_path):
    inner = tmp_path / "made" / "inner"
    inner.mkdir(parents=True)
    (inner / "weights").write_text("1")
    (inner / "weights").chmod(0o444)
    inner.chmod(0o555)
    checkpoint = tune.Checkpoint.from_directory(tmp_path / "made")
    for target in (None, tmp_path / "copies" / "copy", tmp_path / "copies"):
        copy = pathlib.Path(checkpoint.to_directory(target), "inner")
        assert (copy / "weights").read_text() == "1"
        assert [path.stat().st_mode & 0o200 for path in (copy, copy / "weights")] == [0o200, 0o200]
    shutil.rmtree(tmp_path / "made")
    with pytest.raises((OSError, cadre.NotFound)):
        checkpoint.to_directory()


def squares(config):
    tune.report({"loss": config["x"] ** 2})


def test_experiments_of_the_older_form_run_one_after_the_other(tmp_path):
    tune.register_trainable("squares", squares)
    space = {"x": tune.grid_search([3, -1])}
    first = tune.Experiment("first", squares, config=space, storage_path=str(tmp_path), sync_config={"sync_period": 5},
                            resources_per_trial={"cpu": 1})
    with pytest.warns(UserWarning, match="RunConfig.sync_config has no meaning here"):
        second = tune.Experiment("second", "squares", num_samples=2, config={"x": 4}, resources_per_trial={"cpu": 1},
                                 storage_path=str(tmp_path))
        trials = tune.run_experiments([first, second], verbose=0)
    assert [trial.metrics["loss"] for trial in trials] == [9, 1, 16, 16]
    assert {path.parent.name for path in tmp_path.glob("*/experiment.db")} == {"first", "second"}
    specification = {"run": "squares", "config": space, "storage_path": str(tmp_path)}
    trials = tune.run_experiments({"third": specification}, verbose=0)
    assert [trial.metrics["loss"] for trial in trials] == [9, 1]
    fourth = tune.Experiment("fourth", squares, config=space, storage_path=str(tmp_path))
    assert tune.run(fourth, metric="loss", mode="min", verbose=0).best_config == {"x": -1}


def test_a_failed_trial_of_concurrent_experiments_raises_after_the_last_one(tmp_path):
    def fails(config):
        raise ValueError("no")

    experiments = {name: {"run": fails, "storage_path": str(tmp_path)} for name in ("first", "second")}
    with pytest.raises(cadre.CadreError, match="(?s)trials did not complete: 00000, 00000: .*ValueError: no"):
        tune.run_experiments(experiments, verbose=0)
    assert len(list(tmp_path.glob("*/experiment.db"))) == 2
    alone = {f"{name}_alone": experiment for name, experiment in experiments.items()}
    with pytest.raises(cadre.CadreError, match="trials did not complete: 00000: "):
        tune.run_experiments(alone, verbose=0, concurrent=False)
    assert len(list(tmp_path.glob("*/experiment.db"))) == 3
    assert len(tune.run_experiments(alone, verbose=0, raise_on_failed_trial=False)) == 2


@pytest.mark.parametrize("resume", [{"resume": "AUTO+ERRORED"}, {"resume": "AUTO+RESTART_ERRORED"},
                                    {"resume_config": tune.ResumeConfig(errored="resume")}])
def test_a_run_of_the_older_form_resumes_its_experiment(tmp_path, resume):
    repaired = tmp_path / "repaired"

    def trains(config):
        tune.report({"loss": 1})
        if not repaired.exists():
            raise ValueError("no")
        tune.report({"loss": 2})

    def run(**others):
        return tune.run(trains, name="resumed", storage_path=str(tmp_path), verbose=0, raise_on_failed_trial=False,
                        **others).trials[0]

    assert run(**resume).error, "nothing is there yet: a new experiment"
    repaired.touch()
    assert run(resume=True).error, "a trial that failed stays as it is"
    trial = run(**resume)
    assert not trial.error and trial.metrics["loss"] == 2
    assert [path.name for path in tmp_path.glob("resumed*")] == ["resumed"], "nothing was moved aside"


@pytest.mark.parametrize("call, message", [
    (lambda path: tune.RunConfig(storage_filesystem=object()), "RunConfig: storage_filesystem is not used here; give"),
    (lambda path: train.RunConfig(storage_filesystem=object()), "RunConfig: storage_filesystem is not used here; give"),
    (lambda path: tune.Tuner.can_restore(path, object()), "Tuner.can_restore: storage_filesystem"),
    (lambda path: tune.Tuner.restore(path, squares, storage_filesystem=object()), "Tuner.restore: storage_filesystem"),
    (lambda path: tune.Experiment("x", squares, storage_filesystem=object()), "Experiment: storage_filesystem"),
    (lambda path: tune.Experiment("x", squares, restore="checkpoint"), "Experiment: restore is 'checkpoint'"),
    (lambda path: tune.ResumeConfig(errored="again"), "'again' is not a valid"),
    (lambda path: tune.Tuner.restore(path, squares, _resume_config=tune.ResumeConfig("restart", "skip")),
     "ResumeConfig: finished is .*RESTART.*; unfinished is .*SKIP"),
    (lambda path: tune.Tuner.restore(path, squares, resume_unfinished=False), "resume_unfinished is False"),
    (lambda path: tune.run(squares, resume="PROMPT"), "resume is 'PROMPT'; it must be"),
    (lambda path: tune.run_experiments([tune.Experiment(name, squares) for name in "xy"], scheduler=FIFOScheduler()),
     "no scheduler compares the trials of several experiments"),
    (lambda path: train.LoggingConfig(log_level="LOUD"), "log_level is 'LOUD'"),
])
def test_arguments_of_rays_that_would_change_the_outcome_are_refused(tmp_path, call, message):
    with pytest.raises(ValueError, match=message):
        call(str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("experiments, message", [
    (squares, "is no Experiment"), ({"x": {}}, "'x' has no trainable"),
    ({"x": {"run": squares, "colour": 1}}, "colour")])
def test_what_is_no_experiment_is_named(experiments, message):
    with pytest.raises(cadre.CadreError, match=message):
        tune.run_experiments(experiments)


def test_what_trials_and_workers_print_is_shown_if_it_is_asked_for(programs):
    said = programs.run("""
from cadre import train, tune

def prints(config):
    print("HEARD", flush=True)
    tune.report({"loss": 1})

def prints_too():
    print("HEARD TOO", flush=True)
    train.report({"loss": 1})

for asked in (False, True):
    print("ASKED", asked, flush=True)
    tune.Tuner(prints, run_config=tune.RunConfig(storage_path=".", name=f"trials_{asked}", log_to_driver=asked)).fit()
    train.DataParallelTrainer(prints_too, run_config=train.RunConfig(
        storage_path=".", name=f"run_{asked}", logging_config=train.LoggingConfig(log_to_driver=asked))).fit()
""").stdout
    before, after = said.split("ASKED True")
    assert "HEARD" not in before
    assert "HEARD\n" in after and "HEARD TOO\n" in after
