"""More of what programs for Ray Tune can observe: objects, values, classes, files, tune.run."""

import functools
import json
import math
import os
import pathlib
import shutil
import tempfile

from ray import tune
from ray.tune import Checkpoint, CheckpointConfig, FailureConfig
from ray.tune.result import SHOULD_CHECKPOINT, TRAINING_ITERATION
from ray.tune.schedulers import PopulationBasedTraining, PopulationBasedTrainingReplay
from ray.tune.stopper import (CombinedStopper, FunctionStopper, MaximumIterationStopper, TimeoutStopper, TrialPlateauStopper)
from tune_cases import Counts, fit, reports, saves, step_of

# ---- Functions and values


def case_a_partial(folder):
    def trains(config, factor):
        tune.report({"y": config["x"] * factor})

    return fit(functools.partial(trains, factor=3), folder, param_space={"x": 2})[0].metrics["y"]


def case_a_closure_over_an_object(folder):
    class Model:
        def __init__(self, weight):
            self.weight = weight

        def score(self, x):
            return self.weight * x

    model = Model(4)
    return fit(lambda config: tune.report({"score": model.score(config["x"])}), folder, param_space={"x": 2})[0].metrics["score"]


def case_objects_and_functions_in_a_config(folder):
    class Scale:
        def __init__(self, factor):
            self.factor = factor

    def trains(config):
        tune.report({"y": config["function"](config["scale"].factor), "kind": config["kind"].__name__})

    space = {"function": lambda x: x + 1, "scale": tune.choice([Scale(5)]), "kind": dict}
    metrics = fit(trains, folder, param_space=space)[0].metrics
    return [metrics["y"], metrics["kind"]]


def case_tuples_are_sequences(folder):
    def trains(config):
        first, second = config["pair"]
        tune.report({"sum": first + second})

    return fit(trains, folder, param_space={"pair": (1, 2)})[0].metrics["sum"]


def case_tuples_and_keys_stay_as_they_are(folder):
    def trains(config):
        tune.report({"seen": repr([config["pair"], config["names"], config["drawn"]])})

    space = {"pair": (1, 2), "names": {1: "one", 2: [(3,)]}, "drawn": tune.choice([(4, "a")])}
    result = fit(trains, folder, param_space=space)[0]
    return [result.metrics["seen"], repr([result.config["pair"], result.config["names"], result.config["drawn"]])]


def case_a_config_is_the_trials_own(folder):
    def trains(config):
        config["x"] = 100
        tune.report({"x": config["x"]})

    result = fit(trains, folder, param_space={"x": 1})[0]
    return [result.metrics["x"], result.config["x"]]


def case_numbers_of_numpy_and_torch(folder):
    def trains(config):
        import numpy
        import torch

        tune.report({"f": float(numpy.float64(0.5)), "i": numpy.int64(3), "t": torch.tensor(2.5).item()})

    metrics = fit(trains, folder)[0].metrics
    return [metrics["f"], int(metrics["i"]), metrics["t"]]


def case_nan_and_infinity(folder):
    def trains(config):
        tune.report({"n": math.nan, "i": math.inf})

    metrics = fit(trains, folder)[0].metrics
    return [math.isnan(metrics["n"]), metrics["i"] == math.inf]


def case_nan_is_not_the_best(folder):
    def trains(config):
        tune.report({"loss": math.nan if config["x"] == 1 else config["x"]})

    results = fit(trains, folder, param_space={"x": tune.grid_search([1, 2, 3])})
    return [results.get_best_result("loss", "min").config["x"], results.get_best_result("loss", "max").config["x"]]


def case_texts_none_and_booleans(folder):
    def trains(config):
        tune.report({"text": "α", "none": None, "true": True, "list": [1, "a", None]})

    metrics = fit(trains, folder)[0].metrics
    return [metrics["text"], metrics["none"], metrics["true"], metrics["list"]]


def case_keys_that_are_no_text(folder):
    def trains(config):
        tune.report({"by_class": {0: 0.5, 1: 0.25}})

    frame = fit(trains, folder)[0].metrics_dataframe
    return [frame["by_class/0"][0], frame["by_class/1"][0]]


def case_its_own_training_iteration(folder):
    def trains(config):
        for step in range(3):
            tune.report({TRAINING_ITERATION: 10 * (step + 1)})

    return fit(trains, folder)[0].metrics["training_iteration"]


def case_time_total_grows(folder):
    frame = fit(reports, folder)[0].metrics_dataframe
    times = list(frame["time_total_s"])
    return times == sorted(times)


# ---- Classes


class Resets(tune.Trainable):
    def setup(self, config):
        self.log = [f"setup {config['x']}"]

    def step(self):
        return {"score": self.config["x"], "log": " ".join(self.log), "done": self.training_iteration >= 1}

    def reset_config(self, new_config):
        self.log.append(f"reset {new_config['x']}")
        return True

    def save_checkpoint(self, checkpoint_dir):
        return {"log": self.log}

    def load_checkpoint(self, checkpoint):
        pass

    def cleanup(self):
        if "folder" in self.config:
            pathlib.Path(self.config["folder"], f"cleaned_{self.config['x']}").touch()


def case_cleanup_is_called(folder):
    fit(Resets, folder, param_space={"x": tune.grid_search([1, 2]), "folder": folder})
    return sorted(file.name for file in pathlib.Path(folder).glob("cleaned_*"))


def case_done_of_a_class(folder):
    return fit(Resets, folder, param_space={"x": 1})[0].metrics["training_iteration"]


def case_an_exception_of_a_class(folder):
    class Fails(tune.Trainable):
        def step(self):
            if self.training_iteration == 2:
                raise RuntimeError("third step")
            return {"x": self.training_iteration}

    results = fit(Fails, folder)
    return [results.num_errors, "third step" in str(results[0].error), results[0].metrics["training_iteration"]]


def case_a_class_is_retried_from_its_checkpoint(folder):
    class FailsOnce(Counts):
        def step(self):
            marker = pathlib.Path(self.config["folder"], "marker")
            if self.count == 3 and not marker.exists():
                marker.touch()
                raise RuntimeError("once")
            return super().step()

    results = fit(FailsOnce, folder, param_space={"folder": folder}, stop={"training_iteration": 5},
                  checkpoint_config=CheckpointConfig(checkpoint_frequency=1), failure_config=FailureConfig(max_failures=1))
    return [results.num_errors, results[0].metrics["count"]]


def case_the_config_of_a_class(folder):
    class Shows(tune.Trainable):
        def setup(self, config):
            self.given = dict(config)

        def step(self):
            return {"same": self.given == self.config, "x": self.config["x"], "done": True}

    metrics = fit(Shows, folder, param_space={"x": 3})[0].metrics
    return [metrics["same"], metrics["x"]]


def case_a_class_saves_and_restores_alone(folder):
    first = Counts({"start": 1})
    first.train()
    directory = os.path.join(folder, "saved")
    os.makedirs(directory)
    first.save(directory)
    second = Counts({"start": 50})
    second.restore(directory)
    return [second.count, second.train()["count"]]


def case_a_callback_asks_for_checkpoints(folder):
    class Asks(tune.Callback):
        def on_trial_result(self, *, iteration, trials, trial, result, **info):
            if result["training_iteration"] in (2, 4):
                result[SHOULD_CHECKPOINT] = True

    result = fit(Counts, folder, stop={"training_iteration": 5}, callbacks=[Asks()],
                 checkpoint_config=CheckpointConfig(checkpoint_at_end=False))[0]
    return sorted(metrics["training_iteration"] for _, metrics in result.best_checkpoints)


# ---- Checkpoints


def case_a_checkpoint_object(folder):
    checkpoint = Checkpoint.from_directory(folder)
    pathlib.Path(folder, "file").write_text("x")
    copy = checkpoint.to_directory()
    copied = os.listdir(copy)
    shutil.rmtree(copy)
    target = checkpoint.to_directory(os.path.join(folder, "..", os.path.basename(folder) + "_copy"))
    return [os.path.realpath(checkpoint.path) == os.path.realpath(folder), copied, os.listdir(target),
            bool(checkpoint), checkpoint.get_metadata()]


def case_the_directory_may_go_after_the_report(folder):
    def trains(config):
        directory = tempfile.mkdtemp()
        pathlib.Path(directory, "step").write_text("5")
        tune.report({"x": 1}, checkpoint=Checkpoint.from_directory(directory))
        tune.report({"there": os.path.exists(os.path.join(directory, "step"))})

    result = fit(trains, folder)[0]
    return [result.metrics["there"], step_of(result.checkpoint)]


def case_nested_files_of_a_checkpoint(folder):
    def trains(config):
        with tempfile.TemporaryDirectory() as directory:
            nested = pathlib.Path(directory, "a", "b")
            nested.mkdir(parents=True)
            (nested / "file").write_text("deep")
            tune.report({"x": 1}, checkpoint=Checkpoint.from_directory(directory))

    with fit(trains, folder)[0].checkpoint.as_directory() as directory:
        return pathlib.Path(directory, "a", "b", "file").read_text()


def case_no_checkpoint_at_the_beginning(folder):
    def trains(config):
        tune.report({"none": tune.get_checkpoint() is None})

    result = fit(trains, folder)[0]
    return [result.metrics["none"], result.checkpoint, result.best_checkpoints]


def case_the_best_checkpoint_by_another_metric(folder):
    result = fit(saves, folder, param_space={"steps": 5, "best": 3})[0]
    return [step_of(result.get_best_checkpoint("score", "max")), step_of(result.get_best_checkpoint("step", "min"))]


# ---- Stoppers


def case_stoppers(folder):
    space = {"steps": 30}
    return [
        fit(reports, folder, name="a", param_space=space, stop=MaximumIterationStopper(7))[0].metrics["training_iteration"],
        fit(reports, folder, name="b", param_space=space,
            stop=CombinedStopper(MaximumIterationStopper(9), FunctionStopper(lambda trial_id, result: result["step"] >= 3)))[
                0].metrics["training_iteration"],
        fit(reports, folder, name="c", param_space=space, stop={"step": 5, "loss": 100})[0].metrics["training_iteration"],
        fit(reports, folder, name="d", param_space=space, stop=TimeoutStopper(600))[0].metrics["training_iteration"]]


def case_a_plateau(folder):
    def trains(config):
        for step in range(40):
            tune.report({"loss": max(10 - step, 0)})

    return fit(trains, folder, stop=TrialPlateauStopper("loss", std=0.001, num_results=4, grace_period=4))[0].metrics[
        "training_iteration"]


def case_a_stop_function_that_is_no_function(folder):
    fit(reports, folder, stop=5)


# ---- Files


def case_files_of_a_failure(folder):
    def fails(config):
        raise ValueError("the reason")

    path = pathlib.Path(fit(fails, folder)[0].path)
    return "the reason" in (path / "error.txt").read_text()


def case_rows_of_a_csv(folder):
    path = pathlib.Path(fit(reports, folder, param_space={"x": 3})[0].path)
    lines = (path / "progress.csv").read_text().splitlines()
    column = lines[0].split(",").index("loss")
    return [len(lines), [float(line.split(",")[column]) for line in lines[1:]]]


def case_results_of_json(folder):
    path = pathlib.Path(fit(reports, folder, param_space={"x": 3, "n": {"a": 1}})[0].path)
    rows = [json.loads(line) for line in (path / "result.json").read_text().splitlines()]
    return [[row["step"] for row in rows], rows[0]["config"], rows[-1]["training_iteration"]]


# ---- Population Based Training


def case_policies_of_a_population(folder):
    scheduler = PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=2, metric="score", mode="max",
                                        hyperparam_mutations={"rate": [0.1, 0.2, 0.4]}, synch=True)

    def trains(config):
        step, score = 0, 0.0
        if tune.get_checkpoint():
            with tune.get_checkpoint().as_directory() as directory:
                step, score = json.loads(pathlib.Path(directory, "state").read_text())
        while step < 8:
            step += 1
            score += config["rate"]
            with tempfile.TemporaryDirectory() as directory:
                pathlib.Path(directory, "state").write_text(json.dumps([step, score]))
                tune.report({"score": score}, checkpoint=Checkpoint.from_directory(directory))

    results = fit(trains, folder, param_space={"rate": tune.grid_search([0.1, 0.2, 0.4, 0.1])}, scheduler=scheduler)
    policies = sorted(pathlib.Path(results.experiment_path).glob("pbt_policy_*.txt"))
    replayed = fit(trains, folder, name="replay", scheduler=PopulationBasedTrainingReplay(str(policies[0])))
    first = json.loads(policies[0].read_text().splitlines()[0])
    return [results.num_errors, [result.metrics["training_iteration"] for result in results], len(first), bool(policies),
            replayed.num_errors]


def case_bad_options_of_a_population(folder):
    PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=2, hyperparam_mutations={"rate": [1, 2]},
                            quantile_fraction=0.9)
    fit(saves, folder, scheduler=PopulationBasedTraining(
        time_attr="training_iteration", metric="score", mode="max", perturbation_interval=2,
        hyperparam_mutations={"rate": [1, 2]}, quantile_fraction=0.9))


def case_no_mutations(folder):
    fit(saves, folder, scheduler=PopulationBasedTraining(time_attr="training_iteration", metric="score", mode="max",
                                                         perturbation_interval=2, hyperparam_mutations={}))


# ---- tune.run


def case_run_with_a_failure(folder):
    def fails(config):
        raise RuntimeError("no")

    tune.run(fails, storage_path=folder, name="run", verbose=0)


def case_run_without_raising(folder):
    def fails(config):
        raise RuntimeError("no")

    return len(tune.run(fails, storage_path=folder, name="run", verbose=0, raise_on_failed_trial=False).trials)


def case_run_with_stop_and_resources(folder):
    analysis = tune.run(Counts, storage_path=folder, name="run", verbose=0, stop={"training_iteration": 3}, metric="count",
                        mode="max", resources_per_trial={"cpu": 1}, num_samples=2,
                        checkpoint_config=CheckpointConfig(checkpoint_frequency=1))
    return [len(analysis.trials), analysis.best_result["count"], analysis.get_best_config(), analysis.best_checkpoint is not None,
            sorted(analysis.results_df["count"])]
