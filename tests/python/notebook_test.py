"""Notebooks, in a real kernel: what is defined in cells, the table that fit() shows, and results as HTML."""

import re
import subprocess
import sys

import nbclient
import nbformat
import pytest

from cadre import _table, tune

DEFINITIONS = """
import json, os, pathlib, tempfile, time
from cadre import train, tune
from cadre.train.torch import TorchTrainer
from cadre.tune.schedulers import PopulationBasedTraining

class Model:
    def __init__(self, rate):
        self.rate, self.error = rate, 1.0

    def step(self):
        self.error *= 1 - self.rate
        return self.error

def learn(config):
    model, step = Model(config["rate"]), 0
    if tune.get_checkpoint():
        with tune.get_checkpoint().as_directory() as directory:
            step, model.error = json.loads(pathlib.Path(directory, "state").read_text())
    while step < 12:
        step += 1
        loss = model.step()
        time.sleep(config["pause"])
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "state").write_text(json.dumps([step, model.error]))
            tune.report({"loss": loss}, checkpoint=tune.Checkpoint.from_directory(directory))

def fails(config):
    tune.report({"loss": config["x"]})
    if config["x"] == 2:
        raise ValueError("two <b>is</b> not allowed")

def loop(config):
    for step in range(3):
        train.report({"loss": 1 / (step + 1), "eval": {"accuracy": step / 4}}, checkpoint=lambda folder: None)
"""
POPULATION = """
results = tune.Tuner(
    learn, param_space={"rate": tune.uniform(0.001, 0.1), "pause": 0.2},
    tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=4, scheduler=PopulationBasedTraining(
        time_attr="training_iteration", perturbation_interval=4, hyperparam_mutations={"rate": tune.uniform(0.001, 0.3)})),
    run_config=tune.RunConfig(name="population", storage_path=os.getcwd())).fit()
"""


class Client(nbclient.NotebookClient):
    """Counts how often an output is drawn again."""

    num_updates = 0

    def process_message(self, message, cell, cell_index):
        self.num_updates += message["header"]["msg_type"] == "update_display_data"
        return super().process_message(message, cell, cell_index)


@pytest.fixture
def execute(tmp_path):
    """Executes cells after those definitions, and returns the client and the cells' outputs."""

    def run(*cells):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in (DEFINITIONS, *cells)])
        client = Client(notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
        client.execute()
        return client, [cell.outputs for cell in notebook.cells[1:]]

    return run


def html_of(output):
    """Returns an output's text as a reader has it, without the style, and its HTML."""
    html = output["data"]["text/html"]
    return re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<style>.*?</style>", "", html)), html


def test_a_population_of_a_class_in_a_cell_is_shown_in_one_table(execute, tmp_path, capfd):
    client, (during, after, one) = execute(POPULATION, "results", "results.get_best_result()")
    assert [output.output_type for output in during] == ["display_data"]  # no lines of the console beside it
    assert client.num_updates > 2
    for outputs in (during, after):
        text, html = html_of(outputs[0])
        assert re.search(r"population\s+· 4 trials:\s+4 terminated", text), text
        assert re.search(r"best: 0000\d with loss = 0\.", text)
        assert html.count('<tr class="best">') == 1 and text.count("★") == 1
        assert html.count("<polyline") == 4  # the curves
        assert re.findall(r"<th[^>]*>([^<]*)</th>", html) == [
            "trial", "status", "iteration", "time (s)", "loss", "loss", "rate", "pause"]
    assert re.search("1 trial", html_of(one[0])[0])
    tune.Tuner.restore(str(tmp_path / "population")).fit()
    assert "4 TERMINATED" in capfd.readouterr().out, "a program that continues it has the console"


def test_a_failure_has_its_traceback_below_the_table(execute):
    _, (during, restored, quiet) = execute(
        "results = tune.Tuner(fails, param_space={'x': tune.grid_search([1, 2])}, "
        "run_config=tune.RunConfig(name='fails', storage_path=os.getcwd())).fit()",
        "tune.Tuner.restore('fails', resume_errored=True).fit()",
        "tune.Tuner(learn, param_space={'rate': 0.1, 'pause': 0}, "
        "run_config=tune.RunConfig(name='quiet', storage_path=os.getcwd(), verbose=0)).fit();")
    for outputs in (during, restored):
        text, html = html_of([output for output in outputs if "data" in output][0])
        assert "1 error" in text and "00001 failed: ValueError: two &lt;b&gt;is&lt;/b&gt; not allowed" in text
        assert "<details>" in html and "Traceback" in text
    assert quiet == []


def test_a_training_run_is_shown_by_its_reports(execute):
    _, (outputs,) = execute(
        "TorchTrainer(loop, scaling_config=train.ScalingConfig(num_workers=2), "
        "run_config=train.RunConfig(name='run', storage_path=os.getcwd())).fit()")
    assert [output.output_type for output in outputs] == ["display_data", "execute_result"]
    text, _ = html_of(outputs[0])
    assert re.search(r"run\s+· 2 workers · 3 reports", text) and "checkpoint_000002" in text
    text, _ = html_of(outputs[1])
    assert "eval/accuracy" in text and "0.33333" in text


# ---- HTML without a kernel


def test_results_are_shown_as_html(fit):
    results = fit(lambda config: tune.report({"loss": config["x"], "note": "<script>"}), metric="loss", mode="min",
                  param_space={"x": tune.grid_search([3, 1, 2]), "width": 8})
    html = results._repr_html_()
    assert re.search(r'<tr class="best"><td class="t">★ 00001</td>', html) and "<script>" not in html
    analysis = tune.ExperimentAnalysis(results.experiment_path, default_metric="loss", default_mode="max")
    assert re.search(r'<tr class="best"><td class="t">★ 00000</td>', analysis._repr_html_())


def test_many_trials_are_shown_with_the_best_first():
    rows = [_table.Row(f"{index:05}", "TERMINATED", {"x": index}, {"loss": 100 - index}) for index in range(100)]
    html = _table.trials("many", rows, "loss", "min")
    assert html.index("★ 00099") < html.index("00000") and "and 70 more rows" in html and "100 trials" in html


def test_values_of_many_kinds_are_shown():
    rows = [_table.Row("00000", "RUNNING", {"a": None, "b": True, "c": [1, 2], "d": "x" * 100, "e": "<i>"}, {}),
            _table.Row("00001", "PENDING", {}, {"loss": float("nan")})]
    html = _table.trials("kinds", rows, "loss", "min")
    assert "x" * 39 + "…" in html and "[1, 2]" in html and "&lt;i&gt;" in html and "nan" in html and "best:" not in html


WITHOUT_PANDAS = """
import sys
sys.modules["pandas"] = None
from cadre import tune

results = tune.Tuner(lambda config: [tune.report({"loss": x, "eval": {"f1": x}}) for x in (3, 2)] and None,
                     run_config=tune.RunConfig(name="plain", storage_path=sys.argv[1], verbose=0)).fit()
frame = results[0].metrics_dataframe
print("LOSS", frame["loss"], frame["eval/f1"], len(frame), results.get_dataframe()["loss"], frame._repr_html_().count("<tr>"))
print(frame)
"""


def test_data_frames_without_pandas(programs, tmp_path):
    done = programs.run(WITHOUT_PANDAS, str(tmp_path))
    assert "LOSS [3, 2] [3, 2] 2 [2] 3" in done.stdout and "pandas is not installed" in done.stdout
    assert subprocess.run([sys.executable, "-c", "import cadre.tune; import sys; sys.exit('pandas' in sys.modules)"],
                          env=programs.environment, check=False).returncode == 0
