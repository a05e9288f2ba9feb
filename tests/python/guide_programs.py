"""Programs as Ray's guides have them, written anew, with nothing changed but the imports (tests/python/guides): how they are
run, and what must be in their storage then."""

import csv
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import nbclient
import nbformat
import pytest

from cadre import train

GUIDES = pathlib.Path(__file__).parent / "guides"
MNIST = pathlib.Path(os.environ.get("CADRE_MNIST") or pathlib.Path(__file__).parents[2] / "data" / "mnist")


class Ways:
    """Runs a guide's main(storage) in one of three ways, in a folder of the test's own, and returns what was printed."""

    def __init__(self, programs, guide):
        programs.environment.update(CADRE_MNIST=str(MNIST), HOME=str(programs.folder))
        self.programs = programs
        self.name = guide
        self.source = (GUIDES / f"{guide}.py").read_text()
        self.storage = programs.folder / "storage"
        self.storage.mkdir()

    def script(self):
        return self.programs.run(self.source, str(self.storage), name=f"{self.name}.py", timeout=200).stdout

    def pytest(self):
        """Runs it as the test of a module whose functions are the guide's."""
        test = f"{self.source}\n\ndef test_guide():\n    main({str(self.storage)!r})\n"
        self.programs.write("the_guide_test.py", test)
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "the_guide_test.py"],
                              cwd=self.programs.folder, env=self.programs.environment, capture_output=True, text=True,
                              timeout=200)
        assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
        return done.stdout

    def kernel(self):
        """Runs it in cells: one for each definition, and one that calls main()."""
        definitions, _ = self.source.split('\n\nif __name__ == "__main__":\n')
        cells = [*definitions.split("\n\n\n"), f"main({str(self.storage)!r})"]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        client = nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3",
                                         resources={"metadata": {"path": str(self.programs.folder)}})
        client.execute(env=self.programs.environment)
        outputs = [output for cell in notebook.cells for output in cell.outputs]
        tables = [output["data"]["text/html"] for output in outputs if output.output_type == "display_data"]
        assert tables and not [html for html in tables if "Traceback" in html and "fails" not in html], tables
        return "".join(output["text"] for output in outputs if output.output_type == "stream" and output["name"] == "stdout")


def facts_of(printed):
    """Returns what a guide says of its results: the lines that begin with a word in capitals."""
    return re.findall(r"(?m)^((?:[A-Z]{2,} )+\S.*?) *$", printed)


def trials_of(folder):
    return sorted(path for path in folder.iterdir() if re.match(r"\d{5}", path.name))


def iterations(folder):
    """Returns the iterations in the result files of a trial or a training run, which have the same rows."""
    rows = [json.loads(line) for line in (folder / "result.json").read_text().splitlines()]
    with open(folder / "progress.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [int(row["training_iteration"]) for row in table] == [row["training_iteration"] for row in rows]
    assert list(folder.glob("events.out.tfevents.*"))
    return [row["training_iteration"] for row in rows]


def check_trial(folder, *, file, num_checkpoints, results=None, config=None, has_failed=False):
    """Checks the files of a trial: its results, its config, and its checkpoints, each with a file."""
    found = iterations(folder)
    assert found == results if results else found
    assert config is None or json.loads((folder / "params.json").read_text()) == config
    checkpoints = sorted(folder.glob("checkpoint_*"))
    assert len(checkpoints) == num_checkpoints, checkpoints
    for checkpoint in checkpoints:
        assert (checkpoint / file).stat().st_size > 0
    assert (folder / "error.txt").exists() == has_failed


def check_policies(experiment, keys):
    """Checks the log of a population: which trial took over another one, and with which config."""
    policies = list(experiment.glob("pbt_policy_*.txt"))
    assert policies
    for policy in policies:
        for line in policy.read_text().splitlines():
            target, donor, _, _, old, new = json.loads(line)  # the first two begin with a trial's number
            assert target != donor and f"pbt_policy_{int(target.split('_')[0]):05}.txt" == policy.name
            assert keys <= set(old) and keys <= set(new)
    assert (experiment / "pbt_global.txt").stat().st_size > 0


def check_pbt_mnist(storage, facts, folder):
    del folder
    best, last, replayed = facts
    assert 0.8 < float(re.fullmatch(r"BEST (\S+) True", best)[1]) <= 1
    assert last == "LAST True" and replayed == "REPLAYED 16 0"
    check_policies(storage / "pbt_test", {"lr", "momentum"})
    for trial in trials_of(storage / "pbt_test"):
        assert 1 <= len(list(trial.glob("checkpoint_*"))) <= 5  # the best four, and the latest
        check_trial(trial, file="checkpoint.pt", num_checkpoints=len(list(trial.glob("checkpoint_*"))))
    assert len(trials_of(storage / "pbt_test")) == 4
    replay, = trials_of(storage / "replay")
    check_trial(replay, file="checkpoint.pt", num_checkpoints=4, results=list(range(1, 17)))


def check_pbt_dcgan(storage, facts, folder):
    assert facts == ["SCORES True 0", "LOSSES True"]
    experiment = storage / "pbt_dcgan_mnist_tutorial"
    check_policies(experiment, {"netG_lr", "netD_lr"})
    for trial in trials_of(experiment):
        check_trial(trial, file="checkpoint.pt", num_checkpoints=len(list(trial.glob("checkpoint_*"))))
        assert iterations(trial)[-1] == 4
    for name, height in (("real.png", 8 * 34), ("generated.png", 4 * 8 * 34)):
        data = (folder / name).read_bytes()
        assert data.startswith(b"\x89PNG") and int.from_bytes(data[20:24], "big") == height
        (folder / name).unlink()  # so that the next run has to draw it


def check_checkpoints_function(storage, facts, folder):
    del folder
    assert facts == [
        "FAILED 1 True [12, 7] [[3, 6, 9, 12], [3, 6]]", "CAN RESTORE True",
        "RESUMED 0 [12, 12] [1, 7] [[3, 6, 9, 12], [3, 6, 9, 12]]", "BEST 0.1 12 checkpoint_000003"]
    whole, failed = trials_of(storage / "checkpoints_function")
    check_trial(whole, file="checkpoint.pt", num_checkpoints=4, results=list(range(1, 13)),
                config={"epochs": 12, "lr": 0.02, "fail_at": None})
    check_trial(failed, file="checkpoint.pt", num_checkpoints=4, config={"epochs": 12, "lr": 0.1, "fail_at": 8}, has_failed=True)
    assert "RuntimeError: epoch 8 fails" in (failed / "error.txt").read_text()
    assert sorted(set(iterations(failed))) == list(range(1, 13))


def check_checkpoints_class(storage, facts, folder):
    del folder
    assert facts == ["CLASS 7 7 None [2, 3, 4, 6, 7]", "ALONE 7 7.0 8", "DICT 2 5 True"]
    trial, = trials_of(storage / "checkpoints_class")
    check_trial(trial, file="model.pth", num_checkpoints=5, config={"input_size": 64}, has_failed=True)
    assert "RuntimeError: step 6 fails once" in (trial / "error.txt").read_text()
    trial, = trials_of(storage / "checkpoints_dict")
    check_trial(trial, file="_dict_checkpoint.pkl", num_checkpoints=3, results=[1, 2, 3, 4, 5], config={})


def check_checkpoints_callback(storage, facts, folder):
    del folder
    assert facts == ["WIDTH 10 [3, 5, 6, 8] 4", "WIDTH 20 [2, 4, 5, 6, 8] 5", "BEST 10 {'step': 8, 'width': 10}"]
    for trial, width, num_checkpoints in zip(trials_of(storage / "checkpoints_callback"), (10, 20), (4, 5)):
        check_trial(trial, file="checkpoint.json", num_checkpoints=num_checkpoints, results=list(range(1, 9)),
                    config={"width": width})


def check_checkpoints_lightning(storage, facts, folder):
    del folder
    assert facts == ["BEST 0.01 2 0", "READ True 0.01"]
    for trial, lr in zip(trials_of(storage / "tune_mnist"), (1e-5, 1e-2)):
        check_trial(trial, file="checkpoint.ckpt", num_checkpoints=2, results=[1, 2],
                    config={"layer_1": 32, "lr": lr, "batch_size": 64})


def check_fashion_mnist(storage, facts, folder):
    del folder
    trained, read = facts
    assert 0.7 < float(re.fullmatch(r"TRAINED (\S+) 1024 None", trained)[1]) <= 1
    assert read == "READ True True 3"
    run = storage / "fashion_mnist"
    check_trial(run, file="model.pt", num_checkpoints=2, results=[1, 2, 3],
                config={"lr": 0.05, "epochs": 3, "batch_size_per_worker": 32})
    for rank in (0, 1):
        assert (run / f"rank_{rank}" / "stdout").read_text().count(f"rank {rank} has finished epoch") == 3


def check_async_validation(storage, facts, folder):
    del folder
    scores = {fact.split()[1]: fact.split()[2:] for fact in facts}
    assert list(scores) == ["task", "trainer", "batches"]
    assert scores["task"] == scores["trainer"] == scores["batches"]  # three ways to count the same images
    first, second, is_in_result = scores["task"]
    assert is_in_result == "True" and 0 < float(first.removeprefix("0:")) < float(second.removeprefix("1:")) <= 1
    for form in scores:
        run = storage / f"validation_by_{form}"
        check_trial(run, file="model.pt", num_checkpoints=2, results=[1, 2], config={"form": form, "epochs": 2})
        lines = [json.loads(line) for line in (run / "validations.json").read_text().splitlines()]
        assert sorted(line["checkpoint"] for line in lines) == ["checkpoint_000000", "checkpoint_000001"]
        assert {line["status"] for line in lines} == {"validated"}
        result = train.Result.from_path(run)
        assert list(result.metrics_dataframe["score"]) == [metrics["score"] for _, metrics in result.best_checkpoints]
        assert result.metrics == result.best_checkpoints[-1][1]


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items())
          if (GUIDES / f"{name.removeprefix('check_')}.py").is_file()}
NEED_MNIST = {"pbt_mnist", "pbt_dcgan", "checkpoints_lightning", "fashion_mnist", "async_validation"}
NEEDED = {"checkpoints_lightning": ["lightning"], "async_validation": ["cadre._data"]}


@pytest.fixture(params=sorted(CHECKS))
def guide(request):
    if request.param in NEED_MNIST and not MNIST.is_dir():
        pytest.skip(f"{MNIST} is not there: make setup")
    for module in NEEDED.get(request.param, []):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not there")
    return request.param
