"""Programs for Ray: unchanged (python -m cadre.compat.ray program.py), and what they use beside Tuner."""

import subprocess
import sys

TUNES = """
import os
import sys
import tempfile

import ray
from ray import train, tune
from ray.tune import Checkpoint, RunConfig
from ray.tune.experiment import Trial
from ray.tune.result import SHOULD_CHECKPOINT, TRAINING_ITERATION
from ray.tune.schedulers import PopulationBasedTraining

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
"""


def test_a_program_for_ray_runs_unchanged(programs, tmp_path):
    command = programs.write("program.py", TUNES)
    done = subprocess.run([sys.executable, "-m", "cadre.compat.ray", command[1], str(tmp_path)], env=programs.environment,
                          cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "BEST 12 True 0 __main__" in done.stdout
    assert "RUN {'x': -1} [1, 4, 9] {'x': -1}" in done.stdout


def test_a_failed_trial_raises_from_run(tmp_path):
    import pytest

    import cadre
    from cadre import tune

    def fails(config):
        raise ValueError("no")

    with pytest.raises(cadre.CadreError, match="(?s)trials did not complete: 00000: .*ValueError: no"):
        tune.run(fails, name="fails", storage_path=str(tmp_path), verbose=0)
    analysis = tune.run(fails, name="fails", storage_path=str(tmp_path), verbose=0, raise_on_failed_trial=False)
    assert len(analysis.trials) == 1 and analysis.trials[0].error


def test_metadata_of_a_checkpoint_travel_with_it(fit, tmp_path):
    from cadre import tune

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
