"""Lives of trials: classes, failures, callbacks, checkpoints and directories, as programs for Ray Tune can observe them."""

import json
import os
import pathlib
import tempfile

from lines import lines_in, write_line
from ray import tune
from ray.tune import Checkpoint, CheckpointConfig, FailureConfig, Tuner
from ray.tune.logger import LoggerCallback
from tune_cases import Counts, fit, reports, saves, step_of


# ---- Classes


def case_the_life_of_a_class(folder):
    class Lives(tune.Trainable):
        def setup(self, config):
            write_line(folder, f"setup {config['x']}")

        def step(self):
            write_line(folder, f"step {self.training_iteration}")
            return {"x": self.config["x"]}

        def save_checkpoint(self, checkpoint_dir):
            write_line(folder, f"save {self.training_iteration}")

        def load_checkpoint(self, checkpoint):
            write_line(folder, "load")

        def cleanup(self):
            write_line(folder, "cleanup")

    fit(Lives, folder, param_space={"x": 1}, stop={"training_iteration": 3},
        checkpoint_config=CheckpointConfig(checkpoint_frequency=2, checkpoint_at_end=True))
    return lines_in(folder)


def case_names_of_a_class_in_a_trial(folder):
    class Knows(tune.Trainable):
        def step(self):
            return {"id": bool(self.trial_id), "name": self.trial_name.startswith("Knows"), "directory": os.path.isdir(self.logdir),
                    "iteration": self.iteration, "config": self.get_config() == self.config, "done": True}

    metrics = fit(Knows, folder, param_space={"x": 1})[0].metrics
    return [metrics[key] for key in ("id", "name", "directory", "iteration")]


def case_a_class_asks_for_a_checkpoint(folder):
    class Asks(Counts):
        def step(self):
            result = super().step()
            result["should_checkpoint"] = self.count in (2, 3)
            return result

    result = fit(Asks, folder, stop={"training_iteration": 4})[0]
    return sorted(metrics["count"] for _, metrics in result.best_checkpoints)


def case_a_class_with_parameters_and_resources(folder):
    class Weighs(tune.Trainable):
        def setup(self, config, weights, bias=0):
            self.total = sum(weights) + bias + config["x"]

        def step(self):
            return {"total": self.total, "done": True}

    trainable = tune.with_resources(tune.with_parameters(Weighs, weights=[1, 2], bias=10), {"cpu": 1})
    return [result.metrics["total"] for result in fit(trainable, folder, param_space={"x": tune.grid_search([100, 200])})]


def case_reused_classes_train_with_their_own_config(folder):
    class Resets(tune.Trainable):
        def setup(self, config):
            self.x = config["x"]

        def step(self):
            return {"x": self.x, "config": self.config["x"], "done": self.training_iteration >= 1}

        def reset_config(self, new_config):
            self.x = new_config["x"]
            return True

    results = fit(Resets, folder, param_space={"x": tune.grid_search([1, 2, 3])}, max_concurrent_trials=1, reuse_actors=True)
    return [[result.metrics["x"], result.metrics["training_iteration"]] for result in results]


def case_a_class_without_a_step(folder):
    class Empty(tune.Trainable):
        pass

    return fit(Empty, folder).num_errors


def case_a_failure_in_setup(folder):
    class Fails(tune.Trainable):
        def setup(self, config):
            raise ValueError("in setup")

    results = fit(Fails, folder)
    return [results.num_errors, "in setup" in str(results[0].error), results[0].metrics.get("training_iteration")]


def case_a_class_that_returns_no_dictionary(folder):
    class Returns(tune.Trainable):
        def step(self):
            return 5

    return fit(Returns, folder).num_errors


def case_checkpoint_at_the_end_only(folder):
    result = fit(Counts, folder, stop={"training_iteration": 3}, checkpoint_config=CheckpointConfig(checkpoint_at_end=True))[0]
    return [sorted(metrics["count"] for _, metrics in result.best_checkpoints), os.path.basename(result.checkpoint.path)[:11]]


# ---- Failures


def case_a_trial_that_fails_more_often_than_allowed(folder):
    def fails(config):
        write_line(folder, "begins")
        tune.report({"x": 1})
        raise RuntimeError("again")

    results = fit(fails, folder, failure_config=FailureConfig(max_failures=2))
    return [results.num_errors, lines_in(folder)]


def case_any_number_of_failures(folder):
    def fails(config):
        write_line(folder, "begins")
        if len(lines_in(folder)) < 5:
            raise RuntimeError("again")
        tune.report({"x": 1})

    results = fit(fails, folder, failure_config=FailureConfig(max_failures=-1))
    return [results.num_errors, len(lines_in(folder))]


def case_fail_fast_raises(folder):
    def fails(config):
        raise ValueError("the reason")

    try:
        fit(fails, folder, failure_config=FailureConfig(fail_fast="raise"))
    except Exception as error:
        return "the reason" in str(error)


def case_failures_and_fail_fast_together(folder):
    FailureConfig(max_failures=2, fail_fast=True)
    return fit(reports, folder, failure_config=FailureConfig(max_failures=2, fail_fast=True)).num_errors


def case_the_results_of_failed_trials(folder):
    def fails(config):
        for step in range(1, 4):
            with tempfile.TemporaryDirectory() as directory:
                pathlib.Path(directory, "step").write_text(str(step))
                tune.report({"step": step}, checkpoint=Checkpoint.from_directory(directory))
        raise RuntimeError("at the end")

    result = fit(fails, folder)[0]
    return [result.metrics["step"], step_of(result.checkpoint), len(result.best_checkpoints), len(result.metrics_dataframe)]


def case_exits_are_failures(folder):
    def exits(config):
        tune.report({"x": 1})
        raise SystemExit(3)

    results = fit(exits, folder)
    return [results.num_errors, results[0].metrics.get("x")]


# ---- Checkpoints


def scored(scores):
    def trains(given):
        for step, score in enumerate(scores):
            with tempfile.TemporaryDirectory() as directory:
                pathlib.Path(directory, "step").write_text(str(step))
                tune.report({"step": step, "score": score},
                            checkpoint=Checkpoint.from_directory(directory))

    return trains


def kept(folder, scores, **config):
    result = fit(scored(scores), folder, checkpoint_config=CheckpointConfig(**config))[0]
    return [sorted(step_of(checkpoint) for checkpoint, _ in result.best_checkpoints), step_of(result.checkpoint)]


def case_the_lowest_scores_are_kept(folder):
    return kept(folder, [5, 1, 4, 0, 3], num_to_keep=2, checkpoint_score_attribute="score", checkpoint_score_order="min")


def case_one_checkpoint_is_kept(folder):
    return kept(folder, [1, 5, 2], num_to_keep=1)


def case_the_best_alone_is_kept_and_the_latest(folder):
    return kept(folder, [1, 5, 2, 3], num_to_keep=1, checkpoint_score_attribute="score")


def case_equal_scores(folder):
    return kept(folder, [1, 1, 1, 1], num_to_keep=2, checkpoint_score_attribute="score")


def case_names_of_checkpoint_directories(folder):
    result = fit(saves, folder)[0]
    return [os.path.basename(result.checkpoint.path), sorted(name for name in os.listdir(result.path) if name.startswith("checkpoint"))]


def case_a_bad_number_to_keep(folder):
    return CheckpointConfig(num_to_keep=-1).num_to_keep


def case_a_bad_order_of_scores(folder):
    return CheckpointConfig(num_to_keep=1, checkpoint_score_attribute="score", checkpoint_score_order="best").num_to_keep


# ---- Callbacks


class Notes(tune.Callback):
    def __init__(self, lines):
        self.lines = lines

    def on_trial_start(self, iteration, trials, trial, **info):
        self.lines.append("start")

    def on_trial_restore(self, iteration, trials, trial, **info):
        self.lines.append("restore")

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.lines.append(f"result {result['step']}")

    def on_trial_save(self, iteration, trials, trial, **info):
        self.lines.append("save")

    def on_checkpoint(self, iteration, trials, trial, checkpoint, **info):
        self.lines.append("checkpoint")

    def on_trial_recover(self, iteration, trials, trial, **info):
        self.lines.append("recover")

    def on_trial_error(self, iteration, trials, trial, **info):
        self.lines.append("error")

    def on_trial_complete(self, iteration, trials, trial, **info):
        self.lines.append("complete")


def case_hooks_of_checkpoints(folder):
    lines = []
    fit(saves, folder, param_space={"steps": 2}, callbacks=[Notes(lines)])
    return [line for line in lines if line in ("start", "restore", "complete") or line.startswith("result")] + \
        [lines.count("checkpoint")]


def case_hooks_of_a_retry(folder):
    def fails_once(config):
        step = step_of(tune.get_checkpoint()) if tune.get_checkpoint() else 0
        while step < 3:
            step += 1
            with tempfile.TemporaryDirectory() as directory:
                pathlib.Path(directory, "step").write_text(str(step))
                tune.report({"step": step}, checkpoint=Checkpoint.from_directory(directory))
            if step == 2 and not os.path.exists(os.path.join(folder, "marker")):
                pathlib.Path(folder, "marker").touch()
                raise RuntimeError("once")

    lines = []
    fit(fails_once, folder, callbacks=[Notes(lines)], failure_config=FailureConfig(max_failures=1))
    return [line for line in lines if line not in ("save", "checkpoint", "restore")]


def case_a_trial_in_a_callback(folder):
    class Looks(tune.Callback):
        def __init__(self):
            self.seen = []

        def on_trial_complete(self, iteration, trials, trial, **info):
            self.seen.append([trial.config["x"], trial.status, trial.last_result["step"], trial.trainable_name,
                              os.path.isdir(trial.local_path), str(trial).startswith("saves_"), trial.is_finished(),
                              step_of(trial.checkpoint), bool(trial.trial_id), trial.experiment_dir_name])

    looks = Looks()
    fit(saves, folder, param_space={"x": 5}, callbacks=[looks])
    return [[*seen[:1], *seen[2:6], *seen[7:]] for seen in looks.seen]


def case_a_logger(folder):
    class Logs(LoggerCallback):
        def __init__(self):
            self.lines = []

        def log_trial_start(self, trial):
            self.lines.append(f"start {trial.config['x']}")

        def log_trial_result(self, iteration, trial, result):
            self.lines.append(f"result {result['step']}")

        def log_trial_end(self, trial, failed=False):
            self.lines.append(f"end {failed}")

    def trains(config):
        for step in range(2):
            tune.report({"step": step})
        if config["x"] == 2:
            raise RuntimeError("two")

    logs = Logs()
    fit(trains, folder, param_space={"x": tune.grid_search([1, 2])}, callbacks=[logs], max_concurrent_trials=1)
    return logs.lines


def case_callbacks_see_what_others_have_changed(folder):
    class Adds(tune.Callback):
        def on_trial_result(self, iteration, trials, trial, result, **info):
            result["added"] = result["step"] + 100

    class Reads(tune.Callback):
        def __init__(self):
            self.read = []

        def on_trial_result(self, iteration, trials, trial, result, **info):
            self.read.append(result.get("added"))

    reads = Reads()
    fit(reports, folder, callbacks=[Adds(), reads])
    return reads.read


# ---- Directories and files


def case_a_result_of_a_directory(folder):
    result = fit(saves, folder, param_space={"steps": 3})[0]
    read = tune.Result.from_path(result.path)
    return [read.metrics["step"], step_of(read.checkpoint), sorted(step_of(one) for one, _ in read.best_checkpoints),
            list(read.metrics_dataframe["step"]), read.error, read.config["steps"]]


def case_a_failed_result_of_a_directory(folder):
    def fails(config):
        tune.report({"x": 1})
        raise ValueError("the reason")

    result = fit(fails, folder)[0]
    read = tune.Result.from_path(result.path)
    return [read.metrics["x"], read.error is not None, read.checkpoint]


def case_no_result_in_a_directory(folder):
    tune.Result.from_path(os.path.join(folder, "nothing"))


def case_files_of_a_trial(folder):
    result = fit(reports, folder, param_space={"x": 4})[0]
    names = os.listdir(result.path)
    return [name in names for name in ("result.json", "progress.csv", "params.json")] + [
        os.path.basename(result.path).startswith("experiment"), json.loads(pathlib.Path(result.path, "params.json").read_text())]


def case_a_report_of_no_dictionary(folder):
    def trains(config):
        tune.report(5)

    return fit(trains, folder).num_errors


def case_an_experiment_of_another_kind_of_trainable_is_restored(folder):
    fit(saves, folder, name="done", param_space={"steps": 2})
    path = os.path.join(folder, "done")
    results = Tuner.restore(path, trainable=saves).get_results()
    return [len(results), results[0].metrics["step"], step_of(results[0].checkpoint)]


def case_resumed_and_restarted_trials_beside_finished_ones(folder):
    def trains(config):
        write_line(folder, f"begins {config['x']}")
        tune.report({"x": config["x"]})
        if config["x"] == 2 and not os.path.exists(os.path.join(folder, "marker")):
            raise RuntimeError("two")

    fit(trains, folder, name="some", param_space={"x": tune.grid_search([1, 2, 3])})
    pathlib.Path(folder, "marker").touch()
    results = Tuner.restore(os.path.join(folder, "some"), trains, restart_errored=True).fit()
    return [results.num_errors, sorted(lines_in(folder)), len(results)]


def case_a_scheduler_by_its_name(folder):
    scheduler = tune.create_scheduler("async_hyperband", metric="loss", mode="min", max_t=2, unknown=5)
    results = fit(reports, folder, param_space={"x": 1}, scheduler=scheduler)
    return [results[0].metrics["training_iteration"], type(tune.create_scheduler("median_stopping_rule")).__name__]


def case_no_scheduler_of_that_name(folder):
    tune.create_scheduler("never_heard_of")
