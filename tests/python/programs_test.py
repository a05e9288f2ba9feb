"""Whole programs: killed and continued by others, interrupted, with threads and torch in the driver, in notebooks."""

import pathlib
import re
import signal
import sqlite3
import sysconfig
import textwrap
import time

import pytest

TRAINS = """
import os, random, sys, time
from cadre import tune

hidden = {"factor": 3, "slow": os.path.join(sys.argv[1], "slow")}

def make(k):
    def trains(config):
        step = 0
        if checkpoint := tune.get_checkpoint():
            step = int(open(os.path.join(checkpoint.path, "step")).read())
        while step < 40:
            step += 1
            def write(directory):
                open(os.path.join(directory, "step"), "w").write(str(step))
            tune.report({"step": step, "score": config["x"] * k * hidden["factor"]}, checkpoint=write)
            time.sleep(0.02)
            if step >= 20 and os.path.exists(hidden["slow"]):
                time.sleep(0.5)
    return trains

if __name__ == "__main__":
    results = tune.Tuner(
        make(5), param_space={"x": tune.sample_from(lambda config: random.random())},
        tune_config=tune.TuneConfig(num_samples=4, metric="score", mode="max"),
        run_config=tune.RunConfig(name="killed", storage_path=sys.argv[1], verbose=0,
                                  stop=lambda trial_id, result: result["step"] >= 30)).fit()
    print("INTERRUPTED" if results.interrupted else "DONE")
"""

# Has none of the functions.
CONTINUES = """
import sys
from cadre import tune
results = tune.Tuner.restore(sys.argv[1]).fit()
for result in results:
    print("TRIAL", result.status, result.metrics["step"], result.metrics["score"], result.config["x"])
"""


def rows(folder):
    """Returns the trials' configs, and the number of results in the store; nothing if it is not there yet."""
    try:
        with sqlite3.connect(f"file:{folder}/killed/experiment.db?mode=ro", uri=True) as store:
            return store.execute("select config from trials order by trial").fetchall(), \
                store.execute("select count(*) from results").fetchone()[0]
    except sqlite3.OperationalError:
        return [], 0


def wait_for_results(folder, program, count):
    end = time.monotonic() + 120
    while rows(folder)[1] < count:
        assert program.poll() is None, program.stdout.read()
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_killed_experiment_is_continued_by_a_program_without_its_functions(programs, tmp_path):
    program = programs.start(TRAINS, str(tmp_path))
    for count in (10, 30, 50):
        wait_for_results(tmp_path, program, count)
        program.kill()
        program.wait()
        configs, num_results = rows(tmp_path)
        program = programs.start(CONTINUES, str(tmp_path / "killed"), name="continues.py")
        assert num_results >= count
    output = program.communicate(timeout=100)[0]
    assert program.returncode == 0, output
    trials = [line.split() for line in output.splitlines() if line.startswith("TRIAL")]
    assert len(trials) == 4 and all(trial[1:3] == ["TERMINATED", "30"] for trial in trials), output
    for _, _, _, score, x in trials:
        assert float(score) == pytest.approx(float(x) * 15)
    assert rows(tmp_path)[0][:len(configs)] == configs, "what sample_from returned is not drawn again"


def test_ctrl_c_returns_the_results_so_far_and_a_restore_goes_on(programs, tmp_path):
    slow = tmp_path / "slow"
    slow.touch()  # so that it is interrupted before its end
    program = programs.start(TRAINS, str(tmp_path))
    wait_for_results(tmp_path, program, 10)
    program.send_signal(signal.SIGINT)
    output = program.communicate(timeout=100)[0]
    assert program.returncode == 0 and "INTERRUPTED" in output and "Tuner.restore" in output, output
    assert "Traceback" not in output
    slow.unlink()
    done = programs.run(CONTINUES, str(tmp_path / "killed"), name="continues.py")
    assert done.stdout.count("TERMINATED 30") == 4, done.stdout


def test_a_restore_takes_changed_code(programs, tmp_path):
    fails = """
import sys
from cadre import tune
def trains(config):
    tune.report({"version": %d})
    if %d == 1: raise ValueError("a mistake")
if len(sys.argv) == 1:
    tuner = tune.Tuner(trains, run_config=tune.RunConfig(name="changed", storage_path=".", verbose=0))
else:
    tuner = tune.Tuner.restore("changed", trains, restart_errored=True)
result = tuner.fit()[0]
print(result.status, result.metrics["version"])
"""
    assert "ERROR 1" in programs.run(fails % (1, 1)).stdout
    assert "ERROR 1" in programs.run(fails % (1, 1), "restore").stdout
    assert "TERMINATED 2" in programs.run(fails % (2, 2), "restore").stdout


def test_threads_and_tensors_in_the_driver_before_init(programs):
    done = programs.run("""
import os, threading, time
import numpy, torch
torch.ones(500, 500) @ torch.ones(500, 500)
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
from cadre import tune
model = torch.nn.Linear(4, 2)

def trains(config):
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    for _ in range(3):
        loss = model(torch.ones(8, 4)).square().mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        tune.report({"loss": loss, "threads": torch.get_num_threads(), "ones": float((numpy.ones((500, 500)) @ numpy.ones((500, 500))).sum()),
                     "blas": len(os.listdir("/proc/self/task"))})

begin = time.time()
results = tune.Tuner(tune.with_resources(trains, {"cpu": 2}), param_space={"lr": tune.grid_search([0.01, 0.1])},
                     tune_config=tune.TuneConfig(metric="loss", mode="min"),
                     run_config=tune.RunConfig(storage_path=".", verbose=0)).fit()
assert results.num_errors == 0, results.errors
print(results.get_best_result().config, results[0].metrics["threads"], results[0].metrics["ones"], results[0].metrics["blas"] > 1)
""")
    assert "{'lr': 0.1} 2 125000000.0 True" in done.stdout


def test_a_module_that_starts_a_thread_or_fails_costs_speed_only(programs, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "starts_a_thread.py").write_text("import threading, time\n"
                                              "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n")
    (site / "fails_there.py").write_text("import sys\nif 'cadre._server' in sys.modules: raise RuntimeError('not here')\n")
    done = programs.run("""
import sys, sysconfig
sys.path.insert(0, "site")
import starts_a_thread, fails_there
import cadre._driver
cadre._driver.installed_modules = lambda: ["starts_a_thread", "fails_there", "json"]
from cadre import tune

def trains(config):
    tune.report({"loaded": "json" in sys.modules, "thread": "starts_a_thread" in sys.modules})

results = tune.Tuner(trains, run_config=tune.RunConfig(storage_path=".", verbose=0)).fit()
assert results.num_errors == 0, results.errors
print(results[0].metrics["loaded"], results[0].metrics["thread"])
""")
    assert "True False" in done.stdout
    assert re.search("imports starts_a_thread itself, because importing starts_a_thread starts a thread", done.stderr)
    assert re.search("imports fails_there itself.*RuntimeError: not here", done.stderr)


def test_init_and_shutdown_again(programs):
    programs.run("""
import cadre
from cadre import tune
def trains(config):
    tune.report({"cpus": tune.get_context().get_trial_resources()["CPU"]})
assert not cadre.is_initialized()
cadre.shutdown()
for cpus in (3, 1):
    cadre.init(num_cpus=cpus)
    assert cadre.is_initialized()
    cadre.init(ignore_reinit_error=True)
    try:
        cadre.init()
    except ValueError as error:
        assert "called before" in str(error)
    else:
        raise AssertionError
    results = tune.Tuner(tune.with_resources(trains, {"cpu": cpus}),
                         run_config=tune.RunConfig(storage_path=".", name=f"of_{cpus}", verbose=0)).fit()
    assert results[0].metrics["cpus"] == cpus
    cadre.shutdown()
    assert not cadre.is_initialized()
try:
    cadre.init(num_cpus=-1)
except ValueError:
    pass
cadre.init(num_cpus=2)
""")


def test_the_cluster_of_the_environment_is_that_of_each_init(programs):
    programs.environment["CADRE_CLUSTER"] = "processes"
    programs.run("""
import os
import cadre
from cadre import _driver
given = []
_driver._core.init = lambda *_, **__: given.append(os.environ["CADRE_CLUSTER"])
cadre.init()
assert "CADRE_CLUSTER" not in os.environ
cadre.init(cluster="slurm")
cadre.init()
os.environ["CADRE_CLUSTER"] = ""
cadre.init()
cadre.init()
assert given == ["processes", "slurm", "processes", "", ""], given
""")


def test_a_program_leaves_no_process(programs, tmp_path):
    import os

    done = programs.run("""
import cadre, os
from cadre import tune
results = tune.Tuner(lambda config: {"group": os.getppid()}, run_config=tune.RunConfig(storage_path=".", verbose=0)).fit()
print("SERVER", results[0].metrics["group"])
""")
    server = int(re.search(r"SERVER (\d+)", done.stdout)[1])
    end = time.monotonic() + 120
    while os.path.exists(f"/proc/{server}"):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_libraries_whose_only_thread_is_arrows_are_imported_once(programs):
    done = programs.run("""
import pyarrow, pandas
import cadre
from cadre import tune

tune.Tuner(lambda config: {"loaded": "pandas" in __import__("sys").modules}, run_config=tune.RunConfig(
    name="arrow", storage_path="results", verbose=0)).fit()
""")
    assert "starts a thread" not in done.stderr


def test_a_module_of_the_working_directory_is_not_taken_for_one_of_pythons(programs, tmp_path):
    (tmp_path / "json.py").write_text("raise RuntimeError('not this one')")
    (tmp_path / "program").mkdir()
    programs.run("""
from cadre import tune
results = tune.Tuner(lambda config: tune.report({"x": 1}), run_config=tune.RunConfig(storage_path="results", verbose=0)).fit()
assert results.num_errors == 0 and len(results) == 1
""", name="program/program.py")


def test_a_program_of_very_many_modules_starts(programs):
    done = programs.run("""
import cadre
from cadre import _driver

given = {"modules": ["a" * 100] * 5000}
command = _driver.server_command(given)
assert max(map(len, command)) <= 100_000 and "".join(command[-6:]).count("a" * 100) == 5000, len(command)
print("PARTS", len(command) > 6)
""")
    assert "PARTS True" in done.stdout


def test_what_the_first_trials_import_the_others_have_at_once(programs):
    done = programs.run(textwrap.dedent("""
    import os, sys, time
    from cadre import tune

    def trains(config):
        had = {name: name in sys.modules for name in ("numpy", "antigravity_that_fails", "mailbox")}
        import numpy, mailbox
        try:
            import antigravity_that_fails
        except ImportError:
            pass
        time.sleep(0.3)
        tune.report({"had_both": had["numpy"] and had["mailbox"], "sum": float(numpy.ones(3).sum()),
                     "threads": len(os.listdir("/proc/self/task"))})

    class WhenThreeHadThem(tune.Stopper):
        count = 0

        def __call__(self, trial_id, result):
            self.count += result["had_both"]
            return False

        def stop_all(self):
            return self.count >= 3

    results = tune.Tuner(trains, tune_config=tune.TuneConfig(num_samples=400, max_concurrent_trials=1),
                         run_config=tune.RunConfig(storage_path=".", verbose=0, stop=WhenThreeHadThem())).fit()
    reports = [result.metrics for result in results if result.metrics and "had_both" in result.metrics]
    had = [report["had_both"] for report in reports]
    print("FIRST", had[0], "LAST", had[-1], "SORTED", had == sorted(had), "ERRORS", results.num_errors,
          "SUMS", {report["sum"] for report in reports}, "THREADS", {report["threads"] for report in reports})
    """))
    assert "FIRST False LAST True SORTED True ERRORS 0 SUMS {3.0} THREADS {1}" in done.stdout, done.stdout + done.stderr


def test_a_module_that_starts_a_thread_or_crashes_is_imported_by_each_trial(programs):
    folder = pathlib.Path(sysconfig.get_path("purelib"))
    made = []
    try:
        for name, text in (("cadre_test_threads", "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()"),
                           ("cadre_test_crashes", "import os\nif os.environ.get('CADRE_TEST_TRIAL') is None: os.abort()")):
            made.append(folder / f"{name}.py")
            made[-1].write_text(text)
        done = programs.run(textwrap.dedent("""
        import os, sys, time
        from cadre import tune

        def trains(config):
            os.environ["CADRE_TEST_TRIAL"] = "1"
            had = [name for name in sys.modules if name in ("cadre_test_threads", "cadre_test_crashes", "colorsys")]
            import cadre_test_threads, cadre_test_crashes, colorsys
            time.sleep(0.2)
            tune.report({"had": ",".join(had)})

        class WhenThreeHadSome(tune.Stopper):
            count = 0

            def __call__(self, trial_id, result):
                self.count += result["had"] != ""
                return False

            def stop_all(self):
                return self.count >= 3

        results = tune.Tuner(trains, tune_config=tune.TuneConfig(num_samples=400, max_concurrent_trials=1),
                             run_config=tune.RunConfig(storage_path=".", verbose=0, stop=WhenThreeHadSome())).fit()
        had = [result.metrics["had"] for result in results if result.metrics and "had" in result.metrics]
        print("HAD", had[0], "AT LAST", had[-1], results.num_errors)
        """))
        assert "HAD  AT LAST colorsys 0" in done.stdout, done.stdout + done.stderr
    finally:
        for file in made:
            file.unlink()
