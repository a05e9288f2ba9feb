"""`cadre tune`: values that reach a program, its ways to report, its ends."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import time
import unittest

from tuning import BIN, ENVIRONMENT, SPACE, TuneTest

REPORTS = """
    import json, os
    cadre = os.fdopen(int(os.environ["CADRE_REPORT_FD"]), "r+b", buffering=0)
    def report(word, **metrics):
        cadre.write(f"{word} {json.dumps(metrics)}\\n".lstrip().encode())
        return cadre.readline().decode().strip() if word else None
"""


def with_reports(text):
    return textwrap.dedent(REPORTS) + textwrap.dedent(text)


class ValuesTest(TuneTest):
    def test_values_reach_the_program_as_arguments_variables_and_a_file(self):
        self.write("tune.toml", """
            name = "test"
            storage_path = "."
            environment = { RATE = "{lr}", WHO = "{CADRE_TRIAL_NAME}" }
            [space]
            lr = 0.1
            layers = [64, 32]
            nested.act = "relu"
            flag = true
        """)
        words = ["{lr}", "--act={nested/act}", "{layers}", "{flag}", "{{lr}}", '{"a": 1}', "a b", "{CADRE_TRIAL_ID}"]
        self.tune("tune.toml", "--", *self.python("""
            import json, os, sys
            names = ["RATE", "WHO", "CADRE_EXPERIMENT", "CADRE_TRIAL_ID", "CADRE_TRIAL_DIR", "CADRE_SEED"]
            config = json.load(open(os.environ["CADRE_CONFIG_FILE"]))
            json.dump([sys.argv[1:], {name: os.environ[name] for name in names}, config, os.getcwd(),
                       "CADRE_CHECKPOINT_IN" in os.environ], open("seen.json", "w"))
        """), *words)
        arguments, environment, config, directory, continues = json.loads((self.folder / "seen.json").read_text())
        self.assertEqual(arguments, ["0.1", "--act=relu", "[64, 32]", "true", "{lr}", '{"a": 1}', "a b", "00000"])
        self.assertEqual(environment, {
            "RATE": "0.1", "WHO": "program_00000", "CADRE_EXPERIMENT": "test", "CADRE_TRIAL_ID": "00000",
            "CADRE_TRIAL_DIR": str(self.directory()), "CADRE_SEED": environment["CADRE_SEED"]})
        self.assertEqual(config, {"lr": 0.1, "layers": [64, 32], "nested": {"act": "relu"}, "flag": True})
        self.assertEqual(directory, str(self.folder))
        self.assertFalse(continues)

    def test_numbers_read_back_as_the_same(self):
        self.write("tune.toml", "num_samples = 20" + SPACE)
        self.tune("tune.toml", "--", *self.python(with_reports("""
            import sys
            report("", loss=float(sys.argv[1]))
        """)), "{lr}")
        for trial in range(20):
            self.assertEqual(self.rows(trial)[0]["loss"],
                             json.loads((self.directory(trial) / "params.json").read_text())["lr"])

    def test_a_working_directory_of_each_trial(self):
        self.write("tune.toml", "working_directory = '{CADRE_TRIAL_DIR}'" + SPACE)
        self.tune("tune.toml", "--", *self.python(with_reports("""
            open("mine", "w")
            report("", loss=1)
        """)))
        self.assertTrue((self.directory() / "mine").exists())

    def test_check_shows_trials_and_makes_none(self):
        self.write("tune.toml", "num_samples = 12" + SPACE)
        shown = self.tune("tune.toml", "--check", "--", "/bin/echo", "a b", "--lr={lr}")
        self.assertEqual(sum("/bin/echo 'a b' --lr=0." in line for line in shown.splitlines()), 10, shown)
        self.assertIn("and 2 more", shown)
        self.assertFalse(self.experiment.exists())
        self.tune("tune.toml", "--", "sh", "-c", "echo \"{\\\"loss\\\": $0}\" >&3", "{lr}")
        for trial, line in enumerate(shown.splitlines()[1:11]):
            self.assertIn(f"--lr={self.rows(trial)[0]['loss']}", line)

    def test_check_shows_a_trial_for_each_combination_of_grids(self):
        self.write("tune.toml", "num_samples = 2" + SPACE + "    n = { grid_search = [1, 2, 3] }\n")
        shown = self.tune("tune.toml", "--check", "--", "/bin/echo", "{n}").splitlines()
        self.assertEqual(shown[0].strip(), "6 trials:")
        self.assertEqual([line.strip() for line in shown[1:]], [f"/bin/echo {n}" for n in [1, 2, 3] * 2])

    def test_entries_of_the_command_line_replace_those_of_the_file(self):
        self.write("tune.toml", SPACE)
        self.tune("tune.toml", "--set", "space.lr=choice([7])", "--set", "num_samples=2", "--set", "space.text=a b", "--",
                  *self.python(with_reports("""
                      import sys
                      report("", loss=int(sys.argv[1]), text=sys.argv[2])
                  """)), "{lr}", "{text}")
        for trial in range(2):
            self.assertEqual((self.rows(trial)[0]["loss"], self.rows(trial)[0]["text"]), (7, "a b"))

    def test_a_space_with_conditions(self):
        self.write("tune.toml", """
            num_samples = 20
            name = "test"
            storage_path = "."
            [space]
            optimizer = { choice = [{ name = "sgd", momentum = "uniform(0.5, 1)" }, { name = "adam" }] }
            size = { grid_search = [1, 2] }
        """)
        self.tune("tune.toml", "--", *self.python(with_reports("""
            report("", **json.load(open(os.environ["CADRE_CONFIG_FILE"])))
        """)))
        seen = [self.rows(trial)[0] for trial in range(40)]
        self.assertEqual({row["size"] for row in seen}, {1, 2})
        for row in seen:
            self.assertEqual("momentum" in row["optimizer"], row["optimizer"]["name"] == "sgd")
        self.assertEqual({row["optimizer"]["name"] for row in seen}, {"sgd", "adam"})


class ReportsTest(TuneTest):
    def test_reports_through_the_descriptor(self):
        self.write("tune.toml", SPACE)
        self.tune("tune.toml", "--", *self.python(with_reports("""
            report("", loss=3, nested={"a": 1})
            assert report("ask", loss=2) == "continue"
            assert report("ask", loss=float("nan")) == "continue"
            cadre.write(b'{"loss": 1}')  # the last line needs no end
        """)))
        rows = self.rows()
        self.assertEqual([str(row["loss"]) for row in rows], ["3", "2", "nan", "1"])
        self.assertEqual(rows[0]["nested"], {"a": 1})
        self.assertEqual([row["training_iteration"] for row in rows], [1, 2, 3, 4])

    def test_a_script_reports_with_cadre_report(self):
        self.write("tune.toml", "stop = { training_iteration = 3 }" + SPACE)
        self.tune("tune.toml", "--", *self.shell("""
            cadre-report --tell loss=1 text='a "b" \\c' yes=true big=1e300
            for i in 1 2 3 4 5; do
              cadre-report loss=.5 || { echo told $?; exit; }
            done
        """))
        rows = self.rows()
        self.assertEqual([row["loss"] for row in rows], [1, 0.5, 0.5])
        self.assertEqual((rows[0]["text"], rows[0]["yes"], rows[0]["big"]), ('a "b" \\c', True, 1e300))
        self.assertEqual((self.directory() / "stdout").read_text(), "continue\nstop\ntold 3\n")

    def test_programs_run_where_the_standard_streams_are_closed(self):
        self.write("tune.toml", "stop = { training_iteration = 2 }" + SPACE)
        script, = self.shell("echo hello; cadre-report loss=1; cadre-report loss=2 || true")
        subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", BIN / "cadre", "tune", "tune.toml", "--", script],
                       cwd=self.folder, env=ENVIRONMENT, check=True, timeout=120)
        self.assertEqual([row["loss"] for row in self.rows()], [1, 2])
        self.assertEqual((self.directory() / "stdout").read_text(), "hello\ncontinue\nstop\n")

    def test_a_script_runs_without_cadre(self):
        shown = subprocess.run([BIN / "cadre-report", "loss=1"], capture_output=True, check=True)
        self.assertEqual(shown.stdout, b"continue\n")

    def test_a_script_is_told_that_cadre_is_gone(self):
        of_cadre, of_script = socket.socketpair()
        of_cadre.close()
        with of_script:
            shown = subprocess.run([BIN / "cadre-report", "loss=1"], capture_output=True, check=False, pass_fds=[of_script.fileno()],
                                   env=os.environ | {"CADRE_REPORT_FD": str(of_script.fileno())})
        self.assertEqual((shown.returncode, shown.stderr), (1, b"cadre-report: cannot report: cadre is gone\n"))

    def test_metrics_in_the_output(self):
        self.write("tune.toml", r"metric_patterns = { loss = 'loss: (\S+)', acc = 'acc=([\d.]+)', word = 'w\w+d' }" + SPACE)
        self.tune("tune.toml", "--", *self.python("""
            import sys
            print("before word")
            for epoch in range(3):
                print(f"epoch {epoch}, acc=0.{epoch}, loss: 9 loss: 1e-{epoch}")
            sys.stderr.write("loss: 5\\n")
            print("acc=0.75", end="")
        """))
        rows = self.rows()
        self.assertEqual([row["loss"] for row in rows], [1, 0.1, 0.01, 0.01])
        self.assertEqual([row["acc"] for row in rows], [0, 0.1, 0.2, 0.75])
        self.assertEqual([row["word"] for row in rows], ["word"] * 4)
        self.assertEqual((self.directory() / "stdout").read_text().splitlines()[1], "epoch 0, acc=0.0, loss: 9 loss: 1e-0")

    def test_much_output_and_long_lines(self):
        self.write("tune.toml", r"metric_patterns = { loss = 'loss: (\d+)$' }" + SPACE)
        self.tune("tune.toml", "--", *self.python("""
            print("x" * 1_000_000)
            for i in range(20_000):
                print("line", i)
                if i % 1000 == 999:
                    print("loss:", i)
        """))
        self.assertEqual([row["loss"] for row in self.rows()], list(range(999, 20_000, 1000)))

    def test_a_table_that_grows(self):
        for name, lines in {"log.csv": ["step,loss,text\\n1,0.5,\"a,b\"\\n", "2,0.25,\\n", "3,nan,c"],
                            "log.jsonl": ['{"step": 1, "loss": 0.5, "text": "a,b"}\\n', '{"step": 2, "loss": 0.25}\\n',
                                          '{"step": 3, "loss": NaN, "text": "c"}']}.items():
            with self.subTest(name=name):
                self.write("tune.toml", "metrics_file = '{CADRE_TRIAL_DIR}/" + name + "'" + SPACE)
                self.tune("tune.toml", "--", *self.python(f"""
                    import os, time
                    with open(os.environ["CADRE_TRIAL_DIR"] + "/{name}", "w", buffering=1) as log:
                        for line in {lines!r}:
                            line = line.replace("\\\\n", "\\n")
                            log.write(line[:3])
                            log.flush()
                            time.sleep(0.1)
                            log.write(line[3:])
                """))
                rows = self.rows()
                self.assertEqual([(row["step"], str(row["loss"]), row.get("text")) for row in rows],
                                 [(1, "0.5", "a,b"), (2, "0.25", None), (3, "nan", "c")])
                self.remove_experiment()

    def test_a_table_that_is_written_anew_and_one_that_was_there(self):
        self.write("tune.toml", "metrics_file = 'log.csv'\nworking_directory = '{CADRE_TRIAL_DIR}'\nstop = {training_iteration = 9}" + SPACE)
        self.tune("tune.toml", "--", *self.python("""
            import os, time
            def results():
                return len(open("result.json").readlines()) if os.path.exists("result.json") else 0
            for begin in range(3):
                with open("log.csv", "w") as log:
                    log.write("loss\\n" + f"{begin}\\n" * 3)
                while results() < 3 * (begin + 1):
                    time.sleep(0.02)
        """))
        self.assertEqual([row["loss"] for row in self.rows()], [0] * 3 + [1] * 3 + [2] * 3)

    def test_events_of_tensorboard(self):
        self.write("tune.toml", "metrics_file = 'runs'\nworking_directory = '{CADRE_TRIAL_DIR}'" + SPACE)
        self.tune("tune.toml", "--", sys.executable, self.write("program.py", """
            import struct
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
            from tensorboard.compat.proto.tensor_pb2 import TensorProto
            from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
            writer = EventFileWriter("runs/mine")
            def add(step, **value):
                writer.add_event(Event(step=step, summary=Summary(value=[Summary.Value(**value)])))
            line = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
            for step in range(3):
                add(step, tag="acc", simple_value=step)
                add(step, tag="weights", histo=HistogramProto(bucket=[1.0], bucket_limit=[2.0]))
                add(step, tag="vector", tensor=TensorProto(dtype=1, tensor_shape=line, float_val=[1.0]))
                add(step, tag="exact", tensor=TensorProto(dtype=2, double_val=[step / 3]))
                add(step, tag="packed", tensor=TensorProto(dtype=1, tensor_content=struct.pack("<f", step / 2)))
                add(step, tag="loss", tensor=TensorProto(dtype=1, float_val=[step / 4]))  # as TensorFlow 2 does
            writer.close()
        """))
        rows = self.rows()
        self.assertEqual([row["acc"] for row in rows], [0, 1, 2])
        self.assertEqual([row["loss"] for row in rows], [0, 0.25, 0.5])
        self.assertEqual([row["exact"] for row in rows], [0, 1 / 3, 2 / 3])
        self.assertEqual([row["packed"] for row in rows], [0, 0.5, 1])
        self.assertFalse({"weights", "vector"} & rows[0].keys())


class EndsTest(TuneTest):
    def test_a_program_that_fails_is_shown_with_its_last_lines(self):
        for text, message in {
            "import sys; sys.exit('no such data')": "ended with exit code 1; its last output on standard error:\n  no such data",
            "print('only this', flush=True); import os; os._exit(7)": "ended with exit code 7; its last output:\n  only this",
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": "ended with signal 9 (Killed); it printed nothing",
            "print('fine')": "ended with exit code 0 without having reported \"loss\", the experiment's metric",
            "import os; os.write(3, b'{\"acc\": 1}\\n')": "without having reported \"loss\"",
            "import os; os.write(3, b'loss=1\\n')": "the program wrote to CADRE_REPORT_FD: loss=1\na line is a JSON object",
            "import os; os.write(3, b'{\"loss\": }\\n')": "{\"loss\": }\nthe line, offset 9",
        }.items():
            with self.subTest(text=text):
                self.write("tune.toml", SPACE)
                self.assertIn("1 of 1 trials failed", self.tune("tune.toml", "--", *self.python(text), code=1))
                self.assertIn(message, (self.directory() / "error.txt").read_text())
                self.remove_experiment()

    def test_of_many_reasons_of_failures_the_first_ones_are_shown(self):
        def show(*options):
            return subprocess.run([BIN / "cadre", "show", self.experiment, *options], check=True, capture_output=True,
                                  text=True, env=ENVIRONMENT).stdout

        self.write("tune.toml", "num_samples = 12" + SPACE)
        fails = self.python("import os; os._exit(1 + int(os.environ['CADRE_TRIAL_ID']))")
        self.assertIn("12 of 12 trials failed", self.tune("tune.toml", "--", *fails, code=1))
        self.assertEqual(show().count(" failed: "), 10)
        self.assertIn("... 2 more reasons of failures; --all shows them", show())
        self.assertEqual(show("--all").count(" failed: "), 12)
        self.assertNotIn("more reasons", show("--all"))

    def test_a_metric_that_no_trial_has_reported_is_named_at_the_end(self):
        self.write("tune.toml", "num_samples = 2\nstop = { training_iteration = 2 }" + SPACE)
        process = self.start("tune.toml", "--", *self.python(with_reports("""
            print("no losses today", flush=True)
            while True:
                report("ask", acc=1)
        """)))
        errors = process.communicate(timeout=120)[1].decode()
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(errors, "cadre: no trial has reported \"loss\", the experiment's metric\n"
                                 "the end of stdout of trial 00000:\n  no losses today\n")

    def test_a_trial_may_end_without_a_report_where_there_is_no_metric(self):
        self.write("tune.toml", "num_samples = 20\nname = 'test'\nstorage_path = '.'")
        self.tune("tune.toml", "--", "true")
        self.assertEqual({trial["status"] for trial in self.trials()}, {"TERMINATED"})
        self.assertEqual(len(self.trials()), 20)

    def test_a_value_that_no_argument_can_carry_fails_its_trial(self):
        self.write("tune.toml", "num_samples = 3\nname = 'test'\nstorage_path = '.'\nspace.text = \"a\\u0000b\"")
        self.assertIn("3 of 3 trials failed", self.tune("tune.toml", "--", "echo", "{text}", code=1))
        self.assertIn("the placeholder {text}: text with a zero byte cannot be an argument: have the program read "
                      "CADRE_CONFIG_FILE", (self.directory() / "error.txt").read_text())

    def test_a_stopped_program_ends_with_everything_that_it_started(self):
        for asks in (True, False):
            with self.subTest(asks=asks):
                self.write("tune.toml", "stop = { training_iteration = 2 }\nstop_patience = 0.3" + SPACE)
                self.tune("tune.toml", "--", *self.python(with_reports(f"""
                    import signal, subprocess, time
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    children = [subprocess.Popen(["sleep", "1000"], start_new_session=new) for new in (False, True)]
                    open("pids", "w").write(" ".join(map(str, [os.getpid(), *(child.pid for child in children)])))
                    while True:
                        report("ask" if {asks} else "", loss=1)
                        time.sleep(0.01)
                """)))
                for pid in (self.folder / "pids").read_text().split():
                    self.assertFalse(os.path.exists(f"/proc/{pid}"), pid)
                self.assertEqual(len(self.rows()), 2)
                self.remove_experiment()

    def test_a_program_that_ends_when_it_is_told_to_has_time_for_it(self):
        self.write("tune.toml", "stop = { training_iteration = 1 }" + SPACE)
        self.tune("tune.toml", "--", *self.python(with_reports("""
            import time
            assert report("ask", loss=1) == "stop"
            time.sleep(0.3)
            open("ended", "w")
        """)))
        self.assertTrue((self.folder / "ended").exists())

    def test_a_signal_to_all_processes_interrupts_and_fails_no_trial(self):
        self.write("tune.toml", "num_samples = 4" + SPACE)
        program = self.python(with_reports("""
            import time
            i = 0
            while i < 5 or not os.path.exists("restored"):
                report("", loss=i)
                i += 1
                time.sleep(0.05)
        """))
        process = self.start("tune.toml", "--", *program)
        while not list(self.experiment.glob("00001*/result.json")):
            time.sleep(0.01)
        below = [process.pid]
        for parent in below:
            for children in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
                below += map(int, children.read_text().split())
        for pid in below:
            os.kill(pid, signal.SIGTERM)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 143)
        self.assertNotIn("ERROR", {trial["status"] for trial in self.trials()})
        shown = subprocess.run([BIN / "cadre", "show", self.experiment], check=True, capture_output=True, text=True,
                               env=ENVIRONMENT)
        self.assertIn(f"interrupted; cadre tune --restore {self.experiment} continues it",
                      " ".join(shown.stdout.split()))
        (self.folder / "restored").touch()
        self.tune("--restore", "test")
        self.assertEqual({trial["status"] for trial in self.trials()}, {"TERMINATED"})

    def test_trials_that_have_failed_are_run_again_on_request_only(self):
        self.write("tune.toml", SPACE)
        script = self.shell("""
            [ -e mended ] || exit 1
            cadre-report loss=1
        """)
        self.tune("tune.toml", "--", *script, code=1)
        (self.folder / "mended").touch()
        self.tune("--restore", "test", code=1)
        self.tune("--restore", "test", "--restart-errored")
        self.assertEqual([trial["status"] for trial in self.trials()], ["TERMINATED"])

    def test_a_paused_program_that_does_not_wait_is_held(self):
        self.write("tune.toml", """
            metric = "loss"
            mode = "min"
            name = "test"
            storage_path = "."
            space.number = { grid_search = [0, 1] }
            stop = { training_iteration = 2 }
            [scheduler]
            type = "PopulationBasedTraining"
            time_attr = "training_iteration"
            perturbation_interval = 1
            synch = true
            hyperparam_mutations = { number = [0, 1] }
        """)
        process = self.start("tune.toml", "--cpus=2", "--", *self.python("""
            import json, os, sys, time
            number = int(sys.argv[1])
            open(f"pid{number}", "w").write(str(os.getpid()))
            for i in range(2):
                while number == 1 and not os.path.exists("go"):
                    time.sleep(0.01)
                partial = "partial" + str(os.getpid())
                os.mkdir(partial)
                os.rename(partial, os.environ["CADRE_CHECKPOINT_OUT"])
                os.write(3, json.dumps({"loss": number}).encode() + b"\\n")
                while os.path.exists(os.environ["CADRE_CHECKPOINT_OUT"]):
                    time.sleep(0.01)
            while True:
                time.sleep(0.01)
        """), "{number}")
        self.addCleanup(process.kill)

        def state():
            try:
                pid = int((self.folder / "pid0").read_text())
                return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ValueError):
                return None

        while state() != "T":
            time.sleep(0.01)
        (self.folder / "go").touch()
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, output + errors)
        self.assertEqual({trial["status"] for trial in self.trials()}, {"TERMINATED"})


if __name__ == "__main__":
    unittest.main()
