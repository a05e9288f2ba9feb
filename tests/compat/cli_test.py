"""The program `cadre` on real experiments: its output, its exit codes, and other programs that read its output."""

import contextlib
import csv
import io
import json
import math
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree

import pandas
import PIL.Image

BIN = pathlib.Path(os.environ["CADRE_BIN"])
CONTROL = set(map(chr, range(32))) - {"\n"} | {"\x7f", "\u202e"}


def cadre(*arguments, code=0, **environment):
    """Runs the program in 80 columns; returns its standard output, or its messages if it fails."""
    done = subprocess.run([BIN / "cadre", *map(str, arguments)], capture_output=True, timeout=120,
                          env=os.environ | {"COLUMNS": "80", "LC_ALL": "C.UTF-8"} | environment)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return (done.stdout if code == 0 else done.stderr).decode()


def document(*arguments):
    return json.loads(cadre(*arguments, "--json"))


def run_console_tool(storage, *settings):
    pathlib.Path(storage).mkdir(exist_ok=True)
    return subprocess.Popen([BIN / "console_tool", storage, "verbose=0", *settings], stdout=subprocess.DEVNULL,
                            cwd=storage)


def agents_of(controller):
    """Returns the agents that a controller has on this machine."""
    children = pathlib.Path(f"/proc/{controller}/task/{controller}/children").read_text().split()
    return [int(child) for child in children
            if b"\0CADRE_AGENT=" in b"\0" + pathlib.Path(f"/proc/{child}/environ").read_bytes()]


def files_of(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*")
            if path.is_file() and not path.name.endswith("-shm")}  # SQLite's index of the log


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.storage = pathlib.Path(cls.temporary.name)
        subprocess.run([BIN / "experiment_tool", cls.storage], check=True, timeout=120)
        cls.experiment = cls.storage / "experiment"
        cls.rows = {path.name[:5]: [json.loads(line) for line in (path / "result.json").read_text().splitlines()]
                    for path in sorted(cls.experiment.iterdir()) if path.is_dir()}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def copy(self, name):
        target = self.storage / name
        shutil.copytree(self.experiment, target)
        self.addCleanup(shutil.rmtree, target)
        return target

    def start_until_gate(self, name, *settings):
        """Starts an experiment in a folder of its own whose trials wait before their third iteration. Returns its
        process, its directory and the gate, which lets one trial go on for each byte, and all when it is closed."""
        storage = self.storage / name
        storage.mkdir()
        self.addCleanup(shutil.rmtree, storage)
        os.mkfifo(storage / "gate1")
        process = run_console_tool(storage, "gates=1", *settings)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        gate = open(storage / "gate1", "wb", buffering=0)  # waits for the first trial
        self.addCleanup(gate.close)
        return process, storage / "experiment", gate

    # ---- Its output agrees with the files

    def test_trials_are_as_their_files_say(self):
        shown = document("show", self.experiment)
        self.assertEqual(shown["experiment"]["state"], "finished")
        self.assertEqual(len(shown["trials"]), 6)
        for trial in shown["trials"]:
            rows = self.rows[trial["trial_id"]]
            self.assertEqual(trial["results"], len(rows))
            for key, value in trial["metrics"].items():
                self.assertEqual(value, rows[-1][key], key)
            self.assertEqual(trial["config"], rows[-1]["config"])
            self.assertEqual(trial["drawn_config"], rows[0]["config"])
            self.assertEqual(set(trial["sampled"]), {"lr"})
            kept = [pathlib.Path(one["path"]).name for one in trial["best_checkpoints"]]
            self.assertEqual(kept, sorted(path.name for path in pathlib.Path(trial["path"]).glob("checkpoint_*"))[-2:])

    def test_exploits_are_those_of_the_policy_log(self):
        logged = [json.loads(line) for line in (self.experiment / "pbt_global.txt").read_text().splitlines()]
        told = []
        for trial in document("show", self.experiment)["trials"]:
            for exploit in trial["exploits"]:
                told.append([int(trial["trial_id"]), int(exploit["donor"]), exploit["training_iteration"],
                             exploit["donor_iteration"], exploit["config"]])
                for change in exploit["changes"]:
                    self.assertEqual(exploit["config"][change["key"]], change["after"])
        expected = [[int(line[0].split("_")[0]), int(line[1].split("_")[0]), line[2], line[3], line[5]] for line in logged]
        self.assertCountEqual(told, expected)
        self.assertGreater(len(told), 0)

    def test_the_best_trial_of_each_scope(self):
        scores = {trial: [row["score"] for row in rows] for trial, rows in self.rows.items()}
        mean = lambda values: sum(values) / len(values)
        for scope, value_of in {"last": lambda v: v[-1], "avg": mean, "min": min, "max": max,
                                "last-5-avg": lambda v: mean(v[-5:]), "last-10-avg": lambda v: mean(v[-10:])}.items():
            for mode, best_of in ("max", max), ("min", min):
                values = {trial: value_of(v) for trial, v in scores.items()}
                told = document("best", self.experiment, "--metric", "score", "--mode", mode, "--scope", scope)
                self.assertAlmostEqual(told["value"], best_of(values.values()), places=12)
                self.assertAlmostEqual(values[told["trial_id"]], told["value"], places=12)
        # "late" begins with iteration 7 and is NaN once: results without a number do not count.
        told = document("best", self.experiment, "--metric", "late", "--scope", "min", "--mode", "min")
        self.assertEqual(told["value"], min(row["late"] for rows in self.rows.values() for row in rows
                                            if "late" in row and not math.isnan(row["late"])))

    def test_the_path_of_a_checkpoint_is_for_scripts(self):
        path = cadre("best", self.experiment, "--metric", "score", "--checkpoint")
        self.assertEqual(path.count("\n"), 1)
        self.assertTrue((pathlib.Path(path.strip()) / "state").exists())

    def test_the_pareto_front_has_what_no_other_trial_beats(self):
        last = {trial: (rows[-1]["score"], rows[-1]["config"]["lr"]) for trial, rows in self.rows.items()}
        losses = {trial: rows[-1]["eval"]["loss"] for trial, rows in self.rows.items()}
        front = document("best", self.experiment, "--pareto", "score:max,eval/loss:max")["front"]
        beaten = {a for a in last for b in last if a != b and last[b][0] >= last[a][0] and losses[b] >= losses[a]
                  and (last[b][0] > last[a][0] or losses[b] > losses[a])}
        self.assertEqual({one["trial_id"] for one in front}, set(last) - beaten)
        scores = [one["values"]["score"] for one in front]
        self.assertEqual(scores, sorted(scores, reverse=True))
        text = cadre("best", self.experiment, "--pareto", "score,eval/loss:max")
        self.assertIn(f"Pareto front of experiment: {len(front)} of 6 trials, by score (max), eval/loss (max) (last)", text)
        self.assertRegex(text, r"Trial .* score +eval/loss")
        self.assertIn("write eval/loss:min or eval/loss:max",
                      cadre("best", self.experiment, "--pareto", "score,eval/loss", code=1))
        self.assertTrue(cadre("best", self.experiment, "--pareto", "score", "--metric", "score", code=2))

    def test_a_picture_of_the_pareto_front(self):
        target = self.storage / "front.svg"
        cadre("plot", self.experiment, "--pareto", "score,eval/loss:max", "--log", "score", "-o", target)
        root = xml.etree.ElementTree.parse(target).getroot()
        text = " ".join(root.itertext())
        for word in "experiment", "score (max)", "eval/loss (max)", "Pareto front: ", "00003 lr=":
            self.assertIn(word, text)
        circles = [one for one in root.iter("{http://www.w3.org/2000/svg}circle") if len(one)]
        self.assertEqual(len(circles), 6)

    def test_importances_of_too_few_trials_are_an_error(self):
        self.assertIn("needs at least 10 trials with a finite number \"score\"",
                      cadre("importance", self.experiment, code=1))

    def test_a_checkpoint_that_is_not_of_the_best_result_says_so_on_stderr(self):
        for scope in "last", "max":
            command = [BIN / "cadre", "best", self.experiment, "--metric", "score", "--scope", scope, "--checkpoint"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
            told = document("best", self.experiment, "--metric", "score", "--scope", scope)
            kept = {one["path"]: one["metrics"] for one in told["trial"]["best_checkpoints"]}
            saved = kept[done.stdout.strip()]
            if saved["score"] == told["value"]:
                self.assertEqual(done.stderr, "")
            else:
                self.assertEqual(done.stderr, f"cadre: the checkpoint is of iteration {saved['training_iteration']}, "
                                 f"score={saved['score']!r}; the trial's value is {told['value']!r}\n")

    def test_sorted_filtered_chosen(self):
        shown = document("show", self.experiment, "--sort", "score", "--desc", "--limit", 3)["trials"]
        scores = sorted((rows[-1]["score"] for rows in self.rows.values()), reverse=True)
        self.assertEqual([trial["metrics"]["score"] for trial in shown], scores[:3])
        shown = document("show", "--filter", f"score >= {scores[2]!r}", "--filter", "status == TERMINATED",
                         self.experiment)["trials"]
        self.assertCountEqual([trial["metrics"]["score"] for trial in shown], scores[:3])
        for text in "00003", '"00003"':
            shown = document("show", self.experiment, "--filter", f"trial_id == {text}")["trials"]
            self.assertEqual([trial["trial_id"] for trial in shown], ["00003"], text)
        text = cadre("show", self.experiment, "--columns", "score,config/lr,exploits")
        self.assertRegex(text, r"Trial +score +config/lr +exploits")

    def test_the_policy_is_shown_and_copied(self):
        policy = max(self.experiment.glob("pbt_policy_*.txt"), key=lambda path: path.stat().st_size)
        trial = policy.stem[-5:]
        lines = [json.loads(line) for line in policy.read_text().splitlines()]
        told = document("replay", self.experiment, trial)["schedule"]
        self.assertEqual(told[0]["config"], lines[0][4])
        self.assertEqual([(step["iteration"], step["config"]) for step in told[1:]], [(l[3], l[5]) for l in lines])
        target = self.storage / "policy.txt"
        cadre("replay", self.experiment, trial, "-o", target)
        self.assertEqual(target.read_bytes(), policy.read_bytes())

    def test_a_picture_is_svg(self):
        target = self.storage / "curves.svg"
        cadre("plot", self.experiment, "--metrics", "score,eval/loss", "--x", "time_total_s", "-o", target)
        text = " ".join(xml.etree.ElementTree.parse(target).getroot().itertext())
        for word in "experiment", "eval/loss", "time_total_s", "00003":
            self.assertIn(word, text)
        cadre("plot", self.experiment, "--metrics", "config/lr", "-o", target)
        root = xml.etree.ElementTree.parse(target).getroot()
        self.assertIn("config/lr", " ".join(root.itertext()))
        exploits = sum(len(trial["exploits"]) for trial in document("show", self.experiment)["trials"])
        self.assertEqual(len([path for path in root.iter("{http://www.w3.org/2000/svg}path")
                              if path.get("class") == "exploit"]), exploits)
        self.assertIn("results have: score, eval/loss, big, late, config/lr",
                      cadre("plot", self.experiment, "--metrics", "config/act", code=1))
        self.assertIn("no result of experiment has a number \"nothing\"",
                      cadre("plot", self.experiment, "--metrics", "nothing", code=1))

    def test_a_picture_is_png_if_its_file_is_called_so(self):
        target = self.storage / "curves.png"
        self.assertEqual(cadre("plot", self.experiment, "--metrics", "score,config/lr", "-o", target), f"{target}\n")
        with PIL.Image.open(target) as picture:
            self.assertEqual(picture.format, "PNG")
            colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}
            svg = xml.etree.ElementTree.fromstring(cadre("plot", self.experiment, "--metrics", "score,config/lr", "-o", "-"))
            self.assertEqual(picture.size, (2 * int(svg.get("width")), 2 * int(svg.get("height"))))
        for colour in (0, 114, 178), (213, 94, 0), (0, 158, 115), (255, 255, 255):  # lines, and what is behind them
            self.assertIn(colour, colours)
        before = target.read_bytes()
        folder = self.storage / "no_librsvg"
        folder.mkdir()
        (folder / "librsvg-2.so.2").touch()
        self.assertIn("a PNG picture needs librsvg and cairo, which are not installed: `apt-get install librsvg2-2`",
                      cadre("plot", self.experiment, "-o", target, code=1, LD_LIBRARY_PATH=str(folder)))
        self.assertEqual(target.read_bytes(), before)
        self.assertIn("curves.jpg: a picture's file ends with .svg or .png",
                      cadre("plot", self.experiment, "-o", self.storage / "curves.jpg", code=1))

    def test_logarithmic_axes_are_of_what_is_plotted(self):
        texts = lambda *options: set(xml.etree.ElementTree.fromstring(
            cadre("plot", self.experiment, "-o", "-", *options)).itertext())
        self.assertIn("20", texts())
        self.assertLess({"1", "2", "5", "10", "20"}, texts("--log", "training_iteration"))
        errors = cadre("plot", self.experiment, "--log", "late", code=1)
        self.assertIn("\"late\" is not plotted: there are score over training_iteration", errors)

    # ---- Results as they come

    def test_the_latest_results(self):
        lines = cadre("tail", self.experiment, "3", "-n", "3").splitlines()
        rows = self.rows["00003"][-3:]  # not always 22 to 24: an exploit leaves steps out
        self.assertEqual([line.split()[1:3] for line in lines],
                         [["00003", str(row["training_iteration"])] for row in rows])
        for line, row in zip(lines, rows):
            self.assertIn(f"  score={row['score']:.6g}"[:12], line)
        told = [json.loads(line) for line in cadre("tail", self.experiment, "-n", "100000", "--json").splitlines()]
        self.assertEqual(len(told), sum(map(len, self.rows.values())))
        for trial, rows in self.rows.items():
            metrics = [one["metrics"] for one in told if one["trial_id"] == trial]
            self.assertEqual([one["score"] for one in metrics], [row["score"] for row in rows])
        self.assertNotIn("score", cadre("tail", self.experiment, "--metrics", "eval/loss"))
        self.assertIn("eval/loss=", cadre("tail", self.experiment, "--metrics", "eval/loss"))
        done = subprocess.run([BIN / "cadre", "tail", self.experiment, "--metrics", "scoer,score"], capture_output=True, text=True, timeout=120)
        self.assertIn("cadre: none of these results has the metric scoer; they have ", done.stderr)
        self.assertNotIn("metric score;", done.stderr)
        self.assertIn("there is no trial", cadre("tail", self.experiment, "9", code=1))

    def test_results_are_followed_until_the_experiment_ends(self):
        _, experiment, gate = self.start_until_gate("followed", "trials=2", "iterations=6")
        tail = subprocess.Popen([BIN / "cadre", "tail", "-f", "--json", experiment], stdout=subprocess.PIPE)
        self.addCleanup(tail.stdout.close)
        self.addCleanup(tail.kill)
        first = [json.loads(tail.stdout.readline()) for _ in range(2)]
        gate.write(b"....")
        told = first + [json.loads(line) for line in tail.stdout]
        self.assertEqual(tail.wait(60), 0)
        steps = {trial: [one["metrics"]["training_iteration"] for one in told if one["trial_id"] == trial]
                 for trial in ("00000", "00001")}
        self.assertEqual(steps, {trial: [1, 2, 3, 4, 5, 6] for trial in steps})

    def test_a_published_copy_has_results_and_cannot_be_followed(self):
        storage = self.storage / "published"
        uri = f"file://{storage}"
        subprocess.run([BIN / "experiment_tool", uri], check=True, timeout=120,
                       env=os.environ | {"HOME": str(self.storage)})
        self.addCleanup(shutil.rmtree, storage)
        self.assertIn("  00003     24  score=", cadre("tail", uri + "/experiment", "3", "-n", "1"))
        self.assertIn("is read in a copy of what was published last, which does not grow",
                      cadre("tail", "-f", uri + "/experiment", code=1))

    # ---- Tables for other programs

    def test_pandas_reads_the_tables(self):
        for all_rows in [], ["--all"]:
            text = cadre("export", self.experiment, *all_rows)
            table = pandas.read_csv(io.StringIO(text), dtype={"trial_id": str}, float_precision="round_trip")
            lines = cadre("export", self.experiment, "--format", "jsonl", *all_rows)
            frame = pandas.read_json(io.StringIO(lines), lines=True, dtype={"trial_id": str}, precise_float=True)
            expected = [(trial, row) for trial, rows in sorted(self.rows.items()) for row in (rows if all_rows else rows[-1:])]
            self.assertEqual(len(table), len(expected))
            self.assertEqual(len(frame), len(expected))
            for i, (trial, row) in enumerate(expected):
                self.assertEqual(table["trial_id"][i], trial)
                self.assertEqual(frame["trial_id"][i], trial)
                self.assertEqual(table["score"][i], row["score"])
                self.assertEqual(table["eval/words"][i], 'a "b", c')
                self.assertEqual(table["big"][i], 1 << 62)
                self.assertEqual(table["config/lr"][i], row["config"]["lr"])
                self.assertEqual(frame["config"][i], row["config"])
                parsed = json.loads(lines.splitlines()[i])
                self.assertEqual({key: parsed[key] for key in ("score", "eval", "weights")},
                                 {key: row[key] for key in ("score", "eval", "weights")})

    def test_the_best_rows(self):
        rows = list(csv.DictReader(io.StringIO(cadre("export", self.experiment, "--best", "--metric", "eval/loss", "--mode", "max"))))
        for row in rows:
            self.assertEqual(float(row["eval/loss"]), max(one["eval"]["loss"] for one in self.rows[row["trial_id"]]))

    def test_a_table_that_cannot_be_made_leaves_the_file_of_a_former_one(self):
        file = self.storage / "table.csv"
        self.addCleanup(file.unlink)
        cadre("export", self.experiment, "-o", file)
        former = file.read_text()
        self.assertIn("trial_id", former)
        self.assertIn("--mode", cadre("export", self.experiment, "--best", "--metric", "eval/loss", "-o", file, code=1))
        self.assertEqual(file.read_text(), former)

    def test_an_export_that_is_cut_off_leaves_the_file_of_a_former_one(self):
        storage = self.storage / "cut"
        self.assertEqual(run_console_tool(storage, "trials=1", "iterations=1000", "fifo=1").wait(120), 0)
        self.addCleanup(shutil.rmtree, storage)
        file = storage / "table.csv"
        cadre("export", storage / "experiment", "--all", "-o", file)
        former = file.read_text()
        limit = 50_000  # bytes of a file: more than SQLite's, and less than the table
        self.assertGreater(len(former), limit)
        done = subprocess.run([BIN / "cadre", "export", storage / "experiment", "--all", "-o", file], check=False,
                              timeout=120, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(done.returncode, -signal.SIGXFSZ)
        self.assertEqual(file.read_text(), former)

    def test_devices_and_pipes_are_written_to(self):
        table = cadre("export", self.experiment)
        self.assertEqual(cadre("export", self.experiment, "-o", "/dev/stdout"), table)
        self.assertIn("<html", cadre("report", self.experiment, "-o", "/dev/stdout"))
        pipe = self.storage / "pipe"
        os.mkfifo(pipe)
        self.addCleanup(pipe.unlink)
        with subprocess.Popen([BIN / "cadre", "export", self.experiment, "-o", pipe]) as writer:
            self.assertEqual(pipe.read_text(), table)
            self.assertEqual(writer.wait(timeout=120), 0)
        self.assertTrue(pipe.is_fifo())

    # ---- Experiments in every state

    def test_nothing_is_changed(self):
        before = files_of(self.experiment)
        for command in ["show"], ["best", "--metric", "score"], ["export", "--all"]:
            cadre(command[0], self.experiment, *command[1:])
        cadre("ls", self.storage)
        self.assertEqual(files_of(self.experiment), before)
        self.assertEqual({path.name for path in self.experiment.glob("experiment.db*")}, {"experiment.db"})

    def test_a_moved_experiment_has_its_new_place(self):
        moved = self.copy("moved elsewhere")
        shown = document("show", moved)
        self.assertEqual(shown["experiment"]["name"], "moved elsewhere")
        for trial in shown["trials"]:
            self.assertTrue(pathlib.Path(trial["checkpoint"]).is_dir())
            self.assertTrue(trial["checkpoint"].startswith(str(moved)))

    def test_a_population_that_is_larger_than_the_machine_is_shown_from_the_beginning(self):
        _, experiment, _ = self.start_until_gate("large", "trials=4", "cpus=1")
        self.assertEqual([trial["status"] for trial in document("show", experiment)["trials"]],
                         ["RUNNING", "PENDING", "PENDING", "PENDING"])
        self.assertIn("PENDING", cadre("show", experiment, 2))
        self.assertIn("running", cadre("ls", experiment.parent))
        self.assertIn("00000", cadre("best", experiment))
        self.assertEqual(len(cadre("export", experiment, "--all").splitlines()), 3)  # including the header
        cadre("plot", experiment, "-o", experiment.parent / "curves.svg")

    def test_running_then_killed(self):
        process, experiment, gate = self.start_until_gate("live", "trials=2", "iterations=6")
        shown = document("show", experiment)
        self.assertEqual(shown["experiment"]["state"], "running")
        self.assertIn(f"process {process.pid} on ", shown["experiment"]["controller"])
        self.assertIn(2, [trial["results"] for trial in shown["trials"]])
        self.assertIn("RUNNING", [trial["status"] for trial in shown["trials"]])
        self.assertIn("running", cadre("ls", experiment.parent))
        process.send_signal(signal.SIGKILL)
        process.wait()
        gate.close()
        before = files_of(experiment)
        self.assertGreater(len(before[pathlib.Path("experiment.db-wal")]), 0)
        shown = document("show", experiment)
        self.assertEqual(shown["experiment"]["state"], "interrupted")
        self.assertEqual({trial["status"] for trial in shown["trials"]}, {"PENDING"})
        cadre("export", experiment, "--all")
        self.assertEqual(files_of(experiment), before)

    def test_names_cannot_reach_the_terminal(self):
        storage = self.storage / "hostile\x1b]0;t\x07"
        self.assertEqual(run_console_tool(storage, "hostile=1", "fail=1", "fifo=1").wait(60), 0)
        self.addCleanup(shutil.rmtree, storage)
        experiment = storage / "experiment"
        outputs = [cadre("show", experiment), cadre("ls", self.storage), cadre("best", experiment),
                   cadre("show", experiment, 9, code=1), cadre("show", storage / "none", code=1)]
        outputs += [cadre("show", experiment, trial) for trial in range(4)]
        for text in outputs:
            self.assertFalse(CONTROL & set(text), text)
        self.assertIn("it broke: evil\\x1b[2J", outputs[0])
        self.assertEqual(document("show", experiment, 1)["status"], "ERROR")
        self.assertIn("it broke: evil\x1b[2J", document("show", experiment, 1)["error"])

    def test_what_is_damaged_or_newer_is_refused(self):
        damaged = self.copy("damaged")
        store = damaged / "experiment.db"
        with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
            (metrics,) = database.execute("SELECT metrics FROM results").fetchone()
        content = bytearray(store.read_bytes())
        content[content.index(metrics.encode()) + metrics.index("0.") + 2] ^= 1
        store.write_bytes(content)
        self.assertRegex(cadre("show", damaged, code=1), r"experiment\.db is damaged near byte \d+")
        newer = self.copy("newer")
        with sqlite3.connect(newer / "experiment.db") as database:
            database.execute("DELETE FROM meta WHERE key = 'format'")
        self.assertIn("experiment.db", cadre("best", newer, code=1))
        listed = {one["name"]: one for one in document("ls", self.storage)["experiments"]}
        self.assertIn("damaged near byte", listed["damaged"]["error"])
        self.assertIsNone(listed["experiment"]["error"])
        self.assertIn("unreadable", cadre("ls", self.storage))

    def test_a_directory_that_a_restore_is_making_is_not_listed(self):
        making = self.storage / ".cadre_restoring-abc123"
        self.addCleanup(shutil.rmtree, making)
        shutil.copytree(self.experiment, making / "half")
        self.assertNotIn("half", [one["name"] for one in document("ls", self.storage)["experiments"]])

    def test_a_thousand_trials(self):
        storage = self.storage / "many"
        self.assertEqual(run_console_tool(storage, "trials=1000", "iterations=1", "fifo=1").wait(120), 0)
        self.addCleanup(shutil.rmtree, storage)
        self.assertEqual(len(document("show", storage / "experiment")["trials"]), 1000)
        self.assertEqual(len(cadre("export", storage / "experiment", "--all").splitlines()), 1001)
        for command in ["show"], ["export"], ["plot", "-o", "-"]:
            # The reader may close the pipe early.
            process = subprocess.Popen([BIN / "cadre", command[0], storage / "experiment", *command[1:]],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdout.read(100)
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            process.stderr.close()
            self.assertIn(process.wait(60), (0, -signal.SIGPIPE))

    # ---- Output of workers

    def printing(self, name, **numbers):
        storage = self.storage / name
        process = run_console_tool(storage, "print=1", "fifo=1", "trials=2", *(f"{k}={v}" for k, v in numbers.items()))
        self.addCleanup(shutil.rmtree, storage)
        return storage / "experiment", process

    def test_logs_are_what_the_files_hold(self):
        experiment, process = self.printing("prints", iterations=5)
        self.assertEqual(process.wait(60), 0)
        for trial in range(2):
            (directory,) = experiment.glob(f"0000{trial}*")
            for stream in "stdout", "stderr":
                told = subprocess.run([BIN / "cadre", "logs", experiment, str(trial), f"--{stream}"], capture_output=True,
                                      check=True)
                self.assertEqual((told.stdout, told.stderr)[stream == "stderr"], (directory / stream).read_bytes())
                self.assertEqual((told.stdout, told.stderr)[stream == "stdout"], b"")
        both = subprocess.run([BIN / "cadre", "logs", experiment, "-n", "1"], capture_output=True, check=True)
        self.assertEqual(both.stdout.count(b"printed\n"), 2)
        self.assertEqual(both.stderr, b"(trial 00000) warning 5\n(trial 00001) warning 5\n")
        self.assertIn("there is no trial", cadre("logs", experiment, 7, code=1))
        self.assertIn("nothing was printed", subprocess.run([BIN / "cadre", "logs", self.experiment], check=True,
                                                            capture_output=True).stderr.decode())

    def test_logs_of_large_cut_and_binary_files(self):
        experiment, process = self.printing("large", iterations=1)
        self.assertEqual(process.wait(60), 0)
        (directory,) = experiment.glob("00000*")
        logs = lambda *arguments: subprocess.run([BIN / "cadre", "logs", experiment, "0", "--stdout", *arguments],
                                                 capture_output=True, check=True).stdout
        lines = b"".join(b"line %d\xff\0\n" % i for i in range(500000))
        (directory / "stdout").write_bytes(lines + b"no end")
        self.assertEqual(logs(), lines + b"no end\n")
        self.assertEqual(logs("-n", "2"), b"line 499999\xff\0\nno end\n")
        self.assertEqual(logs("-n", "0"), b"")
        (directory / "stdout").write_bytes(b"x" * 5000000)  # one line, shown in parts
        self.assertEqual(logs("-n", "1").replace(b"\n", b""), b"x" * 5000000)
        cut = b"[cadre: 12345 bytes of older output were dropped here]".ljust(79) + b"\n"
        (directory / "stdout").write_bytes(cut + b"new\n")
        self.assertEqual(logs(), b"[cadre: 12345 bytes of older output were dropped here]\nnew\n")
        self.assertEqual(logs("-n", "5"), b"new\n")

    def waiting(self, name, **numbers):
        """Starts an experiment, and returns it, its process and a gate when a trial waits there, before its third iteration."""
        (self.storage / name).mkdir()
        os.mkfifo(self.storage / name / "gate1")
        experiment, process = self.printing(name, iterations=4, gates=1, **numbers)
        return experiment, process, os.open(self.storage / name / "gate1", os.O_WRONLY)

    def test_logs_follow_until_the_experiment_ends(self):
        experiment, process, gate = self.waiting("followed")
        follower = subprocess.Popen([BIN / "cadre", "logs", "-f", experiment, "--stderr"], stderr=subprocess.PIPE)
        first = [follower.stderr.readline() for _ in range(4)]
        self.assertIn(b"(trial 00000) warning 1\n", first)
        os.write(gate, b"....")
        self.assertEqual(process.wait(60), 0)
        os.close(gate)
        rest = follower.stderr.read()
        self.assertEqual(follower.wait(60), 0)
        follower.stderr.close()
        told = first + rest.splitlines(keepends=True)
        self.assertCountEqual(told, [b"(trial 0000%d) warning %d\n" % (t, s) for t in range(2) for s in range(1, 5)])
        again = subprocess.run([BIN / "cadre", "logs", "-f", experiment, "--stderr"], capture_output=True, timeout=120)
        self.assertCountEqual(again.stderr.splitlines(keepends=True), told)

    def test_what_comes_into_an_empty_file_is_followed_from_its_first_line(self):
        experiment, process, gate = self.waiting("quiet", trials=1)
        (directory,) = experiment.glob("00000*")
        os.truncate(directory / "stdout", 0)
        follower = subprocess.Popen([BIN / "cadre", "logs", "-f", "-n", "0", experiment, "0"], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, bufsize=0)

        def print_line(stream, line):
            with open(directory / stream, "ab") as file:
                file.write(line)

        def wait_for_a_turn(number):
            line = b"turn %d\n" % number
            print_line("stderr", line)
            while (told := follower.stderr.readline()) != line:
                self.assertTrue(told)

        while not select.select([follower.stderr], [], [], 0.1)[0]:
            print_line("stderr", b"new\n")  # shown from when the follower has looked at both files
        print_line("stdout", b"first\n")
        wait_for_a_turn(1)
        wait_for_a_turn(2)
        print_line("stdout", b"second\n")
        self.assertEqual([follower.stdout.readline() for _ in range(2)], [b"first\n", b"second\n"])
        os.write(gate, b".")
        self.assertEqual(process.wait(60), 0)
        os.close(gate)
        follower.communicate(timeout=60)
        self.assertEqual(follower.returncode, 0)

    def test_following_reads_only_what_is_new(self):
        experiment, process, gate = self.waiting("padded")
        (directory,) = experiment.glob("00000*")
        follower = subprocess.Popen([BIN / "cadre", "logs", "-f", experiment, "0", "--stdout"], stdout=subprocess.PIPE)

        def print_line(line):
            with open(directory / "stdout", "ab") as file:
                file.write(line)
            last = line.splitlines(keepends=True)[-1]
            while (told := follower.stdout.readline()) != last:
                self.assertTrue(told)

        def bytes_read():
            return int(pathlib.Path(f"/proc/{follower.pid}/io").read_text().split()[1])

        print_line(b"padding\n" * 200_000 + b"begin\n")
        before = bytes_read()
        for i in range(20):
            print_line(b"line %d\n" % i)
        self.assertLess(bytes_read() - before, 10 << 20)
        os.write(gate, b"....")
        self.assertEqual(process.wait(60), 0)
        os.close(gate)
        follower.stdout.read()
        self.assertEqual(follower.wait(60), 0)
        follower.stdout.close()

    # ---- Tables

    def test_a_table_begins_with_the_best_and_is_cut_to_the_window(self):
        ids = lambda text: [line.split()[1] for line in text.splitlines() if line.startswith("│ 0")]
        scores = {trial: rows[-1]["score"] for trial, rows in self.rows.items()}
        copy = self.copy("with_metric")
        best_first = sorted(scores, key=scores.get, reverse=True)
        self.assertEqual(ids(cadre("show", copy, "--sort", "score", "--desc")), best_first)
        text = cadre("show", copy, LINES="10")
        self.assertEqual(len(ids(text)), 5)
        self.assertIn("... 1 more trials; --all shows them", text)
        self.assertEqual(len(ids(cadre("show", copy, "--all", LINES="10"))), 6)
        self.assertEqual(len(ids(cadre("show", copy))), 6)
        experiment, process = self.printing("metric", iterations=4)
        self.assertEqual(process.wait(60), 0)
        last = {trial["trial_id"]: trial["metrics"]["score"] for trial in document("show", experiment)["trials"]}
        self.assertEqual(ids(cadre("show", experiment)), sorted(last, key=last.get, reverse=True))
        self.assertEqual(ids(cadre("show", experiment, "--desc")), sorted(last, key=last.get))

    def test_columns_that_nobody_has_are_errors_with_what_is_near(self):
        for arguments in ["--filter", "scor > 1"], ["--sort", "Score"], ["--columns", "scores,status"]:
            self.assertIn("did you mean score", cadre("show", self.experiment, *arguments, code=1))
        for wrong in "score_of_the_last_step", "my_own_best_score":
            self.assertIn("did you mean score", cadre("show", self.experiment, "--sort", wrong, code=1))
        self.assertIn("did you mean config/lr", cadre("show", self.experiment, "--filter", "config/l == 1", code=1))
        text = cadre("show", self.experiment, "--filter", "nothing == 1", "--sort", "neither", code=1)
        for part in 'a column "nothing"', 'a column "neither"', "there are: score", "config/lr", "exploits":
            self.assertIn(part, text)
        self.assertIn("0 of 6 trials", cadre("show", self.experiment, "--filter", "error == x"))

    def test_progress_of_a_running_experiment(self):
        storage = self.storage / "progress"
        storage.mkdir()
        os.mkfifo(storage / "gate1")
        experiment, process = self.printing("progress", iterations=4, gates=1)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        gate = os.open(storage / "gate1", os.O_WRONLY)
        while {trial["results"] for trial in document("show", experiment)["trials"]} != {2}:
            pass
        self.assertRegex(cadre("show", experiment), r"progress +50 %, 0 of 2 trials have ended; about .*s left")
        self.assertIn("50 %", cadre("ls", storage))
        os.write(gate, b"....")
        self.assertEqual(process.wait(60), 0)
        os.close(gate)  # what is left in a pipe that nobody has open is lost
        self.assertNotIn("progress ", cadre("show", experiment))

    # ---- Studies

    def test_a_study_is_read_like_an_experiment(self):
        study = self.storage / "study"
        self.addCleanup(shutil.rmtree, study)
        cadre("suggest", study, "-n", "20", "--param", "x=uniform(0, 1)", "--param", "n=randint(0, 5)", "--minimize", "loss")
        configs = {trial["trial_id"]: trial["config"] for trial in document("show", study)["trials"]}
        for trial in range(19):
            x = configs[f"{trial:05}"]["x"]
            cadre("observe", study, str(trial), f"loss={x}", f"size={1 - x}")
        best = min(list(configs)[:19], key=lambda trial: configs[trial]["x"])
        told = document("best", study)
        self.assertEqual((told["trial"]["trial_id"], told["value"]), (best, configs[best]["x"]))
        self.assertRegex(cadre("show", study), r"(?s)trials +1 RUNNING, 19 TERMINATED.*" + best)
        self.assertIn("Pareto front of study: 19 of 20 trials", cadre("best", study, "--pareto", "loss:min,size:min"))
        self.assertRegex(cadre("importance", study), r"│ x +\d")
        self.assertEqual(len(cadre("export", study).splitlines()), 21)
        self.assertNotIn("last event", cadre("show", study))
        self.assertIn("<svg", cadre("plot", study, "--pareto", "loss:min,size:min", "-o", "-"))
        self.assertIn("study", [one["name"] for one in document("ls", self.storage)["experiments"]])

    def test_a_trial_that_runs_is_told_with_a_result(self):
        study = self.storage / "told"
        self.addCleanup(shutil.rmtree, study)
        cadre("suggest", study, "--param", "x=uniform(0, 1)", "--minimize", "loss")
        self.assertIn("goes with a result", cadre("observe", study, "0", "--status", "running", code=1))
        cadre("observe", study, "0", "--status", "running", "loss=0.5")
        self.assertEqual([trial["results"] for trial in document("show", study)["trials"]], [1])

    def test_what_a_study_has_from_its_beginning_is_not_said_anew(self):
        study = self.storage / "begun"
        self.addCleanup(shutil.rmtree, study)
        cadre("suggest", study, "--param", "x=uniform(0, 1)", "--minimize", "loss")
        for option in ["--searcher", "TPE"], ["--maximize", "loss"], ["--seed", "3"]:
            self.assertIn("has its metric, searcher and seed already", cadre("suggest", study, *option, code=1))
        self.assertEqual(len(document("show", study)["trials"]), 1)

    def test_long_texts_are_wrapped_at_the_width_whatever_their_length(self):
        study = self.storage / "wrapped"
        self.addCleanup(shutil.rmtree, study)
        texts = {f"t{length}": ("a " * length)[:length - 1] + "b" for length in range(40, 160)}
        long = {f"long{i}": "word " * 200_000 for i in range(3)}  # a time that grows with the square is minutes
        constants = {key: {"type": "constant", "value": text} for key, text in (texts | long).items()}
        file = self.storage / "space.json"
        self.addCleanup(file.unlink)
        file.write_text(json.dumps(constants | {"x": {"type": "uniform", "lower": 0.0, "upper": 1.0, "q": 0.0}}))
        cadre("suggest", study, "--space", file, "--minimize", "loss")
        lines = cadre("show", study, "0").splitlines()
        for line in lines:
            if "/" not in line:  # a path stays whole
                self.assertLessEqual(len(line), 80, line)
        told = " ".join(" ".join(lines).split())
        for key, text in texts.items():
            self.assertIn(f"{key} {text}", told)
        self.assertEqual(told.count("word"), 600_000)

    def test_a_parameter_that_is_no_json_is_refused(self):
        study = self.storage / "refused"
        for parameter in "x=note", "x=my note (draft)", "x=note (draft)", "x=":
            said = cadre("suggest", study, "--param", parameter, "--minimize", "loss", code=1)
            self.assertIn('the constant of "x"', said, parameter)
        self.assertIn("there is no domain note", cadre("suggest", study, "--param", "x=note(1)", "--minimize", "loss", code=1))
        self.assertFalse(study.exists())

    def test_directories_that_vanish_do_not_end_a_list(self):
        churn = self.storage / "churn"
        self.addCleanup(shutil.rmtree, churn, True)
        ended = threading.Event()

        def make_and_delete():
            while not ended.is_set():
                for i in range(50):
                    (churn / str(i) / "below").mkdir(parents=True, exist_ok=True)
                shutil.rmtree(churn)

        thread = threading.Thread(target=make_and_delete)
        thread.start()
        try:
            for _ in range(30):
                self.assertIn(self.experiment.name, cadre("ls", self.storage))
        finally:
            ended.set()
            thread.join()

    def test_what_cannot_be_looked_into_does_not_end_a_list(self):
        loops = self.storage / "loops"
        self.addCleanup(shutil.rmtree, loops)
        for name, file in ("study", "study.jsonl"), ("experiment", "experiment.db"):
            (loops / name).mkdir(parents=True)
            (loops / name / file).symlink_to(file)
        listed = {one["path"]: one for one in document("ls", self.storage)["experiments"]}
        self.assertIsNone(listed[str(self.experiment.resolve())]["error"])
        self.assertIn("experiment.db", listed[str((loops / "experiment").resolve())]["error"])
        self.assertIn("no such directory", cadre("show", self.storage / "nothing" / "x", code=1))
        self.assertIn("no file experiment.db", cadre("show", loops / "study", code=1))

    # ---- Nodes

    def nodes_until(self, experiment, condition):
        end = time.monotonic() + 120
        while True:
            with contextlib.suppress(AssertionError):  # it has not begun
                found = document("nodes", experiment)
                if condition(found):
                    return found
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def start_on_two_nodes(self, tool, *arguments):
        """Returns the folder of its results, in which it runs, and its process."""
        storage = self.storage / "on_two_nodes"
        storage.mkdir()
        self.addCleanup(shutil.rmtree, storage)
        process = subprocess.Popen([BIN / tool, storage, *arguments], stdout=subprocess.DEVNULL, cwd=storage,
                                   env=os.environ | {"CADRE_CLUSTER": str(self.two_nodes())})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return storage, process

    def two_nodes(self):
        file = self.storage / "two.json"
        file.write_text('{"engine": "processes", "groups": [{"name": "trial", "nodes": 2}]}')
        self.addCleanup(file.unlink)
        return file

    def test_nodes_are_shown_while_they_come_and_go(self):
        storage, process = self.start_on_two_nodes("population_tool", "4", "100000", "50")
        experiment = storage / "population"
        begun = self.nodes_until(experiment, lambda found: sum(len(node["trials"]) for node in found["nodes"]) == 4)
        self.assertEqual([node["state"] for node in begun["nodes"]], ["ready", "ready"])
        self.assertEqual(sorted(trial for node in begun["nodes"] for trial in node["trials"]), [0, 1, 2, 3])
        self.assertEqual(begun["waiting"], [])
        self.assertEqual((begun["nodes"][0]["node"], begun["nodes"][0]["left"], begun["nodes"][0]["reason"]), (1, None, ""))
        self.assertGreater(begun["nodes"][0]["resources"]["cpus"], 0)
        secret = json.loads((experiment / ".cluster.json").read_text())["nodes"]["secret"]
        self.assertNotIn(secret, cadre("nodes", experiment) + cadre("nodes", experiment, "--json"))
        lost, drained = agents_of(process.pid)
        os.kill(lost, signal.SIGKILL)
        self.nodes_until(experiment, lambda found: len(found["nodes"]) == 3
                         and [node["state"] for node in found["nodes"]].count("ready") == 2)
        os.kill(drained, signal.SIGTERM)
        # The other one may come before this one has left.
        self.nodes_until(experiment, lambda found: sorted(node["state"] for node in found["nodes"]) == ["left", "lost", "ready", "ready"])
        shown = cadre("nodes", experiment)
        self.assertRegex(shown, r"nodes +2 ready, 1 left, 1 lost")
        self.assertRegex(shown, r"Node \d has left: the agent was sent SIGTERM")
        self.assertRegex(shown, r"Node \d was lost: node .* does not answer")
        self.assertEqual(len(document("nodes", experiment, "--present")["nodes"]), 2)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        ended = document("nodes", experiment)
        self.assertEqual(sorted(node["state"] for node in ended["nodes"]), ["left", "left", "left", "lost"])
        self.assertFalse([trial for node in ended["nodes"] for trial in node["trials"]])
        self.assertEqual(ended["waiting"], None)
        self.assertEqual(ended["nodes"][3]["reason"], "its controller has ended")

    def run_on_two_nodes(self, *command):
        environment = os.environ | {"CADRE_CLUSTER": str(self.two_nodes()), "HOME": str(self.storage)}
        subprocess.run([BIN / command[0], *command[1:]], env=environment, stdout=subprocess.DEVNULL, check=True,
                       timeout=120, cwd=self.storage)

    def test_groups_of_nodes_are_a_column_if_there_are_several(self):
        file = self.storage / "groups.json"
        groups = [{"name": "first", "nodes": 1, "price": 3600}, {"name": "second", "nodes": 1, "price": 36000}]
        file.write_text(json.dumps({"engine": "processes", "groups": groups}))
        self.addCleanup(file.unlink)
        subprocess.run([BIN / "population_tool", self.storage / "groups", "4", "5", "1"], stdout=subprocess.DEVNULL, check=True,
                       timeout=120, env=os.environ | {"CADRE_CLUSTER": str(file)})
        self.addCleanup(shutil.rmtree, self.storage / "groups")
        experiment = self.storage / "groups" / "population"
        self.assertRegex(cadre("nodes", experiment), r"group .*(.*\n)+.* (first|second) ")
        self.assertRegex(cadre("nodes", experiment), r"time +first \d+ s, \d+ % of it with workers; second \d+ s, \d+ % of")
        nodes = document("nodes", experiment)["nodes"]
        for node in nodes:
            self.assertTrue(0 <= node["busy"] <= node["left"] - node["joined"], node)
        costs = {node["resources"]["labels"]["group"]: (node["left"] - node["joined"]) * node["price"] / 3600 for node in nodes}
        self.assertRegex(cadre("nodes", experiment), f"cost +{sum(costs.values()):.2f}: first {costs['first']:.2f}; second {costs['second']:.2f}\n")
        self.assertLess(costs["first"], costs["second"])

    def test_nodes_of_a_training_run_are_shown(self):
        self.run_on_two_nodes("training_run_tool", self.storage / "trained")
        self.addCleanup(shutil.rmtree, self.storage / "trained")
        nodes = document("nodes", self.storage / "trained" / "run")["nodes"]
        found = [(node["state"], node["ranks"], node["reason"]) for node in nodes]
        self.assertEqual(found, [("left", [], "the run has finished")] * 2)
        self.assertEqual(sum(node["workers"] for node in nodes), 4)  # two ranks, two attempts

    def test_validators_are_shown_on_their_nodes(self):
        go_on = self.storage / "go_on"
        storage, process = self.start_on_two_nodes("training_run_tool", go_on)
        found = self.nodes_until(storage / "run", lambda found: sum(len(node["validations"]) for node in found["nodes"]) > 1)
        validated = [checkpoint for node in found["nodes"] for checkpoint in node["validations"]]
        self.assertLessEqual(set(validated), {f"checkpoint_{number:06}" for number in range(4)})
        self.assertRegex(cadre("nodes", storage / "run"), r"validates +workers(.*\n)+.*heckpoint_00000\d")  # cut to fit
        go_on.touch()
        self.addCleanup(go_on.unlink)
        process.wait(60)
        ended = document("nodes", storage / "run")["nodes"]
        self.assertFalse([checkpoint for node in ended for checkpoint in node["validations"]])
        self.assertEqual(sum(node["workers"] for node in ended), 4 + 4)  # two ranks, two attempts, and four validators

    def test_nodes_of_a_published_experiment_are_shown(self):
        self.run_on_two_nodes("population_tool", f"file://{self.storage}/published", "4", "5", "1")
        for left in "published", "cadre_results":  # it works in the latter
            self.addCleanup(shutil.rmtree, self.storage / left)
        nodes = document("nodes", f"file://{self.storage}/published/population")["nodes"]
        self.assertEqual([node["state"] for node in nodes], ["left", "left"])

    def test_an_experiment_on_one_machine_says_so_in_a_line(self):
        self.assertEqual(cadre("nodes", self.experiment), "experiment ran on one machine, without a cluster\n")
        self.assertEqual(document("nodes", self.experiment)["nodes"], [])

    # ---- The command line

    def test_lines_fit(self):
        for command in ["show", self.experiment], ["ls", self.storage], ["best", self.experiment, "--metric", "score"], ["--help"], \
                ["ls", "--help"], ["show", "--help"], ["logs", "--help"], ["nodes", "--help"], ["best", "--help"], ["importance", "--help"], ["plot", "--help"], ["replay", "--help"], ["export", "--help"], \
                ["suggest", "--help"], ["observe", "--help"], ["tail", "--help"], ["tail", self.experiment, "--metrics", "score"], \
                ["completion", "--help"], ["man", "--help"]:
            for line in cadre(*command).splitlines():
                if "/" not in line:  # a path stays whole
                    self.assertLessEqual(len(line), 80, line)

    def test_the_example_of_run_has_flags_of_the_program_that_it_names(self):
        [program, flags] = re.search(r"-- \./(\w+) (.*)", cadre("run", "--help")).groups()
        examples = pathlib.Path(os.environ["CADRE_SOURCE"]) / "examples"
        sources = "".join(path.read_text() for folder in ("program", program) for path in (examples / folder).glob("*.cc"))
        self.assertTrue(re.findall(r"--[\w-]+", flags))
        for flag in re.findall(r"--[\w-]+", flags):
            self.assertIn(f'"{flag}"', sources)

    def test_wrong_usage(self):
        for arguments in [], ["nothing"], ["show"], ["best", self.experiment, "--mode", "best"], ["ls", "--sort", "x"]:
            self.assertTrue(cadre(*arguments, code=2))

    def test_what_is_not_found_is_said(self):
        self.assertIn("there is no experiment \"nothing\"", cadre("show", "nothing", code=1, HOME="/nowhere"))
        self.assertIn("no file experiment.db", cadre("show", self.storage, code=1))
        self.assertIn("it has 00000 to 00005", cadre("show", self.experiment, "00017", code=1))
        self.assertIn("is no filter", cadre("show", self.experiment, "--filter", "score", code=1))
        self.assertIn("a column \"scor\"", cadre("show", self.experiment, "--sort", "scor", code=1))
        self.assertIn("no trial of", cadre("best", self.experiment, "--metric", "nothing", "--mode", "max", code=1))

    def test_another_metric_than_the_experiments_needs_a_direction(self):
        for command in ["best"], ["export", "--best"]:
            told = cadre(*command, self.experiment, "--metric", "eval/loss", code=1)
            self.assertIn('"eval/loss" is not the metric of ', told)
            self.assertIn("--mode min or --mode max", told)

    def test_a_name_means_the_default_storage(self):
        home = self.storage / "home"
        shutil.copytree(self.experiment, home / "cadre_results" / "mine")
        self.addCleanup(shutil.rmtree, home)
        self.assertIn("mine", cadre("show", "mine", HOME=str(home)))
        self.assertIn("mine", cadre("ls", HOME=str(home)))

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "cadre", "show", self.experiment], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)
        self.assertIn("the table cannot be written", cadre("export", self.experiment, "--all", "-o", "/dev/full", code=1))

    def test_options_of_an_export_that_would_not_count_are_refused(self):
        self.assertIn("add --best", cadre("export", self.experiment, "--metric", "score", code=1))
        self.assertIn("add --best", cadre("export", self.experiment, "--mode", "min", code=1))
        self.assertIn("add --optuna", cadre("export", self.experiment, "--objectives", "score:max", code=1))


if __name__ == "__main__":
    unittest.main()
