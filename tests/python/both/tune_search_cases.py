"""Spaces, searches, schedulers and analyses: what programs for Ray Tune can observe."""

import os

from ray import tune
from ray.tune.schedulers import ASHAScheduler, HyperBandScheduler, PopulationBasedTraining
from ray.tune.search import BasicVariantGenerator
from ray.tune.stopper import ExperimentPlateauStopper
from tune_cases import CheckpointConfig, Counts, fit, reports, saves, step_of

# ---- Spaces


def case_integers_of_logarithmic_domains(folder):
    space = {"a": tune.lograndint(1, 100), "b": tune.qlograndint(4, 64, 4)}
    results = fit(reports, folder, param_space=space, num_samples=8)
    return [all(isinstance(result.config["a"], int) and 1 <= result.config["a"] < 100 for result in results),
            all(result.config["b"] % 4 == 0 and 4 <= result.config["b"] <= 64 for result in results)]


def case_quantized_normal_numbers(folder):
    results = fit(reports, folder, param_space={"n": tune.qrandn(10, 2, 0.5), "m": tune.randn(0, 1)}, num_samples=6)
    return [all(result.config["n"] * 2 == round(result.config["n"] * 2) for result in results),
            all(isinstance(result.config["m"], float) for result in results)]


def case_functions_of_nested_entries(folder):
    space = {"net": {"kind": tune.grid_search(["small", "large"])},
             "width": tune.sample_from(lambda spec: 64 if spec.config.net.kind == "large" else 8)}
    return [result.config["width"] for result in fit(reports, folder, param_space=space)]


def case_functions_of_functions(folder):
    space = {"a": tune.sample_from(lambda spec: 2), "b": tune.sample_from(lambda spec: spec.config.a * 5)}
    return fit(reports, folder, param_space=space)[0].config


def case_functions_in_nested_entries(folder):
    space = {"x": 3, "net": {"width": tune.sample_from(lambda spec: spec.config.x + 1), "deep": {"d": tune.choice([9])}}}
    return fit(reports, folder, param_space=space)[0].config


def case_grids_of_lists_and_dictionaries(folder):
    space = {"layers": tune.grid_search([[8], [8, 16]]), "net": tune.grid_search([{"a": 1}, {"b": 2}])}
    return sorted(repr([result.config["layers"], result.config["net"]]) for result in fit(reports, folder, param_space=space))


def case_grids_in_nested_entries(folder):
    space = {"net": {"a": tune.grid_search([1, 2]), "deep": {"b": tune.grid_search([3, 4])}}}
    return sorted([result.config["net"]["a"], result.config["net"]["deep"]["b"]] for result in fit(
        reports, folder, param_space=space))


def case_a_function_as_a_constant(folder):
    def trains(config):
        tune.report({"y": config["f"](3)})

    return fit(trains, folder, param_space={"f": lambda x: x * 2})[0].metrics["y"]


def case_several_samples_of_domains(folder):
    return [len(tune.randint(0, 5).sample(size=3)), len(tune.choice("abc").sample(size=2)), tune.quniform(1, 2, 0.5).sample() in (1, 1.5, 2),
            tune.qrandint(3, 3, 3).sample()]


def case_points_to_evaluate(folder):
    search = BasicVariantGenerator(points_to_evaluate=[{"x": 5}, {"x": 7}], max_concurrent=1)
    results = fit(reports, folder, param_space={"x": tune.randint(0, 9)}, num_samples=3, search_alg=search)
    return [[result.config["x"] for result in results][:2], len(results), results[2].config["x"] < 9]


def case_the_same_random_state_draws_the_same(folder):
    drawn = [[result.config["x"] for result in fit(
        reports, folder, name=name, param_space={"x": tune.uniform(0, 1)}, num_samples=3,
        search_alg=BasicVariantGenerator(random_state=state))] for name, state in (("a", 7), ("b", 7), ("c", 8))]
    return [drawn[0] == drawn[1], drawn[0] == drawn[2]]


def case_a_constant_grid_repeats_its_draws(folder):
    search = BasicVariantGenerator(constant_grid_search=True)
    results = fit(reports, folder, param_space={"x": tune.grid_search([1, 2, 3]), "u": tune.uniform(0, 1)}, num_samples=2,
                  search_alg=search)
    return len({result.config["u"] for result in results})


# ---- Nested metrics


def nested(config):
    for step in range(1, 6):
        with_state = {"eval": {"accuracy": step * config["x"] / 10}, "step": step}
        tune.report(with_state)


def case_the_best_by_a_nested_metric(folder):
    results = fit(nested, folder, param_space={"x": tune.grid_search([1, 3, 2])}, metric="eval/accuracy", mode="max")
    return [results.get_best_result().config["x"], results.get_best_result("eval/accuracy", "min").config["x"],
            results.get_best_result().metrics["eval"]]


def case_a_stop_at_a_nested_metric(folder):
    return fit(nested, folder, param_space={"x": 2}, stop={"eval/accuracy": 0.6})[0].metrics["step"]


def case_asha_by_a_nested_metric(folder):
    results = fit(nested, folder, param_space={"x": tune.grid_search([3, 2, 1])}, max_concurrent_trials=1,
                  scheduler=ASHAScheduler(metric="eval/accuracy", mode="max", grace_period=1, max_t=5, reduction_factor=2))
    return [result.metrics["step"] for result in results]


# ---- Metrics that are missing


def case_a_stop_at_a_metric_that_is_never_reported(folder):
    results = fit(reports, folder, stop={"never": 1})
    return [results.num_errors, results[0].metrics["training_iteration"]]


# ---- Schedulers, with one trial at a time


def constant(config):
    for step in range(1, 10):
        tune.report({"loss": config["x"], "step": step})


def iterations_with(scheduler, values, folder, trainable=constant, **others):
    results = fit(trainable, folder, param_space={"x": tune.grid_search(values)}, max_concurrent_trials=1, scheduler=scheduler,
                  **others)
    return [result.metrics["training_iteration"] for result in results]


def case_asha_with_a_factor_of_two(folder):
    scheduler = ASHAScheduler(metric="loss", mode="min", max_t=8, grace_period=2, reduction_factor=2)
    return iterations_with(scheduler, [4, 3, 5, 2, 6, 1], folder)


def case_asha_for_a_maximum(folder):
    scheduler = ASHAScheduler(max_t=9, grace_period=1, reduction_factor=3)
    return iterations_with(scheduler, [1, 5, 3, 4, 9, 2], folder, metric="loss", mode="max")


def case_asha_with_equal_trials(folder):
    scheduler = ASHAScheduler(metric="loss", mode="min", max_t=8, grace_period=1, reduction_factor=2)
    return iterations_with(scheduler, [1, 1, 1, 1], folder)


def case_asha_by_a_time_attribute_of_its_own(folder):
    def trains(config):
        for step in range(1, 10):
            tune.report({"loss": config["x"], "frames": step * 100})

    scheduler = ASHAScheduler(time_attr="frames", metric="loss", mode="min", max_t=600, grace_period=100, reduction_factor=2)
    return iterations_with(scheduler, [2, 1, 3, 4], folder, trains)


def case_hyperband_of_a_class(folder):
    scheduler = HyperBandScheduler(metric="count", mode="max", max_t=9, reduction_factor=3)
    results = fit(Counts, folder, param_space={"start": tune.grid_search([1, 9, 5, 7, 3])}, scheduler=scheduler,
                  checkpoint_config=CheckpointConfig(checkpoint_frequency=1), max_concurrent_trials=1)
    best = results.get_best_result("count", "max")
    return [best.config["start"], best.metrics["training_iteration"], results.num_errors]


def case_a_scheduler_without_a_metric(folder):
    fit(reports, folder, scheduler=ASHAScheduler())


def case_a_synchronous_population_of_a_class(folder):
    class Adds(Counts):
        def step(self):
            self.count += self.config["rate"]
            return {"count": self.count}

    scheduler = PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=2, metric="count", mode="max",
                                        hyperparam_mutations={"rate": [1, 2, 3, 4]}, synch=True, log_config=True)
    results = fit(Adds, folder, param_space={"rate": tune.grid_search([1, 4])}, scheduler=scheduler,
                  stop={"training_iteration": 4})
    return [[result.metrics["training_iteration"] for result in results], results.num_errors,
            max(result.metrics["count"] for result in results) >= 16,
            any(name.startswith("pbt_policy_") for name in os.listdir(results.experiment_path))]


def case_the_experiment_has_reached_a_plateau(folder):
    results = fit(constant, folder, param_space={"x": tune.grid_search([1, 1, 1, 1, 1, 1])}, max_concurrent_trials=1,
                  stop=ExperimentPlateauStopper("loss", std=0.001, top=3, mode="min", patience=0))
    return [len(results) <= 6, results.num_errors, results[0].metrics["training_iteration"] < 9]


# ---- Analyses


def falls(config):
    for step in range(1, 7):
        tune.report({"loss": config["x"] * abs(step - 3) + config["x"], "step": step})


def analysis_of(folder, trainable=falls, **others):
    return tune.run(trainable, config={"x": tune.grid_search([2, 1, 3])}, metric="loss", mode="min", storage_path=folder,
                    name="run", verbose=0, **others)


def case_the_best_trial_of_an_analysis_by_scope(folder):
    analysis = analysis_of(folder)
    return [analysis.get_best_trial("loss", "min", scope).config["x"] for scope in
            ("last", "avg", "last-5-avg", "last-10-avg", "all")] + [analysis.get_best_config("loss", "max", scope="all")]


def case_data_frames_of_an_analysis(folder):
    analysis = analysis_of(folder)
    return [sorted(analysis.dataframe()["step"]), sorted(analysis.dataframe("loss", "min")["step"]),
            sorted(analysis.dataframe("loss", "max")["step"]), sorted(len(frame) for frame in analysis.trial_dataframes.values()),
            sorted(analysis.results_df["loss"])]


def case_configs_and_results_of_an_analysis(folder):
    analysis = analysis_of(folder)
    return [sorted(config["x"] for config in analysis.get_all_configs().values()), len(analysis.results), len(analysis.trials),
            sorted(result["loss"] for result in analysis.results.values()), analysis.best_result["loss"],
            analysis.best_trial.last_result["step"], os.path.isdir(analysis.get_best_logdir("loss", "min"))
            if hasattr(analysis, "get_best_logdir") else True]


def case_checkpoints_of_an_analysis(folder):
    analysis = tune.run(saves, config={"best": tune.grid_search([1, 3])}, metric="score", mode="max", storage_path=folder,
                        name="run", verbose=0)
    trial = analysis.get_best_trial()
    return [step_of(analysis.get_best_checkpoint(trial, "score", "max")), step_of(analysis.get_best_checkpoint(trial)),
            step_of(analysis.get_last_checkpoint(trial)), step_of(analysis.best_checkpoint)]


def case_an_analysis_of_a_directory(folder):
    analysis_of(folder)
    analysis = tune.ExperimentAnalysis(os.path.join(folder, "run"), default_metric="loss", default_mode="max")
    return [analysis.best_config, len(analysis.trials), analysis.stats() is not None if hasattr(analysis, "stats") else True]


def case_filters_of_a_data_frame(folder):
    results = fit(falls, folder, param_space={"x": tune.grid_search([2, 1])})
    lowest, highest = (results.get_dataframe(filter_metric="loss", filter_mode=mode) for mode in ("min", "max"))
    return [list(lowest["step"]), list(lowest["loss"]), list(highest["loss"]), list(lowest["config/x"])]


def case_a_filter_without_a_mode(folder):
    fit(falls, folder, param_space={"x": 1}).get_dataframe(filter_metric="loss")


def case_a_bad_scope(folder):
    results = fit(falls, folder, param_space={"x": tune.grid_search([2, 1])})
    results.get_best_result("loss", "min", scope="median")


def case_slices_of_results(folder):
    results = fit(falls, folder, param_space={"x": tune.grid_search([2, 1, 3])})
    return [results[-1].config["x"], [result.config["x"] for result in results], len(list(results)), bool(results.errors)]
