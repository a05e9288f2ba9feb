"""Spaces, schedulers, stoppers, callbacks and results, as programs for Ray Tune use them."""

import collections
import datetime
import enum
import json
import math
import os
import pathlib
import pickle
import random
import shutil
import tempfile
import threading

import pytest

import cadre
from cadre import train, tune
from cadre.tune.schedulers import PB2, ASHAScheduler, PopulationBasedTraining
from cadre.tune.stopper import CombinedStopper, FunctionStopper, MaximumIterationStopper


def reports_its_config(config):
    tune.report({"value": config})


def test_every_domain_draws_within_its_bounds(fit):
    space = {
        "uniform": tune.uniform(1, 2), "quniform": tune.quniform(0, 10, 2.5), "loguniform": tune.loguniform(1e-4, 1e-2),
        "qloguniform": tune.qloguniform(1, 100, 5), "randn": tune.randn(), "qrandn": tune.qrandn(10, 2, 0.5),
        "randint": tune.randint(0, 3), "qrandint": tune.qrandint(0, 12, 3), "lograndint": tune.lograndint(1, 100),
        "qlograndint": tune.qlograndint(4, 64, 4), "choice": tune.choice(["a", "b"]), "constant": [1, "two"],
        "nested": {"deep": tune.uniform(5, 6), "list": [tune.randint(0, 2), 7]},
        "of": tune.sample_from(lambda spec: spec.config.randint + 100), "of_dict": tune.sample_from(lambda c: c["randint"]),
        "of_nothing": tune.sample_from(lambda: 7),
    }
    for result in fit(reports_its_config, param_space=space, num_samples=10):
        config = result.config
        assert 1 <= config["uniform"] <= 2 and config["quniform"] % 2.5 == 0 and 1e-4 <= config["loguniform"] <= 1e-2
        assert config["qloguniform"] % 5 == 0 and config["qrandn"] % 0.5 == 0 and config["randint"] in (0, 1, 2)
        assert config["qrandint"] in (0, 3, 6, 9, 12) and 1 <= config["lograndint"] < 100
        assert config["qlograndint"] % 4 == 0 and config["choice"] in ("a", "b") and config["constant"] == [1, "two"]
        assert 5 <= config["nested"]["deep"] <= 6 and config["nested"]["list"][1] == 7
        assert config["of"] == config["randint"] + 100 and config["of_dict"] == config["randint"]
        assert config["of_nothing"] == 7


def test_domains_draw_samples_in_any_program():
    for _ in range(100):
        assert 1 <= tune.uniform(1, 2).sample() <= 2 and tune.randint(0, 3).sample() in (0, 1, 2)
        assert tune.qrandint(0, 12, 3).sample() % 3 == 0 and 1e-4 <= tune.loguniform(1e-4, 1).sample() <= 1
        assert tune.choice([1, 2]).sample() in (1, 2)
    assert len(tune.randn().sample(size=3)) == 3
    assert tune.uniform(0, 1).sample(random_state=3) == tune.uniform(0, 1).sample(random_state=3)
    assert 0 <= tune.uniform(0, 1).sample({"lr": 1}) <= 1 and len(tune.randint(0, 3).sample(None, 4)) == 4
    double = tune.sample_from(lambda spec: 2 * spec.config.lr)
    assert double.sample({"lr": 3}) == 6 and double.sample([{"lr": 1}, {"lr": 2}], size=2) == [2, 4]
    assert tune.sample_from(lambda: 7).sample() == 7


def test_domains_draw_samples_of_seeds_and_generators():
    numpy = pytest.importorskip("numpy")
    for make in (random.Random, numpy.random.default_rng, numpy.random.RandomState, numpy.int64):
        for domain in (tune.randint(0, 1 << 40), tune.randn(), tune.choice(["a", {"b": 1}]), tune.qlograndint(1, 99, 3)):
            first = domain.sample(size=5, random_state=make(3))
            assert first == domain.sample(size=5, random_state=make(3))
            assert all(type(value) in (int, float, str, dict) for value in first)


def trains_from_checkpoints(config):
    step, total = 0, 0.0
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as directory, open(os.path.join(directory, "state"), encoding="utf-8") as file:
            step, total = map(float, file.read().split())
    while step < 30:
        step += 1
        total += config["rate"]
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "state"), "w", encoding="utf-8") as file:
                file.write(f"{step} {total}")
            tune.report({"score": total}, checkpoint=tune.Checkpoint.from_directory(directory))


def test_population_based_training_exploits(fit):
    scheduler = PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=5,
                                        hyperparam_mutations={"rate": tune.uniform(0, 1)}, synch=True)
    results = fit(trains_from_checkpoints, param_space={"rate": tune.uniform(0, 1)}, num_samples=4, scheduler=scheduler,
                  metric="score", mode="max", checkpoint_config=tune.CheckpointConfig(num_to_keep=2))
    assert results.num_errors == 0 and len(results) == 4
    with open(os.path.join(results.experiment_path, "pbt_global.txt"), encoding="utf-8") as file:
        assert len(file.read().splitlines()) >= 3
    assert all(result.metrics["training_iteration"] == 30 for result in results)


def test_mutations_may_be_lists_functions_and_nested(fit):
    scheduler = PopulationBasedTraining(
        time_attr="training_iteration", perturbation_interval=5, synch=True, resample_probability=1.0,
        hyperparam_mutations={"rate": lambda: 0.5, "kind": ["a", "b"], "inner": {"x": tune.uniform(0, 1)}},
        custom_explore_fn=lambda config: {**config, "explored": True})
    results = fit(trains_from_checkpoints, num_samples=4, scheduler=scheduler, metric="score", mode="max",
                  param_space={"rate": tune.uniform(0, 1), "kind": "a", "inner": {"x": 0.5}})
    assert results.num_errors == 0
    explored = [result.config for result in results if result.config.get("explored")]
    assert explored and all(config["rate"] == 0.5 for config in explored)


def test_bounds_of_pb2_are_pairs_and_may_be_nested(fit):
    def trains(config):
        for _ in range(6):
            tune.report({"score": config["net"]["lr"]}, checkpoint=lambda folder: pathlib.Path(folder, "state").touch())

    scheduler = PB2(time_attr="training_iteration", perturbation_interval=2, synch=True,
                    hyperparam_bounds={"net": {"lr": [0.1, 0.9]}})
    results = fit(trains, param_space={"net": {"lr": tune.uniform(0.1, 0.9)}}, num_samples=4, scheduler=scheduler,
                  metric="score", mode="max")
    assert results.num_errors == 0
    values = {value for result in results for value in result.column("score")}
    assert len(values) > 4 and all(0.1 <= value <= 0.9 for value in values)
    for bounds in ([0.1], [0.1, 0.5, 0.9]):
        with pytest.raises(ValueError, match="PB2: hyperparam_bounds of 'net/lr' are .*the least and the greatest"):
            PB2(hyperparam_bounds={"net": {"lr": bounds}})


def test_a_nested_mutation_may_be_of_a_parameter_called_type(fit):
    scheduler = PopulationBasedTraining(
        time_attr="training_iteration", perturbation_interval=5, synch=True, resample_probability=1.0,
        hyperparam_mutations={"optimizer": {"type": ["sgd", "adam"]}})
    results = fit(trains_from_checkpoints, num_samples=4, scheduler=scheduler, metric="score", mode="max",
                  param_space={"rate": tune.uniform(0, 1), "optimizer": {"type": "none"}})
    assert results.num_errors == 0
    assert {"sgd", "adam"} & {result.config["optimizer"]["type"] for result in results}


def test_asha_ends_bad_trials_early(fit):
    def trains(config):
        for step in range(1, 28):
            tune.report({"loss": config["x"] / step})

    results = fit(trains, param_space={"x": tune.grid_search(list(range(1, 10)))}, metric="loss", mode="min",
                  scheduler=ASHAScheduler(max_t=27, grace_period=1, reduction_factor=3), max_concurrent_trials=1)
    assert results.num_errors == 0
    assert any(result.status == "STOPPED" for result in results)
    assert results.get_best_result().config["x"] == 1


def test_stoppers(fit):
    def trains(config):
        for step in range(100):
            tune.report({"step": step})

    assert fit(trains, name="threshold", stop={"step": 4})[0].metrics["step"] == 4
    assert fit(trains, name="stopper", stop=MaximumIterationStopper(3))[0].metrics["training_iteration"] == 3
    assert fit(trains, name="function", stop=lambda trial_id, result: result["step"] >= 6)[0].metrics["step"] == 6
    both = CombinedStopper(MaximumIterationStopper(50), FunctionStopper(lambda trial_id, result: result["step"] >= 2))
    assert fit(trains, name="both", stop=both)[0].metrics["step"] == 2

    class AfterTwo(tune.Stopper):
        def __init__(self):
            self.count = 0

        def __call__(self, trial_id, result):
            self.count += 1
            return self.count >= 2

    stopper = AfterTwo()
    assert fit(trains, name="state", stop=stopper)[0].metrics["step"] == 1
    assert stopper.count == 2


class Records(tune.Callback):
    def __init__(self):
        self.hooks = []
        self.trials = {}

    def setup(self, **info):
        self.hooks.append("setup")

    def on_trial_start(self, iteration, trials, trial, **info):
        self.trials[trial] = 0
        self.hooks.append("start")

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.trials[trial] += 1
        result["added"] = len(trials)

    def on_checkpoint(self, iteration, trials, trial, checkpoint, **info):
        assert os.path.isdir(checkpoint.path)
        self.hooks.append("checkpoint")

    def on_trial_complete(self, iteration, trials, trial, **info):
        self.hooks.append("complete")

    def on_experiment_end(self, trials, **info):
        self.hooks.append("end")


def test_callbacks_see_one_object_for_each_trial_and_change_results(fit):
    records = Records()
    results = fit(trains_from_checkpoints, param_space={"rate": tune.grid_search([1, 2])}, callbacks=[records],
                  checkpoint_config=tune.CheckpointConfig(num_to_keep=1))
    assert results.num_errors == 0
    assert list(records.trials.values()) == [30, 30]
    assert records.hooks[0] == "setup" and records.hooks[-1] == "end"
    assert records.hooks.count("start") == records.hooks.count("complete") == 2
    assert results[0].metrics["added"] in (1, 2)


def test_a_callback_changes_a_result_within_a_result(fit):
    class Adds(tune.Callback):
        def on_trial_result(self, iteration, trials, trial, result, **info):
            result["eval"]["double"] = 2 * result["eval"]["loss"]

    results = fit(lambda config: tune.report({"eval": {"loss": 3, "bad": math.nan}}), callbacks=[Adds()])
    assert results[0].metrics["eval"]["double"] == 6


def test_results_as_data_frames_and_the_best(fit):
    def trains(config):
        for step in range(3):
            tune.report({"loss": abs(config["x"] - 1) + step, "eval": {"accuracy": step / 2}})

    results = fit(trains, param_space={"x": tune.grid_search([0, 1, 3])}, metric="loss", mode="min")
    assert results.get_best_result().config == {"x": 1}
    assert results.get_best_result("eval/accuracy", "max", scope="max").metrics["eval"]["accuracy"] == 1.0
    frame = results[0].metrics_dataframe
    assert list(frame["eval/accuracy"]) == [0, 0.5, 1] and len(frame) == 3
    table = results.get_dataframe()
    assert list(table["config/x"]) == [0, 1, 3] and list(table["loss"]) == [3, 2, 4]
    assert list(results.get_dataframe(filter_metric="loss", filter_mode="min")["loss"]) == [1, 0, 2]
    assert list(results.get_dataframe(filter_metric="loss")["loss"]) == [3, 2, 4]  # without a mode the last ones
    with pytest.raises(ValueError, match="mode is 'lowest'; it must be \"min\" or \"max\""):
        results.get_dataframe(filter_metric="loss", filter_mode="lowest")
    assert "ResultGrid" in repr(results) and "loss" in repr(results[0])
    with pytest.raises(cadre.NotFound):
        results.get_best_result("no_such_metric", "min")


def test_nan_is_never_the_best(fit):
    def trains(config):
        for score in (math.nan, 0.5, None, 0.75, math.nan):
            tune.report({"score": score}, checkpoint=lambda folder: pathlib.Path(folder, "score").write_text(str(score)))

    results = fit(trains, metric="score", mode="max")
    for mode, best in (("min", 0.5), ("max", 0.75)):
        assert list(results.get_dataframe(filter_metric="score", filter_mode=mode)["score"]) == [best]
        checkpoint = results[0].get_best_checkpoint("score", mode)
        assert pathlib.Path(checkpoint.path, "score").read_text() == str(best)
    assert tune.ExperimentAnalysis(results.experiment_path).best_checkpoint == results[0].get_best_checkpoint("score", "max")
    with pytest.raises(ValueError, match="mode is 'lowest'"):
        results[0].get_best_checkpoint("score", "lowest")


def test_a_run_of_the_older_form_keeps_the_lowest_scores(tmp_path):
    def trains(config):
        for loss in (3, 1, 2, 4):
            tune.report({"loss": loss}, checkpoint=lambda folder: pathlib.Path(folder, "loss").write_text(str(loss)))

    analysis = tune.run(trains, metric="loss", mode="min", storage_path=str(tmp_path), name="run", verbose=0,
                        keep_checkpoints_num=2, checkpoint_score_attr="min-loss")
    kept = {metrics["loss"] for _, metrics in analysis.trials[0].best_checkpoints}
    assert {1, 2} <= kept and 3 not in kept


def test_a_run_of_the_older_form_finds_its_scheduler_by_its_name(tmp_path):
    analysis = tune.run(reports_its_config, name="run", metric="value/x", mode="min", storage_path=str(tmp_path),
                        config={"x": 1}, verbose=0, scheduler="async_hyperband")
    assert analysis._grid._results.options["tune_config"]["scheduler"]["type"] == "ASHAScheduler"
    with pytest.raises(ValueError, match="there is no scheduler 'fastest'"):
        tune.run(reports_its_config, scheduler="fastest")


def test_a_column_has_the_values_of_a_metric_or_a_parameter_over_the_results(fit):
    def trains(config):
        for step in range(3):
            tune.report({"loss": step, "eval": {"accuracy": step / 2}} if step else {"loss": None, "word": "first"})

    result = fit(trains, param_space={"x": tune.grid_search([4]), "model": {"width": 8}})[0]
    assert math.isnan(result.column("loss")[0]) and result.column("loss")[1:] == [1, 2]
    assert result.column("eval/accuracy")[1:] == [0.5, 1]
    assert result.column("word")[0] == "first" and math.isnan(result.column("word")[1])
    assert result.column("config/x") == [4, 4, 4] and result.column("config/model/width") == [8, 8, 8]
    with pytest.raises(cadre.NotFound, match="no result of trial 00000 has a column 'los'; the last one has: loss, "):
        result.column("los")
    with pytest.raises(cadre.NotFound, match="config/x"):
        result.column("config/y")


def test_a_second_run_of_one_name_moves_the_first_aside(fit, tmp_path, capfd):
    for _ in range(3):
        assert fit(reports_its_config, param_space={"x": 1}).num_errors == 0
    assert len(list(tmp_path.glob("experiment*"))) == 3
    assert capfd.readouterr().err.count("the experiment that was called experiment is") == 2


def test_an_experiment_goes_on_with_other_options(fit, tmp_path):
    def adds(config):
        checkpoint = tune.get_checkpoint()
        total = 0
        if checkpoint:
            with checkpoint.as_directory() as folder:
                total = json.loads(pathlib.Path(folder, "total").read_text())
        while True:
            total += config["x"]
            tune.report({"total": total}, checkpoint=lambda folder: pathlib.Path(folder, "total").write_text(json.dumps(total)))

    fit(adds, param_space={"x": tune.uniform(1, 2)}, num_samples=2, stop={"training_iteration": 3}, metric="total", mode="max")
    longer = tune.Extension(num_samples=3, stop=lambda trial_id, result: result["total"] >= 9, param_space={"x": tune.uniform(5, 6)},
                            scheduler=ASHAScheduler(max_t=50, grace_period=50))
    extended = tune.Tuner.restore(str(tmp_path / "experiment"), extend=longer).fit()
    totals = [result.metrics_dataframe["total"] for result in extended]
    assert all(total.iloc[-1] >= 9 > total.iloc[-2] for total in totals)
    assert extended[2].config["x"] >= 5 > extended[1].config["x"]
    # A later restore has the other stop, which is a function of the extension's.
    again = tune.Tuner.restore(str(tmp_path / "experiment"), extend=tune.Extension(num_samples=4)).fit()
    assert again[3].metrics["total"] >= 9
    with pytest.raises(ValueError, match="num_samples is 2, and the experiment has 4 samples already"):
        tune.Tuner.restore(str(tmp_path / "experiment"), extend=tune.Extension(num_samples=2)).fit()


def test_the_default_of_verbose_is_rays_none_too(fit, capfd):
    assert tune.RunConfig(verbose=None) == tune.RunConfig() and train.RunConfig(verbose=None) == train.RunConfig()
    assert len(fit(reports_its_config, verbose=None)) == 1
    assert "1 TERMINATED" in capfd.readouterr().out


def test_bad_options_are_named_before_anything_runs(fit, tmp_path):
    with pytest.raises(ValueError, match="num_samples"):
        fit(reports_its_config, num_samples=0)
    with pytest.raises(cadre.InvalidArgument, match="grace_period"):
        fit(reports_its_config, metric="x", mode="min", scheduler=ASHAScheduler(max_t=3, grace_period=5))
    with pytest.raises(ValueError, match="mode"):
        fit(reports_its_config, metric="x", mode="best")
    with pytest.raises(TypeError, match="scheduler is 'pbt'; it must be a scheduler"):
        fit(reports_its_config, scheduler="pbt")
    with pytest.raises(TypeError, match="search_alg is 'random'; it must be a searcher"):
        fit(reports_its_config, search_alg="random")
    with pytest.raises(TypeError, match="scheduler is <class .*AsyncHyperBandScheduler'>; it must be a scheduler"):
        fit(reports_its_config, scheduler=ASHAScheduler)
    with pytest.raises(TypeError, match="search_alg is <class .*TPE'>; it must be a searcher"):
        fit(reports_its_config, search_alg=tune.search.TPE)
    with pytest.raises(ValueError, match="stop: 5"):
        fit(reports_its_config, stop=5)
    with pytest.raises(TypeError, match="in a config cannot be pickled"):
        fit(reports_its_config, param_space={"x": threading.Lock()})
    with pytest.raises(ValueError, match="two keys of {1: 'a', '1': 'b'} in a config are the text '1'"):
        fit(reports_its_config, param_space={"x": {1: "a", "1": "b"}})
    with pytest.raises(ValueError, match="cpus"):
        fit(tune.with_resources(reports_its_config, {"cpu": 50}))
    with pytest.raises(TypeError, match="does not derive"):
        fit(reports_its_config, callbacks=[object()])
    assert not list(tmp_path.iterdir())


def test_objects_travel_by_reference(fit):
    reference = cadre.put({"pixels": list(range(1000))})
    assert cadre.get(reference)["pixels"][-1] == 999 and cadre.get([reference])[0] == cadre.get(reference)

    def trains(config):
        tune.report({"sum": sum(cadre.get(config["data"])["pixels"])})

    assert fit(trains, param_space={"data": reference})[0].metrics["sum"] == sum(range(1000))


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def __repr__(self):
        return f"Scale({self.factor})"


def test_objects_of_any_class_are_values_of_configs(fit):
    def trains(config):
        tune.report({"y": config["scale"](config["nested"]["function"](1)), "sampled": config["sampled"].factor})

    space = {"scale": tune.grid_search([Scale(2), Scale(3)]), "nested": {"function": lambda x: x + 10},
             "sampled": tune.sample_from(lambda spec: Scale(spec.config.scale.factor * 100))}
    results = fit(trains, param_space=space)
    assert [result.metrics["y"] for result in results] == [22, 33], results.errors
    assert [result.metrics["sampled"] for result in results] == [200, 300]
    assert [repr(result.config["scale"]) for result in results] == ["Scale(2)", "Scale(3)"]
    best = results[1]
    del results  # a program may keep one result only
    assert best.config["scale"].load().factor == 3
    assert pathlib.Path(best.path).name == "00001_sampled=Scale_300,scale=Scale_3"
    assert not hasattr(best.config["scale"], "factor"), "results unpickle nothing"


def test_results_can_be_pickled(fit, tmp_path):
    def trains(config):
        for step in range(3):
            tune.report({"loss": config["x"] + step})
        if config["x"] == 5:
            raise ValueError("it is 5")

    grid = fit(trains, param_space={"x": tune.grid_search([1, 5]), "scale": Scale(2)}, metric="loss", mode="min")
    copied = pickle.loads(pickle.dumps(grid))
    assert copied.get_best_result().config["x"] == 1 and [copied.num_terminated, copied.num_errors] == [1, 1]
    assert copied[1].column("loss") == [5, 6, 7] and not copied.interrupted
    failed = pickle.loads(pickle.dumps(copied[1]))
    assert failed.metrics == grid[1].metrics and failed.path == grid[1].path and repr(failed.config["scale"]) == "Scale(2)"
    assert type(failed.error) is type(grid[1].error) and "it is 5" in str(failed.error)
    shutil.rmtree(tmp_path / "experiment")
    again = pickle.loads(pickle.dumps(grid[1]))
    assert again.metrics["loss"] == 7
    with pytest.raises(cadre.NotFound, match="experiment"):
        again.column("loss")


class Mode(str, enum.Enum):
    FAST = "fast"
    SLOW = "slow"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def test_members_of_enums_reach_trials_as_members_and_are_plain_in_results(fit):
    def trains(config):
        mode, level = config["mode"], config["nested"]["level"]
        tune.report({"seen": [repr(mode), repr(level)], "same": mode is Mode.SLOW})

    space = {"mode": tune.grid_search(list(Mode)), "nested": {"level": Level.HIGH}}
    fast, slow = fit(trains, param_space=space)
    assert slow.metrics["seen"] == [repr(Mode.SLOW), repr(Level.HIGH)] and slow.metrics["same"], slow.error
    assert [fast.metrics["same"], fast.config["mode"], slow.config] == [
        False, Mode.FAST, {"mode": "slow", "nested": {"level": 2}}]
    assert type(slow.config["mode"]) is str and type(slow.config["nested"]["level"]) is int
    last = json.loads((pathlib.Path(slow.path) / "result.json").read_text().splitlines()[-1])
    params = json.loads((pathlib.Path(slow.path) / "params.json").read_text())
    assert last["config"] == params == {"mode": "slow", "nested": {"level": 2}}
    first = tune.search.BasicVariantGenerator(points_to_evaluate=[{"mode": Mode.SLOW}])
    space = {"mode": tune.choice(list(Mode)), "nested": {"level": Level.LOW}}
    assert fit(trains, name="points", param_space=space, search_alg=first)[0].metrics["same"]


def test_a_time_budget_may_be_a_timedelta(fit, tmp_path):
    results = fit(reports_its_config, time_budget_s=datetime.timedelta(hours=1))
    longer = tune.Extension(time_budget_s=datetime.timedelta(hours=2))
    more = tune.Tuner.restore(tmp_path / "experiment", extend=longer).fit()
    assert [grid._results.options["tune_config"]["time_budget"] for grid in (results, more)] == [3600, 7200]


Size = collections.namedtuple("Size", ["width", "height"])


def test_tuples_and_keys_of_dictionaries_reach_trials_as_they_are(fit):
    names = {1: "one", (2, 3): {Level.LOW: [(4,)]}, None: (), "text": Size(5, 6)}

    def trains(config):
        tune.report({"same": [config["pair"] == (1, 2), config["names"] == names, type(config["names"]["text"]) is Size,
                              list(map(type, config["names"])) == list(map(type, names))],
                     "drawn": config["drawn"] in [(1, "a"), (2, "b")], "made": config["made"] == ((1, 2), {3: 4}),
                     "point": list(config["drawn"])})

    space = {"pair": (1, 2), "names": names, "drawn": tune.choice([(1, "a"), (2, "b")]),
             "made": tune.sample_from(lambda spec: (spec.config.pair, {3: 4}))}
    first = tune.search.BasicVariantGenerator(points_to_evaluate=[{"drawn": (2, "b")}])
    result = fit(trains, param_space=space, search_alg=first)[0]
    assert result.error is None and result.metrics["same"] == [True] * 4
    assert [result.metrics[name] for name in ("drawn", "made", "point")] == [True, True, [2, "b"]]
    assert result.config == {"pair": (1, 2), "names": {1: "one", (2, 3): {1: [(4,)]}, None: (), "text": [5, 6]},
                             "drawn": (2, "b"), "made": ((1, 2), {3: 4})}


def test_tuples_are_mutated_as_they_are(fit):
    def trains(config):
        for step in range(8):
            tune.report({"score": config["x"], "is_tuple": isinstance(config["pair"], tuple)},
                        checkpoint=lambda directory: pathlib.Path(directory, "x").touch())

    scheduler = PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=2, synch=True,
                                        hyperparam_mutations={"pair": [(1, 2), (3, 4)]})
    results = fit(trains, metric="score", mode="max", scheduler=scheduler,
                  param_space={"x": tune.grid_search([1, 2]), "pair": tune.choice([(1, 2), (3, 4)])})
    assert all(result.error is None and result.metrics["is_tuple"] for result in results)
    assert all(result.config["pair"] in [(1, 2), (3, 4)] for result in results)
    assert pathlib.Path(results.experiment_path, "pbt_global.txt").read_text()  # a trial went on with another config


def test_scalars_of_numpy_are_values_of_configs(fit):
    numpy = pytest.importorskip("numpy")

    def trains(config):
        tune.report({"texts": [repr(config[name]) for name in ("number", "day", "moment")]})

    values = {"number": numpy.float32(2), "day": numpy.datetime64("2026-02-01"),
              "moment": numpy.datetime64("2026-02-01T12:00", "ns")}
    result = fit(trains, param_space=values)[0]
    assert result.metrics["texts"] == ["2.0", repr(values["day"]), repr(values["moment"])]
    assert result.config["number"] == 2 and result.config["day"].load() == values["day"]


def test_searchers_of_cadres_learn(fit):
    def trains(config):
        tune.report({"loss": (config["x"] - 0.3) ** 2})

    best = {}
    for searcher in (tune.search.TPE(), tune.search.GaussianProcess(), tune.search.CMAES(), tune.search.QuasiRandom(),
                     tune.search.ConcurrencyLimiter(tune.search.TPE(), max_concurrent=1),
                     tune.search.BasicVariantGenerator(points_to_evaluate=[{"x": 0.3}])):
        name = type(searcher).__name__
        results = fit(trains, name=name, param_space={"x": tune.uniform(0, 1)}, search_alg=searcher, num_samples=25,
                      metric="loss", mode="min")
        best[name] = results.get_best_result().metrics["loss"]
    assert all(loss < 0.01 for loss in best.values()), best
    assert best["BasicVariantGenerator"] == 0 and math.isfinite(best["GaussianProcess"])


def test_output_goes_where_sys_stdout_goes(fit, capsys):
    fit(lambda config: tune.report({"score": 1}), verbose=1)
    shown = capsys.readouterr().out
    assert "Running experiment experiment: 1 trial" in shown
    assert "TERMINATED" in shown
    fit(lambda config: 1 / 0, verbose=0, name="failing")
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_callback_that_raises_is_switched_off_and_no_other(fit, capfd):
    class Fails(tune.Callback):
        def on_trial_result(self, iteration, trials, trial, result, **info):
            raise ValueError("in a callback")

    class Counts(tune.Callback):
        count = 0

        def on_trial_result(self, iteration, trials, trial, result, **info):
            self.count += 1

    counts = Counts()
    results = fit(lambda config: [tune.report({"x": step}) for step in range(3)] and None, callbacks=[Fails(), counts])
    assert results.num_errors == 0 and counts.count == 3
    said = capfd.readouterr().err
    assert said.count("the callback Fails failed in on_trial_result, and is switched off") == 1 and "in a callback" in said
