"""Searchers and schedulers that programs write in Python."""

import math
import pathlib
import random
import textwrap
import time

import pytest

import cadre
from cadre import tune
from cadre.tune.config import stored_options
from cadre.tune.schedulers import FIFOScheduler, TrialScheduler
from cadre.tune.search import BasicVariantGenerator, ConcurrencyLimiter, Searcher


def parabola(config):
    tune.report({"loss": (config["x"] - 3) ** 2})


class Halving(Searcher):
    """Suggests half of the best x so far, and remembers what it was told."""

    def __init__(self, most=100, **arguments):
        super().__init__(**arguments)
        self.most = most
        self.open = {}
        self.best = (math.inf, 16.0)
        self.told = []

    def suggest(self, trial_id):
        if len(self.told) >= self.most:
            return Searcher.FINISHED
        if self.open:
            return None
        self.open[trial_id] = self.best[1] / 2
        return {"x": self.open[trial_id], "by": "halving"}

    def on_trial_result(self, trial_id, result):
        self.told.append((trial_id, result["loss"]))

    def on_trial_complete(self, trial_id, result=None, error=False):
        x = self.open.pop(trial_id)
        if not error:
            self.best = min(self.best, (result[self.metric], x))


def test_a_searcher_suggests_and_hears_of_results(fit):
    searcher = Halving()
    results = fit(parabola, param_space={"constant": 7}, search_alg=searcher, metric="loss", mode="min", num_samples=5)
    assert [result.config["x"] for result in results] == [8, 4, 2, 1, 1]
    assert all(result.config["constant"] == 7 and result.config["by"] == "halving" for result in results)
    assert searcher.told == [("00000", 25), ("00001", 1), ("00002", 1), ("00003", 4), ("00004", 4)], "the last one, too"
    assert results.get_best_result().config["x"] == 4


def test_searchers_and_schedulers_get_nested_metrics_by_their_paths(fit):
    class Reads(Searcher):
        def suggest(self, trial_id):
            return {"x": 1}

        def on_trial_result(self, trial_id, result):
            heard.append(result["eval/loss"])

        def on_trial_complete(self, trial_id, result=None, error=False):
            heard.append(result["eval/loss"])

    class Decides(FIFOScheduler):
        def on_trial_result(self, tune_controller, trial, result):
            heard.append(result["eval/loss"])
            return TrialScheduler.CONTINUE

        def on_trial_complete(self, tune_controller, trial, result):
            heard.append((result["eval/loss"], trial.last_result["eval"]["loss"]))

    heard = []
    searcher, scheduler = Reads("eval/loss", "min"), Decides()
    results = fit(lambda config: tune.report({"eval": {"loss": 3}}), search_alg=searcher, scheduler=scheduler)
    assert results.num_errors == 0 and sorted(heard, key=str) == [(3, 3), 3, 3, 3]


def test_the_metric_may_be_the_searchers(fit):
    results = fit(parabola, search_alg=Halving(metric="loss", mode="min"), num_samples=3)
    assert results.get_best_result().metrics["loss"] == 1


def test_a_searcher_may_have_nothing_more(fit):
    results = fit(parabola, search_alg=Halving(most=3, metric="loss", mode="min"), num_samples=50)
    assert len(results) == 3
    assert results.num_terminated == 3


def test_a_limit_of_trials_holds_for_it(fit):
    class Counting(Searcher):
        running = most = 0

        def suggest(self, trial_id):
            self.running += 1
            self.most = max(self.most, self.running)
            return {"x": 1}

        def on_trial_complete(self, trial_id, result=None, error=False):
            self.running -= 1

    searcher = Counting()
    assert len(fit(parabola, search_alg=ConcurrencyLimiter(searcher, max_concurrent=1), num_samples=4)) == 4
    assert searcher.most == 1


def test_a_limit_of_trials_holds_beside_options_of_the_random_search():
    for searcher, limit in ((BasicVariantGenerator(), 3), (BasicVariantGenerator(max_concurrent=2), 2)):
        options = stored_options({}, tune.TuneConfig(search_alg=searcher, max_concurrent_trials=3), tune.RunConfig())
        assert options["tune_config"]["max_concurrent_trials"] == limit


def test_mistakes_of_a_searcher_are_named(fit):
    class Wrong(Searcher):
        def suggest(self, trial_id):
            return [1]

    with pytest.raises(cadre.CadreError, match=r"Wrong.suggest\(\) returned \[1\], which is no config"):
        fit(parabola, search_alg=Wrong())
    with pytest.raises(ValueError, match="Halving does not search param_space"):
        fit(parabola, param_space={"x": tune.uniform(0, 1)}, search_alg=Halving(metric="loss", mode="min"))

    class Raising(Searcher):
        def suggest(self, trial_id):
            raise RuntimeError("no idea")

    with pytest.raises(cadre.CadreError, match="no idea"):
        fit(parabola, search_alg=Raising(), name="raising")


CONTINUED = """
    import os, time
    from cadre import tune
    from cadre.tune.search import Searcher

    class Counting(Searcher):
        def __init__(self):
            super().__init__("loss", "min")
            self.calls, self.sum = [], 0

        def suggest(self, trial_id):
            return {"x": len(self.calls) + self.sum}

        def on_trial_complete(self, trial_id, result=None, error=False):
            self.calls.append(trial_id)
            self.sum += result["loss"]

    def train(config):
        tune.report({"loss": 10 * config["x"] + 1})
        if config["x"] > 100 and not os.path.exists("../../go_on"):
            time.sleep(1000)

    if __name__ == "__main__":
        tune.Tuner(train, tune_config=tune.TuneConfig(search_alg=Counting(), num_samples=5, max_concurrent_trials=1),
                   run_config=tune.RunConfig(name="counted", storage_path=".", verbose=0)).fit()
"""


def killed_and_continued(programs, text, name, trial):
    """Runs a program until a trial has reported, kills it, and continues its experiment here, with trials that do not wait."""
    process = programs.start(textwrap.dedent(text))
    store = programs.folder / name
    deadline = time.monotonic() + 120
    while not any(path.stat().st_size > 0 for path in store.glob(f"{trial}*/result.json")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.communicate()
    (programs.folder / "go_on").touch()
    return tune.Tuner.restore(str(store)).fit()


def test_a_killed_experiment_goes_on_with_the_searchers_state(programs):
    results = killed_and_continued(programs, CONTINUED, "counted", "00003")
    xs = [result.config["x"] for result in results]
    expected, calls, total = [], 0, 0
    for _ in range(5):
        expected.append(calls + total)
        total += 10 * expected[-1] + 1
        calls += 1
    assert xs == expected


class Remembers(Searcher):
    """Suggests what depends on everything that it was told, in order."""

    def __init__(self):
        super().__init__("loss", "min")
        self.generator = random.Random(1)
        self.events = []

    def suggest(self, trial_id):
        self.events.append(("suggest", trial_id))
        return {"x": len(self.events) * 1000 + self.generator.randrange(1000)}

    def on_trial_result(self, trial_id, result):
        self.events.append(("result", trial_id, result["loss"]))

    def on_trial_complete(self, trial_id, result=None, error=False):
        self.events.append(("end", trial_id, error))


def test_a_restore_at_any_event_changes_nothing():
    numbers = random.Random(3)
    told, mirror = tune._told.ToldSearcher(Remembers()), tune._told.ToldSearcher(Remembers())
    configs, ended = [], {}
    for _ in range(300):
        running = [trial for trial in range(len(configs)) if trial not in ended]
        kind = numbers.choice(["suggest", "add", "result", "end", "restore"])
        if kind == "suggest":  # is asked and not used, because the controller died
            assert told.suggest(len(configs)) == mirror.suggest(len(configs))
        elif kind == "add":
            config = told.suggest(len(configs))
            assert config == mirror.suggest(len(configs))
            for one in (told, mirror):
                one.on_trial_add(len(configs), config)
            configs.append(config)
        elif kind == "result" and running:
            trial = numbers.choice(running)
            for one in (told, mirror):
                one.on_result(trial, {"loss": trial})
        elif kind == "end" and running:
            trial = numbers.choice(running)
            ended[trial] = numbers.random() < 0.2
            for one in (told, mirror):
                one.on_trial_end(trial, ended[trial], {"loss": trial})
        elif kind == "restore":
            state = told.save()
            told = tune._told.ToldSearcher(Remembers())
            for trial, config in enumerate(configs):
                told.on_trial_add(trial, config)
            for trial in sorted(ended):
                told.on_trial_end(trial, ended[trial], {"loss": trial})
            told.load(state)
            assert told._searcher.events == mirror._searcher.events


def test_a_random_searcher_is_warned_about():
    searcher = tune._told.ToldSearcher(type("Random", (Searcher,), {
        "suggest": lambda self, trial_id: {"x": random.random()}})())
    searcher.on_trial_add(0, {"x": 0.5})
    with pytest.warns(UserWarning, match="Override on_trial_add"):
        searcher.on_result(0, {})


class StopsTheLarge(FIFOScheduler):
    def __init__(self):
        self.seen = []

    def on_trial_add(self, tune_controller, trial):
        self.seen.append(("add", trial.trial_id))

    def on_trial_result(self, tune_controller, trial, result):
        assert trial in tune_controller.get_trials()
        return TrialScheduler.STOP if trial.config["x"] > 1 and result["training_iteration"] == 2 else TrialScheduler.CONTINUE

    def on_trial_complete(self, tune_controller, trial, result):
        self.seen.append(("end", trial.trial_id, result["training_iteration"]))


def four_steps(config):
    for step in range(4):
        tune.report({"score": step})


def test_a_scheduler_stops_trials(fit):
    scheduler = StopsTheLarge()
    results = fit(four_steps, param_space={"x": tune.grid_search([0, 1, 2])}, scheduler=scheduler, max_concurrent_trials=1)
    assert [result.metrics["training_iteration"] for result in results] == [4, 4, 2]
    assert scheduler.seen == [("add", "00000"), ("end", "00000", 4), ("add", "00001"), ("end", "00001", 4),
                              ("add", "00002"), ("end", "00002", 2)]


def counted(config):
    checkpoint = tune.get_checkpoint()
    begin = int(pathlib.Path(checkpoint.path, "step").read_text()) if checkpoint else 0
    for step in range(begin + 1, 5):
        tune.report({"step": step}, checkpoint=lambda folder: pathlib.Path(folder, "step").write_text(str(step)))


class TakesTurns(FIFOScheduler):
    """Pauses each trial after each result; the one with the fewest results goes on."""

    def on_trial_result(self, tune_controller, trial, result):
        return TrialScheduler.PAUSE

    def choose_trial_to_run(self, tune_controller):
        return min(tune_controller.get_candidates(), key=lambda trial: trial.last_result.get("step", 0), default=None)


def test_a_scheduler_pauses_and_chooses(fit):
    order = []

    class Order(tune.Callback):
        def on_trial_result(self, iteration, trials, trial, result, **info):
            order.append((trial.trial_id, result["step"]))

    results = fit(counted, param_space={"x": tune.grid_search([0, 1])}, scheduler=TakesTurns(), max_concurrent_trials=1,
                  callbacks=[Order()])
    assert results.num_errors == 0
    assert order == [(trial, step) for step in range(1, 5) for trial in ("00000", "00001")]


class KeepsOne(FIFOScheduler):
    """Pauses trials after their first result. The third one to have one goes on, and the others end."""

    def __init__(self):
        self.paused = []
        self.removed = []

    def on_trial_result(self, tune_controller, trial, result):
        if result["training_iteration"] > 1:
            return TrialScheduler.CONTINUE
        if len(self.paused) < 2:
            self.paused.append(trial)
            return TrialScheduler.PAUSE
        for one in self.paused:
            tune_controller.stop_trial(one)
        return TrialScheduler.CONTINUE

    def on_trial_remove(self, tune_controller, trial):
        self.removed.append(trial.trial_id)


def test_a_scheduler_ends_trials_that_it_has_paused_before(fit):
    scheduler = KeepsOne()
    results = fit(counted, param_space={"x": tune.grid_search([0, 1, 2])}, scheduler=scheduler, max_concurrent_trials=1)
    assert [result.metrics["step"] for result in results] == [1, 1, 4]
    assert scheduler.removed == ["00000", "00001"]


def test_mistakes_of_a_scheduler_are_named(fit):
    class Wrong(FIFOScheduler):
        def on_trial_result(self, tune_controller, trial, result):
            return "later"

    with pytest.raises(cadre.CadreError, match="returned 'later', which is not CONTINUE, PAUSE or STOP"):
        fit(four_steps, scheduler=Wrong())

    class Derived(tune.schedulers.ASHAScheduler):
        def on_trial_result(self, tune_controller, trial, result):
            return TrialScheduler.STOP

    with pytest.raises(TypeError, match="derive from FIFOScheduler or TrialScheduler"):
        fit(four_steps, scheduler=Derived(metric="score", mode="max"))


OPTUNA = """
    import os, time
    from cadre import tune
    from cadre.tune.search.optuna import OptunaSearch

    def train(config):
        tune.report({"loss": (config["x"] - 1) ** 2 + config["model"]["width"] / 100 + (config["kind"] == "b")})
        if int(tune.get_context().get_trial_id()) == 14 and not os.path.exists("../../go_on"):
            time.sleep(1000)

    if __name__ == "__main__":
        space = {"x": tune.uniform(-5, 5), "model": {"width": tune.randint(1, 20)}, "kind": tune.choice(["a", "b"]), "fixed": 3}
        tune.Tuner(train, param_space=space,
                   tune_config=tune.TuneConfig(search_alg=OptunaSearch(seed=1), metric="loss", mode="min", num_samples=30,
                                               max_concurrent_trials=1),
                   run_config=tune.RunConfig(name="study", storage_path=".", verbose=0)).fit()
"""


def test_optuna_searches_and_a_killed_experiment_goes_on_as_it_would_have(programs):
    import optuna

    results = killed_and_continued(programs, OPTUNA, "study", "00014")
    assert len(results) == 30 and results.num_errors == 0
    assert all(set(result.config) == {"x", "model", "kind", "fixed"} for result in results)
    assert results.get_best_result().metrics["loss"] < 1

    # The same study, asked and told without an experiment.
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    space = {"x": optuna.distributions.FloatDistribution(-5, 5), "model/width": optuna.distributions.IntDistribution(1, 19),
             "kind": optuna.distributions.CategoricalDistribution(["a", "b"])}
    for result in list(results)[:15]:
        trial = study.ask(space)
        assert trial.params == {"x": result.config["x"], "model/width": result.config["model"]["width"],
                                "kind": result.config["kind"]}
        study.tell(trial, result.metrics["loss"])


def test_optuna_takes_a_function_as_its_space_and_points_to_evaluate(fit):
    from cadre.tune.search.optuna import OptunaSearch

    def space(trial):
        if trial.suggest_categorical("kind", ["deep", "wide"]) == "deep":
            trial.suggest_int("layers", 2, 5)
        else:
            trial.suggest_float("width", 0, 1)
        return {"constant": 5}

    def train(config):
        assert config["constant"] == 5
        tune.report({"loss": config.get("layers", 0) + config.get("width", 0)})

    searcher = OptunaSearch(space=space, metric="loss", mode="min", seed=3,
                            points_to_evaluate=[{"kind": "deep", "layers": 4}])
    results = fit(train, search_alg=searcher, num_samples=10)
    assert results.num_errors == 0
    assert results[0].config == {"kind": "deep", "layers": 4, "constant": 5}
    assert all(("layers" in result.config) != ("width" in result.config) for result in results)
    assert len(searcher.study.trials) == 10
    assert searcher.study.best_value == results.get_best_result().metrics["loss"]


def test_optuna_learns_from_a_nested_metric_that_is_not_in_each_result(fit):
    from cadre.tune.search.optuna import OptunaSearch

    def train(config):
        tune.report({"eval": {"loss": None}})
        tune.report({"eval": {"loss": config["x"]}})

    searcher = OptunaSearch(seed=1)
    results = fit(train, param_space={"x": tune.uniform(0, 1)}, search_alg=searcher, metric="eval/loss", mode="min",
                  num_samples=3, max_concurrent_trials=1)
    assert results.num_errors == 0
    assert searcher.study.best_value == min(result.config["x"] for result in results)
    assert [trial.intermediate_values for trial in searcher.study.trials] == [{2: one.config["x"]} for one in results]


def test_a_failed_trial_of_optuna_runs_again(fit, tmp_path):
    from cadre.tune.search.optuna import OptunaSearch

    def train(config):
        tune.report({"loss": config["x"]})
        if not pathlib.Path(config["may_go_on"]).exists():
            raise RuntimeError("not yet")
        tune.report({"loss": config["x"]})

    may_go_on = tmp_path / "may_go_on"
    first = fit(train, param_space={"x": tune.uniform(0, 1), "may_go_on": str(may_go_on)}, metric="loss", mode="min",
                search_alg=OptunaSearch(seed=1), num_samples=2, max_concurrent_trials=1)
    assert first.num_errors == 2
    may_go_on.touch()
    again = tune.Tuner.restore(first.experiment_path, resume_errored=True).fit()
    assert again.num_errors == 0 and [result.metrics["training_iteration"] for result in again] == [2, 2]
    assert [result.config for result in again] == [result.config for result in first]


def test_what_optuna_cannot_search_is_named(fit):
    from cadre.tune.search.optuna import OptunaSearch

    for entry, words in ((tune.randn(0, 1), "'x' is randn"), (tune.grid_search([1, 2]), "'x' is a grid search"),
                         (tune.qloguniform(1, 10, 1), "logarithmic and rounded")):
        with pytest.raises(ValueError, match=words):
            fit(parabola, param_space={"x": entry}, search_alg=OptunaSearch(metric="loss", mode="min"))
    with pytest.raises(ValueError, match="give your sampler its seed itself"):
        import optuna
        OptunaSearch(sampler=optuna.samplers.RandomSampler(), seed=1)
