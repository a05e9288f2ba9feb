"""Runs every workload of cadre_bench with small settings: its output agrees with its store. Tunes the networks of a
table with a searcher and with schedulers. No figure is judged."""

import argparse
import contextlib
import importlib.util
import io
import itertools
import json
import math
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import compare_builds
import run_all

for folder in "search", "peers", "python":
    sys.path.insert(0, str(pathlib.Path(__file__).parent / folder))
import batch_inference  # noqa: E402
import compare_populations  # noqa: E402
import functions  # noqa: E402
import side_by_side  # noqa: E402
import trials  # noqa: E402

BIN = pathlib.Path(os.environ["CADRE_BIN"])
COUNTS = ["trials", "terminated", "errors", "results", "exploits", "checkpoints"]


def bench(storage, *arguments):
    return subprocess.run([BIN / "cadre_bench", *map(str, arguments), "--storage-path", storage], capture_output=True,
                          text=True, timeout=120)


def counted(experiment):
    """Counts what a line says of an experiment in its store, with SQLite alone."""
    with sqlite3.connect(f"file:{experiment / 'experiment.db'}?mode=ro", uri=True) as store:
        def count(what):
            return store.execute(f"SELECT count(*) FROM {what}").fetchone()[0]
        return {"trials": count("trials"), "terminated": count("trials WHERE status = 'TERMINATED'"),
                "errors": count("trials WHERE status = 'ERROR'"), "results": count("results WHERE NOT repeated"),
                "exploits": count("decisions WHERE kind = 'exploit'"), "checkpoints": count("checkpoints")}


class SmokeTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.storage = pathlib.Path(temporary.name) / "bench"

    def lines(self, workload, *arguments):
        """Returns the lines of a run, after checking the keys that all lines have."""
        done = bench(self.storage, workload, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for line in lines:
            self.assertEqual(line["workload"], workload)
            self.assertEqual(line["torch"], "--torch" in arguments)
            self.assertGreater(line["wall_s"], 0)
            self.assertGreater(line["cpu_s"], 0)
            self.assertGreater(line.get("ratio", 1), 0)
            self.assertTrue(line["figures"])
            for figure in line["figures"]:
                if "budget" in figure:
                    self.assertEqual(figure["met"], figure["value"] <= figure["budget"]
                                     if figure["limit"] == "at most" else figure["value"] >= figure["budget"])
        return lines

    def assert_counted(self, line, name, **expected):
        self.assertEqual({key: line[key] for key in COUNTS}, counted(self.storage / name))
        self.assertEqual({key: line[key] for key in expected}, expected)

    def check_empty_trials(self, *torch):
        trials, one = self.lines("empty-trial", "--trials", 6, "--slots", 3, "--starts", 2, *torch)
        self.assert_counted(trials, "empty_trial", trials=6, terminated=6, errors=0, results=0, slots=3)
        self.assertEqual((one["trials"], one["starts"]), (1, 2))
        self.assertLessEqual(one["best_s"], one["median_s"])
        for name in ["one_trial_0", "one_trial_1"]:
            self.assertEqual(counted(self.storage / name)["terminated"], 1)

    def test_empty_trials_and_the_start_of_a_program(self):
        self.check_empty_trials()

    def test_torch_is_the_program_beside_this_one(self):
        if (BIN / "cadre_bench_torch").exists():
            self.check_empty_trials("--torch")
            return
        done = bench(self.storage, "empty-trial", "--torch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cadre_bench_torch", done.stderr)

    def test_reports(self):
        [line] = self.lines("reports", "--trials", 2, "--reports", 30)
        self.assert_counted(line, "reports", trials=2, terminated=2, errors=0, results=60)
        for number in range(2):
            self.assertEqual(len((self.storage / f"plain_{number}.json").read_text().splitlines()), 30)

    def test_checkpoints_and_the_bytes_of_all_processes(self):
        [line] = self.lines("checkpoints", "--bytes", 100_000, "--steps", 12, "--keep", 3)
        self.assert_counted(line, "checkpoints", trials=1, errors=0, results=12, checkpoints=3)
        self.assertGreaterEqual(line["written_bytes"], 12 * 100_000, "a worker's writes are not in it")
        kept = list((self.storage / "checkpoints").glob("*/checkpoint_*/state"))
        self.assertEqual([file.stat().st_size for file in kept], [100_000] * 3)
        self.assertEqual(len(list((self.storage / "plain").iterdir())), 3)

    def test_population_based_training(self):
        [line] = self.lines("pbt", "--population", 4, "--slots", 4, "--steps", 12, "--step-ms", 1, "--interval", 3,
                            "--bytes", 5000, "--keep", 2)
        self.assert_counted(line, "pbt", trials=4, terminated=4, errors=0)
        self.assertGreaterEqual(line["results"], 12)
        self.assertGreaterEqual(line["checkpoints"], 4)
        for trial in (self.storage / "pbt").glob("0*"):
            last = json.loads((trial / "result.json").read_text().splitlines()[-1])
            self.assertEqual(last["training_iteration"], 12)
            self.assertLessEqual(len(list(trial.glob("checkpoint_*"))), 2)
        self.assertEqual(len(list((self.storage / "plain").glob("*/checkpoint_*"))), 8)

    def test_share_of_slots_and_the_cpu_time_of_all_processes(self):
        [line] = self.lines("slot-share", "--trials", 4, "--slots", 2, "--steps", 10, "--step-ms", 4)
        self.assert_counted(line, "slot_share", trials=4, terminated=4, errors=0)
        self.assertGreater(line["share"], 0)
        self.assertLessEqual(line["share"], 1)
        # Every step takes at least 4 ms of a worker's CPU time.
        self.assertGreaterEqual(line["cpu_s"], 0.99 * line["results"] * 0.004, "the workers' time is not in it")
        self.assertGreaterEqual(line["own_code_s"], 0.99 * line["results"] * 0.004)

    def test_trials(self):
        lines = self.lines("trials", "--trials", "7,3")
        self.assertEqual([line["trials"] for line in lines], [7, 3])
        for line in lines:
            self.assert_counted(line, f"local_{line['trials']}", errors=0, results=0, engine="local")
            self.assertGreater(line["growth"], 0)
        self.assertEqual(len(list(self.storage.glob("local_100_*"))), 5)

    def test_programs(self):
        [line] = self.lines("programs", "--trials", 5, "--slots", 2)
        self.assert_counted(line, "programs", trials=5, terminated=5, errors=0, results=0)
        self.assertAlmostEqual(line["beyond_ms"], line["wall_ms_per_trial"] - line["plain_ms_per_start"])

    def test_restart_repeats_nothing(self):
        killed, finished = self.lines("restart", "--trials", 3, "--steps", 9, "--kills", 2, "--finished", 40)
        self.assert_counted(killed, "restart", trials=3, terminated=3, errors=0, results=27, repeated_results=0)
        with sqlite3.connect(f"file:{self.storage / 'restart' / 'experiment.db'}?mode=ro", uri=True) as store:
            self.assertEqual(store.execute("SELECT attempt FROM trials").fetchall(), [(3,)] * 3)
        self.assert_counted(finished, "restart_40", trials=42, terminated=42, errors=0, results=0, finished=40)
        self.assertGreater(finished["restart_s"], 0)
        self.assertEqual(len((self.storage / "restart_40_first_lines").read_text().splitlines()), 2)

    def test_memory_with_all_trials_where_they_are_to_be(self):
        [line] = self.lines("memory", "--trials", 3)
        self.assertEqual([line[f"{state}_workers"] for state in ["idle", "running", "parked"]], [0, 3, 3])
        self.assertEqual((line["running_paused"], line["parked_paused"]), (0, 2))
        for state in ["idle", "running", "parked"]:
            self.assertGreater(line[f"{state}_anonymous_mb"], 0)
            self.assertEqual(counted(self.storage / state)["errors"], 0)

    def tuned_networks(self, scheduler):
        command = [BIN / "cadre_scheduler_bench", "--scheduler", json.dumps(scheduler), "--trials", "40"]
        done = subprocess.run([*command, "--parallel", "1", "--storage-path", self.storage], capture_output=True,
                              text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_networks_report_the_errors_of_the_table(self):
        line = self.tuned_networks({"type": "FIFO"})
        curves = list(functions.mnist_table().values())
        errors = itertools.chain.from_iterable(curves[row] for row in line["rows"])
        self.assertEqual(len(line["rows"]), 40)
        self.assertEqual(line["best"], list(itertools.accumulate(errors, min)))

    def test_a_scheduler_gets_the_same_networks_and_ends_some(self):
        line = self.tuned_networks({"type": "ASHAScheduler", "max_t": 27})
        self.assertEqual(line["rows"], self.tuned_networks({"type": "FIFO"})["rows"])
        self.assertLess(len(line["best"]), 40 * 27 / 2)

    def test_a_searcher_finds_networks_of_the_table(self):
        done = subprocess.run([BIN / "cadre_search_bench", "--searcher", '{"type": "TPE"}', "--function", "mnist"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        best = json.loads(done.stdout)["best"]
        self.assertEqual(len(best), 100)
        self.assertLess(set(best), {curve[-1] for curve in functions.mnist_table().values()})

    def test_training_runs(self):
        [start] = self.lines("train-start", "--workers", 2, "--starts", 2)
        self.assertLessEqual(start["best_s"], start["median_s"])
        self.assertAlmostEqual(start["figures"][0]["ratio"], start["median_s"] / start["plain_median_s"])
        [reports] = self.lines("train-reports", "--workers", 2, "--reports", 20)
        self.assertEqual(reports["results"], counted(self.storage / "reports")["results"])
        self.assertEqual(reports["results"], 20)
        self.assertLessEqual(reports["report_p50_ms"], reports["report_p99_ms"])
        [saved] = self.lines("train-checkpoints", "--workers", 2, "--bytes", 5000, "--steps", 6)
        self.assertEqual((saved["results"], saved["checkpoints"]), (6, 2))
        [late] = self.lines("train-checkpoints", "--workers", 2, "--bytes", 5000, "--steps", 6, "--mode", "async")
        self.assertEqual((late["results"], late["checkpoints"]), (6, 2))
        for line in saved, late:  # with the user's own write, which the plain operation has, too
            self.assertAlmostEqual(line["ratio"], line["write_and_report_p50_ms"] / line["plain_write_rename_p50_ms"])
            self.assertGreater(line["write_and_report_p50_ms"], line["beyond_write_p50_ms"])
        for mode in ("sync", "async"):
            kept = list((self.storage / f"checkpoints_{mode}").glob("checkpoint_*/model"))
            self.assertEqual([file.stat().st_size for file in kept], [5000] * 2)

    def test_validation(self):
        [line] = self.lines("validation", "--validations", 3, "--validator-ms", 1, "--steps", 20, "--step-ms", 0.1,
                            "--interval", 5, "--pairs", 1, "--in-flight", 3, "--waiting-ms", 50)
        self.assertEqual(line["results"], 3)
        self.assertEqual(line["most_at_a_time"], 3)
        self.assertGreater(line["beyond_p50_ms"], 0)
        self.assertGreater(line["step_ratio"], 0)
        for name, validations in [("latency", 3), ("in_flight", 30), ("alone_0", 0), ("beside_0", 4)]:
            with sqlite3.connect(f"file:{self.storage / name / 'experiment.db'}?mode=ro", uri=True) as store:
                [(count,)] = store.execute("SELECT count(*) FROM events WHERE kind = 'validator_returned'").fetchall()
                self.assertEqual(count, validations)

    def test_cluster(self):
        lines = self.lines("cluster", "--trials", 4, "--reports", 160, "--workers", 20, "--agents", 3, "--reports-each", 8,
                           "--simulated-trials", 500, "--simulated-nodes", 20, "--rounds", 1)
        self.assertEqual([line.get("trials") for line in lines], [4, 1, 16, None, None])
        for line in lines:
            self.assertGreater(line["ratio"], 0)

    def test_batch_inference_tells_the_same_images_rightly_in_every_way(self):
        program = BIN / "cadre_batch_inference"
        if not program.exists():
            self.skipTest("this was built without torch or Arrow")
        data = pathlib.Path(__file__).resolve().parents[1] / "data" / "mnist"

        def run(way):
            done = subprocess.run([program, "--way", way, "--folder", self.storage, "--images", "1500", "--data-folder",
                                   data], capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), way)
            return done.stdout
        self.storage.mkdir(parents=True)
        self.assertEqual(run("write"), "")
        lines = [json.loads(run(way)) for way in ["loop", "loops", "map_batches"]]
        self.assertEqual(len({line["right"] for line in lines}), 1)
        self.assertGreater(lines[0]["right"], 0)
        for line in lines:
            self.assertAlmostEqual(line["rows_per_s"] * line["seconds"], 1500)

    def test_images_have_the_same_pixels_in_every_way(self):
        program = BIN / "cadre_read_images"
        if not program.exists():
            self.skipTest("this was built without Arrow")
        import PIL.Image  # beside Ray, in the environment of the tests
        self.storage.mkdir(parents=True)
        for number in range(5):
            PIL.Image.new("RGB", (40, 30), (number * 50, 10, 20)).save(self.storage / f"{number}.jpg")
        for size in 0, 16:
            done = subprocess.run([program, "--folder", self.storage, "--size", str(size)], capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([line["way"] for line in lines], ["loop", "dataset"])
            self.assertEqual([line["images"] for line in lines], [5, 5])
            self.assertEqual(len({line["sum"] for line in lines}), 1)
        done = subprocess.run([program, "--folder", self.storage, "--dataset-first"], capture_output=True, text=True, timeout=60)
        self.assertEqual([json.loads(line)["way"] for line in done.stdout.splitlines()], ["dataset", "loop"], done.stderr)

    def test_what_is_there_already_is_not_measured_again(self):
        arguments = ["reports", "--trials", 1, "--reports", 1]
        self.lines(*arguments)
        again = bench(self.storage, *arguments)
        self.assertEqual((again.returncode, again.stdout), (1, ""))
        self.assertIn("exists already", again.stderr)


class PeersTest(unittest.TestCase):
    def test_each_side_begins_in_every_other_attempt(self):
        order = []
        for attempt in range(3):
            side_by_side.run_in_turns(attempt, [lambda: order.append("ray"), lambda: order.append("cadre")])
        self.assertEqual(order, ["ray", "cadre", "cadre", "ray", "ray", "cadre"])

    def test_each_side_of_inference_begins_in_every_other_run(self):
        order = []

        def run(command, cpus):
            order.append(command[command.index("--way") + 1] if "--way" in command else "ray")
            return [{"right": 1, "rows_per_s": 1.0, "rows_per_s_from_first_batch": 1.0}]

        with unittest.mock.patch.object(batch_inference, "run", run), contextlib.redirect_stdout(io.StringIO()), \
                unittest.mock.patch.object(sys, "argv", ["batch_inference", "nowhere", "--runs", "2"]):
            batch_inference.main()
        self.assertEqual(order, ["write", "loop", "loops", "map_batches", "ray", "ray", "map_batches", "loops", "loop"])


class PythonTest(unittest.TestCase):
    """The benchmark of trials in Python, with figures that are made up."""

    def ended(self, measure):
        with unittest.mock.patch.object(trials, "measure", measure), unittest.mock.patch.object(sys, "argv", ["trials"]), \
                contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            trials.main()
        return end.exception.code, said.getvalue()

    def test_a_limit_that_is_not_met_is_said_and_is_the_end_of_the_program(self):
        def measure(slow):
            def of_limits(args, folder, limits):
                limits.at_most("a trial, ms", 6 if slow else 5, 5)
                limits.at_least("reports a second", 10, 10)
                limits.at_most("nothing", math.nan if slow else 0, 1)
            return of_limits
        self.assertEqual(self.ended(measure(slow=False)), (0, ""))
        self.assertEqual(self.ended(measure(slow=True)), (1, "trials: a trial, ms: 6 is more than 5\n"
                                                             "trials: nothing: nan is more than 1\n"))

    def test_trials_that_have_failed_are_not_measured(self):
        results = types.SimpleNamespace(num_errors=2, errors=["ValueError: no"])
        code, _ = self.ended(lambda args, folder, limits: trials.without_errors(results))
        self.assertEqual(code, "trials: 2 trials have failed, such as ValueError: no")


class KeptResultsTest(unittest.TestCase):
    """Results that are kept are those of the programs as they are now."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def write_program(self, name, error):
        (self.folder / name).write_text(f"#!/bin/sh\necho run >>{self.folder}/runs\necho '{{\"errors\": [{error}]}}'\n",
                                        encoding="utf-8")
        (self.folder / name).chmod(0o755)

    def test_populations_of_a_changed_program_are_computed_again(self):
        args = argparse.Namespace(bin=self.folder, function="drift", trials=8, iterations=1, seeds=2, jobs=1,
                                  keep=self.folder / "kept.jsonl")
        kinds = len(compare_populations.KINDS)
        for error, runs in (0.5, 2 * kinds), (0.5, 2 * kinds), (0.25, 4 * kinds):
            self.write_program("cadre_population_bench", error)
            self.assertEqual(compare_populations.results(args)["PBT"], [[error], [error]])
            self.assertEqual((self.folder / "runs").read_text(encoding="utf-8").count("run"), runs)

    @unittest.skipUnless(importlib.util.find_spec("scipy"), "there is no scipy")
    def test_a_changed_program_is_searched_with_again_and_optuna_is_not(self):
        import compare
        files = []

        def lines_of(command, seeds, kept):
            files.append(kept.name)
            return [{"best": [float(seed)], "seconds": 1.0} for seed in seeds]

        args = argparse.Namespace(bin=self.folder, first_seed=1000, seeds=3, keep=self.folder)
        with unittest.mock.patch.object(compare, "lines_of", lines_of):
            for error in 0.5, 0.5, 0.25:
                self.write_program("cadre_search_bench", error)
                compare.compare(args, "tpe", "branin", 1)
        own, peer = files[::2], files[1::2]
        self.assertEqual((own[0], len(set(own)), len(set(peer))), (own[1], 2, 1))


class DashboardTest(unittest.TestCase):
    """The comparison with and without a dashboard, with programs that are made up."""

    def measure(self, path, dashboard):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            for name, script in ("cadre", dashboard), ("cadre_bench", "echo '{\"reports_per_s\": 1}'"):
                (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
                (folder / name).chmod(0o755)
            program = pathlib.Path(__file__).with_name("dashboard.py")
            done = subprocess.run([sys.executable, program, folder, "--pairs", "1", "--results", folder / "results"],
                                  capture_output=True, text=True, timeout=60, env={"PATH": path})
            self.assertEqual(done.returncode, 1, done.stdout)
            return done.stderr

    def test_without_curl_there_are_no_pages(self):
        self.assertIn("apt-get install curl", self.measure("/nowhere", "exit"))

    @unittest.skipUnless(shutil.which("curl"), "there is no curl")
    def test_pages_that_receive_nothing_are_not_measured(self):
        serves_nothing = "echo http://127.0.0.1:1/; exec sleep 60"
        self.assertIn("they received [] bytes", self.measure(os.environ["PATH"], serves_nothing))
        self.assertIn("dashboard has ended with 3", self.measure(os.environ["PATH"], "exit 3"))


class TableTest(unittest.TestCase):
    def test_medians_over_runs_are_judged(self):
        def line(value, torch=False):
            return {"torch": torch, "figures": [{"figure": "a trial", "value": value, "unit": "ms", "ratio": 2.0,
                                                 "budget": 2.0, "limit": "at most", "met": value <= 2}]}
        self.assertEqual(list(run_all.rows([line(1.0), line(9.0), line(2.0), line(3.0, torch=True)])),
                         [("a trial", "2 ms", "at most 2", "yes", "2x"),
                          ("a trial, with torch", "3 ms", "at most 2", "NO", "2x")])

    def test_limits_from_below(self):
        figure = {"figure": "share", "value": 0.95, "unit": "", "budget": 0.9, "limit": "at least", "met": True}
        self.assertEqual(list(run_all.rows([{"torch": False, "figures": [figure]}])),
                         [("share", "0.95", "at least 0.9", "yes", "")])

    def test_trials_in_error_and_repeated_results_are_faults_whatever_the_figures_are(self):
        good = {"workload": "reports", "torch": False, "figures": [], "errors": 0}
        self.assertEqual(list(run_all.faults([good, good | {"repeated_results": 0}])), [])
        self.assertEqual(list(run_all.faults([good | {"errors": 3}, good | {"repeated_results": 1, "torch": True}])),
                         ["reports: 3 trials in error", "reports, with torch: 1 results that were repeated"])

    def made_up_build(self, script):
        """Makes a folder with a cadre_bench that is a script of the shell."""
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        (folder / "cadre_bench").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / "cadre_bench").chmod(0o755)
        return folder

    def ended(self, program, *builds, only="^train-start"):
        with tempfile.TemporaryDirectory() as results:
            done = subprocess.run([sys.executable, program.__file__, *builds, "--runs", "1", "--only", only, "--results",
                                   results], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stderr

    def test_budgets_are_not_met_where_trials_failed_or_no_workload_was_chosen(self):
        line = {"workload": "train-start", "torch": False, "figures": [{"figure": "a trial", "value": 1, "unit": "ms"}]}
        for errors in 0, 2:
            code, said = self.ended(run_all, self.made_up_build(f"echo '{json.dumps(line | {'errors': errors})}'"))
            self.assertEqual((code, "trials in error" in said), (bool(errors), bool(errors)), said)
        for program in run_all, compare_builds:
            build = self.made_up_build("exit 1")
            code, said = self.ended(program, *[build] * (1 if program is run_all else 2), only="no-such-workload")
            self.assertEqual(code, 2)
            self.assertIn("there are: empty-trial", said)

    def test_a_build_that_fails_is_worse_and_one_without_the_workload_is_not(self):
        line = {"workload": "train-start", "torch": False, "figures": [{"figure": "a trial", "value": 1, "unit": "ms"}]}
        works = self.made_up_build(f"echo '{json.dumps(line)}'")
        for script, expected in ("exit 1", 1), ("kill -9 $$", 1), ("exit 2", 0):
            code, said = self.ended(compare_builds, works, self.made_up_build(script))
            self.assertEqual((code, "compare_builds: failed" in said), (expected, bool(expected)), said)

    def test_builds_are_compared_by_pairs_of_runs(self):
        def pairs(limit, *ratios):  # the machine gets slower, both builds with it
            return [({"value": 10.0 * slow, "unit": "ms", "limit": limit}, {"value": 10.0 * slow * ratio, "unit": "ms", "limit": limit})
                    for slow, ratio in enumerate(ratios, 1)]
        for limit, ratios, expected in ("at most", (1.1, 1.05, 1.2), "WORSE"), ("at most", (0.9, 0.8, 1.3), ""), ("at most", (1.01, 1.01, 1.01), ""), \
                ("at least", (0.9, 0.95, 0.8), "WORSE"), ("at least", (1.1, 1.2, 1.1), ""):
            shown, is_worse = compare_builds.row("a trial", pairs(limit, *ratios), 0.02)
            self.assertEqual((shown[-1], is_worse), (expected, bool(expected)), ratios)
            self.assertEqual([shown[1], shown[3]], ["20 ms", f"{sorted(ratios)[1]:.3f}"])

    def test_a_figure_that_one_build_lacks_is_in_the_table_and_not_worse(self):
        new, shared = ({"figure": name, "value": 1, "unit": "ms"} for name in ("new", "shared"))
        builds = []
        for figures in [shared], [shared, new]:
            line = {"workload": "train-start", "torch": False, "figures": figures}
            builds.append(self.made_up_build(f"echo '{json.dumps(line)}'"))
        for folders, expected in (builds, "only after"), (builds[::-1], "only before"):
            with tempfile.TemporaryDirectory() as results:
                done = subprocess.run([sys.executable, compare_builds.__file__, *folders, "--runs", "2", "--only", "^train-start",
                                       "--results", results], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = [line.split() for line in done.stdout.splitlines()[1:]]
            self.assertEqual(rows, [["new", "1", "ms", *expected.split()],
                                    ["shared", "1", "ms", "1", "ms", "1.000", "1.000", "to", "1.000"]])

    def test_a_build_compared_with_itself_has_all_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, compare_builds.__file__, BIN, BIN, "--runs", "1", "--only", "^train-start", "--allowed", "1000", "--results", folder],
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("after/before", done.stdout.splitlines()[0])
            self.assertGreaterEqual(len(done.stdout.splitlines()), 2, done.stdout)


if __name__ == "__main__":
    unittest.main()
