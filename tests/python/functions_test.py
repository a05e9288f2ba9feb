"""Training functions and classes of every kind, and how they end."""

import functools
import gc
import os
import random
import signal
import tempfile
import threading
import time
import weakref

import pytest

from cadre import _functions, train, tune


def reports_once(config):
    tune.report({"score": config["x"] * 2})


def test_a_function_of_a_module_reports(fit):
    results = fit(reports_once, param_space={"x": tune.grid_search([1, 2])})
    assert [result.metrics["score"] for result in results] == [2, 4]
    assert results.num_errors == 0 and results.num_terminated == 2


def test_closures_lambdas_partials_and_objects_are_trainables(fit):
    factor = 3

    def closure(config):
        tune.report({"score": config["x"] * factor})

    class Callable:
        def __call__(self, config):
            tune.report({"score": config["x"] * factor})

    def with_more(more, config):
        tune.report({"score": config["x"] * more})

    for number, trainable in enumerate([closure, lambda config: tune.report({"score": 3 * config["x"]}), Callable(),
                                        functools.partial(with_more, factor)]):
        results = fit(trainable, name=f"experiment_{number}", param_space={"x": 5})
        assert [result.metrics["score"] for result in results] == [15]


def test_what_a_function_returns_is_its_last_report(fit):
    assert fit(lambda config: {"loss": 4}, name="dictionary")[0].metrics["loss"] == 4
    assert fit(lambda config: 4.5, name="number")[0].metrics["_metric"] == 4.5

    def generates(config):
        yield {"step": 1}
        yield {"step": 2}

    assert list(fit(generates, name="generator")[0].metrics_dataframe["step"]) == [1, 2]

    def generates_numbers(config):
        yield 0.25
        yield None
        yield 0.125

    assert list(fit(generates_numbers, name="numbers")[0].metrics_dataframe["_metric"]) == [0.25, 0.125]


def test_a_number_of_numpy_that_a_function_returns_is_reported(fit):
    numpy = pytest.importorskip("numpy")
    assert fit(lambda config: numpy.float32(0.5), name="float")[0].metrics["_metric"] == 0.5
    assert fit(lambda config: numpy.int64(3), name="integer")[0].metrics["_metric"] == 3


def test_an_exception_is_an_error_with_its_whole_traceback(fit):
    def deep(n):
        if n == 0:
            raise ValueError("no such layer")
        deep(n - 1)

    def fails(config):
        tune.report({"loss": 1})
        deep(3)

    results = fit(fails)
    assert results.num_errors == 1
    text = str(results[0].error)
    assert text.startswith("Traceback (most recent call last)") and text.count("deep(n - 1)") == 3
    assert text.rstrip().endswith("ValueError: no such layer")
    with open(os.path.join(results[0].path, "error.txt"), encoding="utf-8") as file:
        assert "ValueError: no such layer" in file.read()


def test_of_a_long_traceback_the_end_is_kept(fit):
    def fails(config):
        raise ValueError("x" * 200_000 + "the end")

    assert str(fit(fails)[0].error).rstrip().endswith("the end")


def test_errors_with_names_of_files_that_are_no_utf8_have_them_with_escapes(fit):
    def fails(config):
        raise ValueError("cannot read " + os.fsdecode(b"caf\xe9"))

    assert str(fit(fails, name="of_python")[0].error).rstrip().endswith("ValueError: cannot read caf\\udce9")

    def reports(config):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink("nowhere", os.path.join(os.fsencode(folder), b"caf\xe9"))
            tune.report({"x": 1}, checkpoint=tune.Checkpoint.from_directory(folder))

    text = str(fit(reports, name="of_the_core")[0].error)
    assert "caf\\xe9: a checkpoint holds files and directories only" in text


def test_a_stop_passes_through_except_exception(fit, tmp_path):
    def trains(config):
        try:
            for step in range(100):
                try:
                    tune.report({"step": step})
                except Exception:
                    pass
        finally:
            (tmp_path / "finally").write_text("reached")

    results = fit(trains, stop={"training_iteration": 3})
    assert len(results[0].metrics_dataframe) == 3 and results[0].status == "TERMINATED"
    assert (tmp_path / "finally").exists()


def test_a_crash_ends_its_trial_only(fit):
    def may_crash(config):
        if config["x"] == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        tune.report({"x": config["x"]})

    results = fit(may_crash, param_space={"x": tune.grid_search([0, 1, 2])})
    assert [result.status for result in results] == ["TERMINATED", "ERROR", "TERMINATED"]
    assert "SIGSEGV" in str(results[1].error)


def test_a_report_of_another_thread_is_refused(fit):
    def reports_elsewhere(config):
        errors = []

        def report():
            try:
                tune.report({"x": 1})
            except Exception as error:
                errors.append(str(error))

        thread = threading.Thread(target=report)
        thread.start()
        thread.join()
        tune.report({"error": errors[0]})

    assert "thread" in fit(reports_elsewhere)[0].metrics["error"]


def test_a_report_to_a_training_run_is_an_error_in_a_trial(fit):
    error = fit(lambda config: train.report({"x": 1}))[0].error
    assert "train::report records nothing here: this worker reports with tune::report" in str(error)


def test_values_that_cannot_be_stored_name_their_key(fit):
    def reports(config):
        itself = [1]
        itself.append(itself)
        for value in ([1, 2**70], {"deep": object()}, 10**30, itself, {"\udc80": 1}):
            try:
                tune.report({"a": {"b": value}})
            except (TypeError, ValueError, OverflowError) as error:
                tune.report({"text": str(error)})

    texts = list(fit(reports)[0].metrics_dataframe["text"])
    assert '"a/b/1"' in texts[0] and "64 bits" in texts[0]
    assert '"a/b/deep"' in texts[1] and "object" in texts[1]
    assert '"a/b"' in texts[2]
    assert '"a": more than 1000 levels' in texts[3] and "contain itself" in texts[3]
    assert "surrogates not allowed" in texts[4] and len(texts) == 5


def test_an_array_of_several_numbers_names_its_key(fit):
    numpy = pytest.importorskip("numpy")

    def reports(config):
        tune.report({"text": "", "one": numpy.ones((1, 1))})
        for value in (numpy.arange(3), numpy.empty(0)):
            try:
                tune.report({"a": {"b": value}})
            except TypeError as error:
                tune.report({"text": str(error), "one": 0})

    history = fit(reports)[0].metrics_dataframe
    assert list(history["one"]) == [1, 0, 0]
    for text in history["text"][1:]:
        assert text.startswith("\"a/b\": an object of <class 'numpy.ndarray'> cannot be stored") and "tolist()" in text


def test_a_dictionary_that_is_changed_while_it_is_reported_is_an_error(fit):
    class Number:
        """A number that calls a function when it is fetched."""

        dtype = "float32"

        def __init__(self, act):
            self.act = act

        def item(self):
            self.act()
            return 0.5

    def reports(config):
        metrics = {}
        metrics["inner"] = {"a": Number(metrics.clear), "b": 2}
        try:
            tune.report(metrics)
        except RuntimeError as error:
            tune.report({"text": str(error)})

    assert "the dictionary was changed while it was read" in fit(reports)[0].metrics["text"]


def test_a_worker_ends_as_an_interpreter_does(fit, tmp_path):
    def ends(config):
        import atexit

        atexit.register(lambda: (tmp_path / "atexit").write_text("called"))
        thread = threading.Thread(target=lambda: (tmp_path / "thread").write_text("joined"))
        thread.start()
        print("no end of line", end="")
        tune.report({"x": 1})

    results = fit(ends)
    assert (tmp_path / "atexit").exists() and (tmp_path / "thread").exists()
    with open(os.path.join(results[0].path, "stdout"), encoding="utf-8") as file:
        assert file.read() == "no end of line"


def test_generators_are_seeded_by_trial_and_the_same_again(fit):
    import numpy

    def draws(config):
        tune.report({"python": random.random(), "numpy": float(numpy.random.random())})

    first, again = (fit(draws, name=name, num_samples=3, seed=5).get_dataframe() for name in ("first", "again"))
    assert len(set(first["python"])) == 3 and len(set(first["numpy"])) == 3
    assert list(first["python"]) == list(again["python"]) and list(first["numpy"]) == list(again["numpy"])


def test_a_child_process_and_numpy_scalars_work(fit):
    import subprocess

    import numpy

    def trains(config):
        text = subprocess.run(["echo", "hello"], capture_output=True, text=True, check=True).stdout
        tune.report({"text": text.strip(), "f": numpy.float32(0.5), "i": numpy.int64(7)})

    metrics = fit(trains)[0].metrics
    assert (metrics["text"], metrics["f"], metrics["i"]) == ("hello", 0.5, 7)


def test_parameters_and_resources_of_trials(fit):
    big = list(range(100_000))

    def trains(config, data, scale):
        resources = tune.get_context().get_trial_resources()
        tune.report({"sum": sum(data) * scale * config["x"], "cpus": resources["CPU"]})

    trainable = tune.with_resources(tune.with_parameters(trains, data=big, scale=2), {"cpu": 2})
    metrics = fit(trainable, param_space={"x": 3})[0].metrics
    assert metrics["sum"] == sum(big) * 6 and metrics["cpus"] == 2
    by_config = tune.with_resources(reports_once, lambda config: {"cpu": config["x"]})
    assert fit(by_config, name="by_config", param_space={"x": 2}).num_errors == 0


class Counts(tune.Trainable):
    def setup(self, config, start=0):
        self.count = start

    def step(self):
        self.count += self.config["by"]
        return {"count": self.count, "iteration": self.training_iteration}

    def save_checkpoint(self, checkpoint_dir):
        return {"count": self.count}

    def load_checkpoint(self, checkpoint):
        self.count = checkpoint["count"]


def test_a_class_trains_step_by_step_and_its_dictionaries_are_checkpoints(fit):
    results = fit(tune.with_parameters(Counts, start=100), param_space={"by": 5}, stop={"training_iteration": 4},
                  checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=2, num_to_keep=1))
    result = results[0]
    assert list(result.metrics_dataframe["count"]) == [105, 110, 115, 120]
    assert list(result.metrics_dataframe["iteration"]) == [0, 1, 2, 3]
    assert result.checkpoint is not None and len(result.best_checkpoints) == 1
    restored = Counts({"by": 1})
    restored.restore(result.checkpoint)
    assert restored.count == 120


def test_a_dictionary_of_a_class_may_have_objects_of_the_programs_own_classes(fit):
    class State:
        steps = 0

    class Steps(tune.Trainable):
        def setup(self, config):
            self.state = State()

        def step(self):
            self.state.steps += 1
            return {"steps": self.state.steps}

        def save_checkpoint(self, checkpoint_dir):
            return {"state": self.state}

        def load_checkpoint(self, checkpoint):
            self.state = checkpoint["state"]

    result = fit(Steps, stop={"steps": 3}, checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1))[0]
    assert result.error is None
    restored = Steps()
    restored.restore(result.checkpoint)
    assert isinstance(restored.state, State) and restored.state.steps == 3


def test_threads_of_a_class_run_between_its_steps(fit, tmp_path):
    class WritesLater(tune.Trainable):
        def step(self):
            def write():
                time.sleep(0.05)  # step() has returned then
                (tmp_path / "written").touch()

            threading.Thread(target=write).start()
            return {"x": 1}

    class Waits(tune.Callback):
        is_written = False

        def on_trial_result(self, iteration, trials, trial, result, **info):
            end = time.monotonic() + 120
            while not self.is_written and time.monotonic() < end:
                self.is_written = (tmp_path / "written").exists()
                time.sleep(0.01)

    waits = Waits()
    fit(WritesLater, stop={"training_iteration": 1}, callbacks=[waits])
    assert waits.is_written


def test_a_class_asks_for_its_resources(fit):
    class Asks(tune.Trainable):
        @classmethod
        def default_resource_request(cls, config):
            return tune.PlacementGroupFactory([{"CPU": config["cpus"]}]) if config["cpus"] else None

        def step(self):
            return {"cpus": self.trial_resources["CPU"], "done": True}

    results = fit(Asks, param_space={"cpus": tune.grid_search([0, 1, 2])})
    assert [result.metrics["cpus"] for result in results] == [1, 1, 2]
    given = fit(tune.with_resources(Asks, {"cpu": 1}), name="given", param_space={"cpus": 2})
    assert given[0].metrics["cpus"] == 1


def test_a_class_without_a_tuner_is_cleaned_up_by_stop():
    class Cleans(tune.Trainable):
        is_clean = False

        def cleanup(self):
            self.is_clean = True

    trainable = Cleans()
    trainable.stop()
    assert trainable.is_clean


def test_checkpoints_are_listed_with_the_oldest_or_the_worst_first(fit):
    for name, options, counts in (("all", {}, [2, 4, 6]), ("by_score", {"checkpoint_score_attribute": "distance"}, [4, 6, 2])):
        class Distances(Counts):
            def step(self):
                return {**super().step(), "distance": abs(self.count - 4.9)}

        config = tune.CheckpointConfig(checkpoint_frequency=2, checkpoint_at_end=False, **options)
        result, = fit(tune.with_parameters(Distances, start=0), name=name, param_space={"by": 1},
                      stop={"training_iteration": 6}, checkpoint_config=config)
        assert [metrics["count"] for _, metrics in result.best_checkpoints] == counts


def test_a_class_without_the_base_and_what_is_no_function_are_refused():
    class NoTrainable:
        pass

    with pytest.raises(TypeError, match="NoTrainable does not derive"):
        tune.Tuner(NoTrainable)
    with pytest.raises(TypeError, match="5 is no trainable"):
        tune.Tuner(5)
    with pytest.raises(ValueError, match="registered as 'unknown'"):
        tune.Tuner("unknown")


class Large:
    """What functions of an experiment hold."""


def test_the_functions_of_an_experiment_go_with_its_tuner_and_results(fit, tmp_path):
    trained, stopped = Large(), Large()
    gone = [weakref.ref(trained), weakref.ref(stopped)]
    called = []

    def trains(config, held=trained):
        tune.report({"x": 1})
        tune.report({"x": 2})

    def stop(trial_id, result, held=stopped):
        called.append(held)  # of this very function, in this process
        return result["x"] >= 1

    results = fit(trains, stop=stop)
    assert results[0].metrics["x"] == 1 and called == [stopped]
    called.clear()
    del results, trains, stop, trained, stopped
    gc.collect()
    assert [one() for one in gone] == [None, None]
    assert tune.Tuner.restore(tmp_path / "experiment").fit()[0].metrics["x"] == 1
    assert not _functions._loaded


def test_what_cannot_be_pickled_is_named():
    lock = threading.Lock()

    def uses_a_lock(config):
        with lock:
            tune.report({"x": 1})

    with pytest.raises(TypeError, match=r"uses_a_lock cannot be pickled, because of its variable lock \(lock\)"):
        tune.Tuner(uses_a_lock)
