"""Experiments: what programs for Ray Tune can observe."""

import json
import os
import pathlib
import tempfile

from ray import tune
from ray.tune import Checkpoint, CheckpointConfig, FailureConfig, RunConfig, TuneConfig, Tuner
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler


def fit(trainable, folder, *, param_space=None, name="experiment", stop=None, callbacks=None, checkpoint_config=None,
        failure_config=None, **tune_config):
    run_config = RunConfig(name=name, storage_path=folder, stop=stop, callbacks=callbacks, verbose=0,
                           checkpoint_config=checkpoint_config or CheckpointConfig(),
                           failure_config=failure_config or FailureConfig())
    return Tuner(trainable, param_space=param_space or {}, tune_config=TuneConfig(**tune_config), run_config=run_config).fit()


def reports(config):
    for step in range(config.get("steps", 3)):
        tune.report({"loss": config.get("x", 1) * (step + 1), "step": step})


# ---- Spaces


def case_a_grid_is_in_order(folder):
    results = fit(reports, folder, param_space={"x": tune.grid_search([3, 1, 2])})
    return [result.config["x"] for result in results]


def case_two_grids_multiply(folder):
    results = fit(reports, folder, param_space={"x": tune.grid_search([1, 2]), "y": tune.grid_search(["a", "b"])})
    return sorted([result.config["x"], result.config["y"]] for result in results)


def case_samples_repeat_a_grid(folder):
    results = fit(reports, folder, param_space={"x": tune.grid_search([1, 2]), "u": tune.uniform(0, 1)}, num_samples=2)
    return [len(results), sorted(result.config["x"] for result in results), len({result.config["u"] for result in results})]


def case_nested_spaces_keep_their_shape(folder):
    space = {"x": 1, "model": {"layers": [tune.randint(5, 6), {"width": tune.choice([64])}], "name": "net"}, "none": None}
    return fit(reports, folder, param_space=space)[0].config


def case_quantized_domains(folder):
    space = {"q": tune.quniform(0, 10, 2.5), "i": tune.qrandint(0, 12, 3), "l": tune.qloguniform(5, 100, 5)}
    results = fit(reports, folder, param_space=space, num_samples=5)
    return [all(result.config["q"] % 2.5 == 0 for result in results), all(result.config["i"] % 3 == 0 for result in results),
            all(result.config["l"] % 5 == 0 for result in results)]


def case_randint_excludes_its_end(folder):
    results = fit(reports, folder, param_space={"r": tune.randint(0, 2)}, num_samples=12)
    return sorted({result.config["r"] for result in results})


def case_sample_from_reads_spec_config(folder):
    space = {"x": 4, "y": tune.sample_from(lambda spec: spec.config.x * 2)}
    return fit(reports, folder, param_space=space)[0].config


def case_sample_from_reads_config(folder):
    space = {"x": 4, "y": tune.sample_from(lambda config: config["x"] * 3)}
    return fit(reports, folder, param_space=space)[0].config


def case_choice_of_lists_and_dictionaries(folder):
    results = fit(reports, folder, param_space={"c": tune.choice([[1, 2], {"a": 1}])}, num_samples=6)
    return all(result.config["c"] in ([1, 2], {"a": 1}) for result in results)


def case_domains_sample_alone(folder):
    return [0 <= tune.uniform(0, 1).sample() <= 1, tune.choice([7]).sample(), tune.randint(3, 4).sample(),
            len(tune.uniform(0, 1).sample(size=4))]


def case_an_empty_space_is_one_trial(folder):
    return len(fit(reports, folder))


# ---- Results


def case_metrics_of_the_last_result(folder):
    metrics = fit(reports, folder, param_space={"x": 2})[0].metrics
    return {key: metrics[key] for key in ("loss", "step", "training_iteration", "iterations_since_restore", "config")}


def case_keys_that_are_added(folder):
    metrics = fit(reports, folder)[0].metrics
    return sorted(key for key in metrics if key in {
        "training_iteration", "time_total_s", "time_this_iter_s", "timestamp", "date", "trial_id", "pid", "hostname", "node_ip",
        "time_since_restore", "iterations_since_restore", "config"})


def case_the_data_frame_of_a_trial(folder):
    frame = fit(reports, folder, param_space={"x": 2})[0].metrics_dataframe
    return [list(frame["loss"]), list(frame["training_iteration"])]


def case_nested_metrics_in_data_frames(folder):
    def nested(config):
        tune.report({"eval": {"accuracy": 0.5, "deep": {"f1": 0.25}}})

    results = fit(nested, folder)
    frame = results[0].metrics_dataframe
    return [frame["eval/accuracy"][0], frame["eval/deep/f1"][0], results[0].metrics["eval"],
            results.get_dataframe()["eval/accuracy"][0]]


def case_the_data_frame_of_all_trials(folder):
    results = fit(reports, folder, param_space={"x": tune.grid_search([1, 2])})
    frame = results.get_dataframe()
    best = results.get_dataframe(filter_metric="loss", filter_mode="min")
    return [list(frame["loss"]), list(frame["config/x"]), list(best["loss"]), list(best["step"])]


def case_the_best_result(folder):
    results = fit(reports, folder, param_space={"x": tune.grid_search([3, 1, 2])}, metric="loss", mode="min")
    return [results.get_best_result().config["x"], results.get_best_result("loss", "max").config["x"],
            results.get_best_result("loss", "min", scope="all").config["x"], results.get_best_result(scope="avg").config["x"]]


def case_no_metric_for_the_best(folder):
    return fit(reports, folder, param_space={"x": tune.grid_search([1, 2])}).get_best_result().config


def case_an_unknown_metric_for_the_best(folder):
    results = fit(reports, folder, param_space={"x": tune.grid_search([1, 2])})
    return results.get_best_result("no_such", "max").config


def case_the_best_of_one_trial(folder):
    return [fit(reports, folder).get_best_result().config, fit(reports, folder, name="b").get_best_result("no", "max").config]


def case_counts_of_results(folder):
    def fails_sometimes(config):
        tune.report({"x": config["x"]})
        if config["x"] == 1:
            raise RuntimeError("one")

    results = fit(fails_sometimes, folder, param_space={"x": tune.grid_search([0, 1, 2])})
    return [len(results), results.num_errors, results.num_terminated, [bool(result.error) for result in results],
            "RuntimeError: one" in str(results.errors[0])]


def case_returned_dictionaries_and_numbers(folder):
    return [fit(lambda config: {"loss": 3}, folder, name="d")[0].metrics["loss"],
            fit(lambda config: 4, folder, name="n")[0].metrics["_metric"]]


def case_a_function_that_reports_nothing(folder):
    results = fit(lambda config: None, folder)
    return [results.num_errors, bool(results[0].metrics.get("training_iteration")), results[0].checkpoint]


def case_result_files(folder):
    result = fit(reports, folder, param_space={"x": 2})[0]
    path = pathlib.Path(result.path)
    rows = [json.loads(line) for line in (path / "result.json").read_text().splitlines()]
    params = json.loads((path / "params.json").read_text())
    header = (path / "progress.csv").read_text().splitlines()[0].split(",")
    return [len(rows), rows[-1]["loss"], rows[0]["config"], params, "loss" in header, "training_iteration" in header,
            any(file.name.startswith("events.out.tfevents") for file in path.iterdir())]


def case_the_experiment_path(folder):
    results = fit(reports, folder, name="mine")
    return [os.path.basename(results.experiment_path), os.path.dirname(results.experiment_path) == os.path.realpath(folder)
            or os.path.dirname(results.experiment_path) == folder, results[0].path.startswith(results.experiment_path)]


# ---- Ends


def case_stop_at_a_threshold(folder):
    return fit(reports, folder, param_space={"steps": 10}, stop={"training_iteration": 4})[0].metrics["training_iteration"]


def case_stop_at_a_metric(folder):
    return fit(reports, folder, param_space={"steps": 10}, stop={"loss": 5})[0].metrics["loss"]


def case_stop_by_a_function(folder):
    return fit(reports, folder, param_space={"steps": 10}, stop=lambda trial_id, result: result["step"] >= 6)[0].metrics["step"]


def case_stop_by_a_stopper(folder):
    class Stops(tune.Stopper):
        def __call__(self, trial_id, result):
            return result["step"] == 2

        def stop_all(self):
            return False

    return fit(reports, folder, param_space={"steps": 10}, stop=Stops())[0].metrics["step"]


def case_stop_all(folder):
    class Stops(tune.Stopper):
        def __init__(self):
            self.count = 0

        def __call__(self, trial_id, result):
            self.count += 1
            return False

        def stop_all(self):
            return self.count >= 5

    results = fit(reports, folder, param_space={"steps": 100, "x": tune.grid_search([1, 2, 3])}, stop=Stops(),
                  max_concurrent_trials=1)
    return [results[0].metrics["training_iteration"] < 100, results.num_errors]


def case_done_ends_a_trial(folder):
    def is_done(config):
        for step in range(10):
            tune.report({"step": step, "done": step == 3})

    return fit(is_done, folder)[0].metrics["step"]


def case_a_stop_skips_except_exception_but_not_finally(folder):
    def trains(config):
        try:
            for step in range(10):
                tune.report({"step": step})
        finally:
            pathlib.Path(folder, "finally").touch()

    fit(trains, folder, stop={"training_iteration": 2})
    return True


def case_retries_of_a_failure(folder):
    def fails_once(config):
        marker = pathlib.Path(folder, "marker")
        tune.report({"x": 1})
        if not marker.exists():
            marker.touch()
            raise RuntimeError("once")
        tune.report({"x": 2})

    results = fit(fails_once, folder, failure_config=FailureConfig(max_failures=1))
    return [results.num_errors, results[0].metrics["x"]]


def case_fail_fast(folder):
    def fails(config):
        raise RuntimeError("no")

    results = fit(fails, folder, param_space={"x": tune.grid_search([1, 2, 3, 4, 5, 6])}, max_concurrent_trials=1,
                  failure_config=FailureConfig(fail_fast=True))
    return results.num_errors


def case_the_time_budget(folder):
    def waits(config):
        import time

        for step in range(1000):
            time.sleep(0.05)
            tune.report({"step": step})

    results = fit(waits, folder, time_budget_s=4)
    # A slow start may leave no time for a step.
    return [results.num_errors, (results[0].metrics or {}).get("step", 0) < 500]


# ---- Checkpoints


def saves(config):
    step = 0
    checkpoint = tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as directory:
            step = int(pathlib.Path(directory, "step").read_text())
    while step < config.get("steps", 4):
        step += 1
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "step").write_text(str(step))
            tune.report({"step": step, "score": -abs(step - config.get("best", 2))},
                        checkpoint=Checkpoint.from_directory(directory))


def step_of(checkpoint):
    with checkpoint.as_directory() as directory:
        return int(pathlib.Path(directory, "step").read_text())


def case_the_latest_checkpoint(folder):
    return step_of(fit(saves, folder)[0].checkpoint)


def case_checkpoints_that_are_kept(folder):
    result = fit(saves, folder, checkpoint_config=CheckpointConfig(num_to_keep=2))[0]
    return sorted(step_of(checkpoint) for checkpoint, _ in result.best_checkpoints)


def case_the_best_checkpoints_are_kept(folder):
    config = CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="score", checkpoint_score_order="max")
    result = fit(saves, folder, param_space={"steps": 6}, checkpoint_config=config)[0]
    return [step_of(result.get_best_checkpoint("score", "max")), 2 in {step_of(one) for one, _ in result.best_checkpoints}]


def case_metrics_of_checkpoints(folder):
    result = fit(saves, folder)[0]
    return sorted(metrics["step"] for _, metrics in result.best_checkpoints)


def case_metadata_of_a_checkpoint(folder):
    def trains(config):
        with tempfile.TemporaryDirectory() as directory:
            checkpoint = Checkpoint.from_directory(directory)
            checkpoint.set_metadata({"a": 1})
            checkpoint.update_metadata({"b": 2})
            tune.report({"x": 1}, checkpoint=checkpoint)

    return fit(trains, folder)[0].checkpoint.get_metadata()


def case_a_retry_continues_from_the_checkpoint(folder):
    def fails_at_two(config):
        begun = pathlib.Path(folder, "begun")
        step = 0
        if tune.get_checkpoint():
            step = step_of(tune.get_checkpoint())
        begun.write_text((begun.read_text() if begun.exists() else "") + str(step))
        while step < 4:
            step += 1
            with tempfile.TemporaryDirectory() as directory:
                pathlib.Path(directory, "step").write_text(str(step))
                tune.report({"step": step}, checkpoint=Checkpoint.from_directory(directory))
            if step == 2 and begun.read_text() == "0":
                raise RuntimeError("at two")

    results = fit(fails_at_two, folder, failure_config=FailureConfig(max_failures=2))
    return [results.num_errors, pathlib.Path(folder, "begun").read_text(), list(results[0].metrics_dataframe["step"])]


# ---- Classes


class Counts(tune.Trainable):
    def setup(self, config):
        self.count = config.get("start", 0)

    def step(self):
        self.count += 1
        return {"count": self.count, "iteration": self.training_iteration}

    def save_checkpoint(self, checkpoint_dir):
        pathlib.Path(checkpoint_dir, "count").write_text(str(self.count))
        return checkpoint_dir

    def load_checkpoint(self, checkpoint_dir):
        self.count = int(pathlib.Path(checkpoint_dir, "count").read_text())


class CountsInDictionaries(Counts):
    def save_checkpoint(self, checkpoint_dir):
        return {"count": self.count}

    def load_checkpoint(self, checkpoint):
        self.count = checkpoint["count"]


def case_a_class(folder):
    result = fit(Counts, folder, param_space={"start": 10}, stop={"training_iteration": 3})[0]
    return [list(result.metrics_dataframe["count"]), list(result.metrics_dataframe["iteration"]), result.checkpoint is None]


def case_checkpoints_of_a_class(folder):
    kept = {}
    for name, kind in (("files", Counts), ("dictionaries", CountsInDictionaries)):
        result = fit(kind, folder, name=name, stop={"training_iteration": 5},
                     checkpoint_config=CheckpointConfig(checkpoint_frequency=2, checkpoint_at_end=True))[0]
        kept[name] = sorted(metrics["count"] for _, metrics in result.best_checkpoints)
    return kept


def case_a_class_outside_of_a_tuner(folder):
    counts = Counts({"start": 5})
    result = counts.train()
    return [result["count"], result["training_iteration"]]


def case_parameters_of_a_class(folder):
    class WithData(tune.Trainable):
        def setup(self, config, data):
            self.data = data

        def step(self):
            return {"sum": sum(self.data), "done": True}

    return fit(tune.with_parameters(WithData, data=[1, 2, 3]), folder)[0].metrics["sum"]


def case_parameters_of_a_function(folder):
    def trains(config, data, factor):
        tune.report({"sum": sum(data) * factor})

    result = fit(tune.with_parameters(trains, data=[1, 2, 3], factor=2), folder)[0]
    return [result.metrics["sum"], result.config]


def case_resources_of_a_trial(folder):
    def trains(config):
        resources = tune.get_context().get_trial_resources()
        bundle = getattr(resources, "bundles", [resources])[0]
        tune.report({"cpus": bundle["CPU"]})

    return fit(tune.with_resources(trains, {"cpu": 2}), folder)[0].metrics["cpus"]


def case_more_resources_than_there_are(folder):
    if tune.__name__ != "cadre.tune":
        raise ValueError  # Ray waits for ever
    fit(tune.with_resources(reports, {"cpu": 200}), folder)


# ---- The context, objects and callbacks


def case_the_context_of_a_trial(folder):
    def trains(config):
        context = tune.get_context()
        tune.report({"name": context.get_experiment_name(), "id": len(context.get_trial_id()) > 0,
                     "dir": os.path.isdir(context.get_trial_dir()), "in_dir": os.path.realpath(os.getcwd()) != os.path.realpath("/"),
                     "named": context.get_trial_name().startswith("trains")})

    metrics = fit(trains, folder, name="mine")[0].metrics
    return {key: metrics[key] for key in ("name", "id", "dir", "named")}


def case_objects_in_a_config(folder):
    import ray

    reference = ray.put([1, 2, 3])

    def trains(config):
        import ray

        tune.report({"sum": sum(ray.get(config["data"]))})

    return [fit(trains, folder, param_space={"data": reference})[0].metrics["sum"], ray.get([reference, reference])]


class Hooks(tune.Callback):
    def __init__(self):
        self.calls = []

    def setup(self, stop=None, num_samples=None, total_num_samples=None, **info):
        self.calls.append("setup")

    def on_trial_start(self, iteration, trials, trial, **info):
        self.calls.append("start")

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.calls.append(f"result {result['step']}")

    def on_trial_complete(self, iteration, trials, trial, **info):
        self.calls.append("complete")

    def on_trial_error(self, iteration, trials, trial, **info):
        self.calls.append("error")

    def on_experiment_end(self, trials, **info):
        self.calls.append(f"end {len(trials)}")


def case_the_order_of_hooks(folder):
    hooks = Hooks()
    fit(reports, folder, callbacks=[hooks])
    return hooks.calls


def case_hooks_of_a_failure(folder):
    def fails(config):
        tune.report({"step": 0})
        raise RuntimeError("no")

    hooks = Hooks()
    fit(fails, folder, callbacks=[hooks])
    return hooks.calls


def case_a_trial_is_one_object(folder):
    class Remembers(tune.Callback):
        def __init__(self):
            self.counts = {}

        def on_trial_result(self, iteration, trials, trial, result, **info):
            self.counts[trial] = self.counts.get(trial, 0) + 1

    remembers = Remembers()
    fit(reports, folder, callbacks=[remembers], param_space={"x": tune.grid_search([1, 2])})
    return sorted(remembers.counts.values())


# ---- Restore


def case_a_finished_experiment_is_restored(folder):
    fit(saves, folder, name="done")
    path = os.path.join(folder, "done")
    results = Tuner.restore(path, saves).fit()
    return [Tuner.can_restore(path), Tuner.can_restore(folder), results[0].metrics["step"], len(results)]


def fails_until_marked(config):
    marker = pathlib.Path(config["folder"], "marker")
    step = step_of(tune.get_checkpoint()) if tune.get_checkpoint() else 0
    while step < 4:
        step += 1
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "step").write_text(str(step))
            tune.report({"step": step}, checkpoint=Checkpoint.from_directory(directory))
        if step == 2 and not marker.exists():
            raise RuntimeError("not marked")


def case_resume_errored(folder):
    first = fit(fails_until_marked, folder, name="errored", param_space={"folder": folder})
    pathlib.Path(folder, "marker").touch()
    path = os.path.join(folder, "errored")
    left = Tuner.restore(path, fails_until_marked).fit()
    resumed = Tuner.restore(path, fails_until_marked, resume_errored=True).fit()
    return [first.num_errors, left.num_errors, resumed.num_errors, resumed[0].metrics["step"],
            list(resumed[0].metrics_dataframe["step"])]


def case_restart_errored(folder):
    fit(fails_until_marked, folder, name="errored", param_space={"folder": folder})
    pathlib.Path(folder, "marker").touch()
    restarted = Tuner.restore(os.path.join(folder, "errored"), fails_until_marked, restart_errored=True).fit()
    return [restarted.num_errors, restarted[0].metrics["step"], restarted[0].metrics["training_iteration"]]


def case_results_without_running(folder):
    fit(fails_until_marked, folder, name="errored", param_space={"folder": folder})
    results = Tuner.restore(os.path.join(folder, "errored"), fails_until_marked).get_results()
    return [len(results), results.num_errors, results[0].metrics["step"]]


def case_nothing_to_restore(folder):
    Tuner.restore(os.path.join(folder, "nothing"), reports)


# ---- Schedulers


def case_asha_lets_the_best_go_on(folder):
    def trains(config):
        for step in range(1, 10):
            tune.report({"loss": config["x"]})

    results = fit(trains, folder, param_space={"x": tune.grid_search([1, 2, 3, 4])}, max_concurrent_trials=1, metric="loss",
                  mode="min", scheduler=ASHAScheduler(max_t=9, grace_period=1, reduction_factor=3))
    return [result.metrics["training_iteration"] for result in results]


def case_fifo(folder):
    results = fit(reports, folder, param_space={"x": tune.grid_search([1, 2])}, scheduler=FIFOScheduler())
    return [result.metrics["training_iteration"] for result in results]


def case_metrics_in_both_places_are_refused(folder):
    fit(reports, folder, metric="loss", mode="min", scheduler=ASHAScheduler(metric="other", mode="max"))


# ---- Bad input


def case_no_trainable(folder):
    fit("never_registered", folder)


def case_a_number_is_no_trainable(folder):
    fit(5, folder)


def case_a_bad_mode(folder):
    fit(reports, folder, metric="loss", mode="best")


def case_a_registered_name(folder):
    tune.register_trainable("registered", reports)
    return fit("registered", folder, param_space={"x": 5})[0].metrics["loss"]


def case_a_second_run_of_one_name(folder):
    for x in (1, 2):
        results = fit(reports, folder, param_space={"x": x}, name="same")
    return [len(results), results[0].config["x"]]


def case_tune_run(folder):
    analysis = tune.run(reports, config={"x": tune.grid_search([2, 1])}, metric="loss", mode="min", storage_path=folder,
                        name="run", verbose=0)
    return [analysis.best_config, analysis.get_best_config("loss", "max"), sorted(analysis.dataframe()["loss"])]
