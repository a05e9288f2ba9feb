"""`cadre stop`, `pause`, `resume` and `enqueue` on an experiment that runs."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from tuning import BIN, ENVIRONMENT, SPACE, TuneTest

DEADLINE_S = 120

# Counts up to 40, slowly, and more slowly at the end while a test does something to it; its checkpoint has the number.
# Notes each of its processes.
PROGRAM = """
    number=0
    if [ -n "$CADRE_CHECKPOINT_IN" ]; then number=$(cat "$CADRE_CHECKPOINT_IN/number"); fi
    echo $$ >> {processes}
    while [ $number -lt 40 ]; do
      number=$((number + 1))
      sleep 0.05
      if [ $number -gt 30 ] && [ -e {slow} ]; then sleep 1; fi
      answer=$(cadre-report --offer loss=$number lr="$1") || exit 0
      if [ "$answer" = checkpoint ]; then
        echo $number > "$CADRE_CHECKPOINT_OUT/number"
        cadre-report --saved > /dev/null || exit 0
      fi
    done
"""


class RequestsTest(TuneTest):
    def begin(self, *arguments, text="num_samples = 2"):
        self.write("tune.toml", text + SPACE)
        self.processes = self.folder / "processes"
        self.slow = self.folder / "slow"
        self.slow.touch()
        program = self.shell(PROGRAM.format(processes=self.processes, slow=self.slow))
        self.process = self.start("tune.toml", "--cpus=2", *arguments, "--", *program, "{lr}")
        self.addCleanup(self.end)
        self.wait_until(lambda: self.results(0) >= 2, "the first results")

    def end(self):
        self.process.kill()
        self.process.communicate()

    def wait_until(self, is_so, what):
        deadline = time.monotonic() + DEADLINE_S
        while not is_so():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)

    def cadre(self, *arguments, code=0):
        done = subprocess.run([BIN / "cadre", *map(str, arguments)], cwd=self.folder, env=ENVIRONMENT, text=True,
                              capture_output=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def shown(self):
        return json.loads(self.cadre("show", "test", "--json"))

    def results(self, trial):
        files = list(self.experiment.glob(f"{trial:05}*/result.json"))
        return len(files[0].read_text().splitlines()) if files else 0

    def running(self):
        """Returns the processes of the program that exist."""
        pids = self.processes.read_text().split()
        return [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]

    def finish(self, code=0):
        self.slow.unlink(missing_ok=True)
        output, errors = self.process.communicate(timeout=DEADLINE_S)
        self.assertEqual(self.process.returncode, code, errors.decode())
        return output.decode()

    def tune(self, *arguments, **options):
        self.slow.unlink(missing_ok=True)
        return super().tune(*arguments, **options)

    def statuses(self):
        return [trial["status"] for trial in self.trials()]

    def test_a_trial_stops_and_the_others_go_on(self):
        self.begin()
        self.assertIn("trial 00001 stops", self.cadre("stop", "test", "1"))
        self.wait_until(lambda: "STOPPED" in self.statuses(), "the trial has stopped")
        self.assertIn("trial 00001 has ended: STOPPED", self.cadre("stop", "test", "00001", code=1))
        self.assertIn('there is no trial "00009"; there are 00000 to 00001', self.cadre("stop", "test", "9", code=1))
        self.assertIn("Trial 00001 is to stop, as was asked for", self.finish())
        self.assertEqual(self.statuses(), ["TERMINATED", "STOPPED"])
        self.assertEqual(len(self.rows(0)), 40)

    def test_several_trials_are_stopped_although_one_of_them_is_refused(self):
        self.begin(text="num_samples = 3")
        self.assertIn('there is no trial "00009"', self.cadre("stop", "test", "0", "9", "1", code=1))
        self.wait_until(lambda: self.statuses()[:2] == ["STOPPED"] * 2, "both trials have stopped")
        self.finish()
        self.assertEqual(self.statuses(), ["STOPPED", "STOPPED", "TERMINATED"])

    def test_all_trials_stop_and_an_extension_continues_them(self):
        self.begin(text="num_samples = 9\nstop = { training_iteration = 40 }")
        self.cadre("stop", "test")
        self.finish()
        self.assertEqual(self.statuses(), ["TERMINATED", "TERMINATED"])
        self.assertIn("nothing runs in test", self.cadre("stop", "test", code=1))
        before = self.results(0)
        self.assertLess(before, 40)
        self.tune("--extend", "test", "--set", f"stop.training_iteration={before + 3}", "--set", "num_samples=2")
        self.assertEqual([row["loss"] for row in self.rows(0)], list(range(1, before + 4)))

    def test_a_pause_ends_all_processes_and_nothing_is_lost(self):
        self.begin()
        self.cadre("pause", "test")
        self.wait_until(lambda: not self.running(), "the processes have ended")
        self.assertIn("paused already", self.cadre("pause", "test", code=1))
        self.assertIn("paused by process", self.cadre("show", "test"))
        self.assertRegex(self.cadre("ls", "."), "test +paused")
        counts = [trial["metrics"]["training_iteration"] for trial in json.loads(self.cadre("show", "test", "--json"))["trials"]]
        # Files of results follow the store.
        self.wait_until(lambda: [self.results(trial) for trial in range(2)] == counts, "all results are in the files")
        time.sleep(0.5)
        self.assertEqual([self.results(trial) for trial in range(2)], counts)
        self.assertIsNone(self.process.poll())
        self.cadre("resume", "test")
        self.assertIn("is not paused", self.cadre("resume", "test", code=1))
        self.finish()
        for trial in range(2):
            self.assertEqual([row["loss"] for row in self.rows(trial)], list(range(1, 41)))

    def test_a_paused_experiment_is_killed_and_restored(self):
        self.begin()
        self.cadre("pause", "test")
        self.wait_until(lambda: not self.running(), "the processes have ended")
        self.process.kill()
        self.process.communicate()
        self.assertIn("nothing runs in test", self.cadre("resume", "test", code=1))
        self.tune("--restore", "test")
        self.assertEqual([row["loss"] for row in self.rows(1)], list(range(1, 41)))

    def test_ctrl_c_ends_a_paused_experiment(self):
        self.begin()
        self.cadre("pause", "test")
        self.wait_until(lambda: not self.running(), "the processes have ended")
        before, begin = self.shown()["experiment"], time.monotonic()
        self.assertEqual((before["state"], before["is_paused"]), ("running", True))
        time.sleep(1)
        pause = time.monotonic() - begin
        self.process.send_signal(signal.SIGINT)
        self.finish(code=130)
        after = self.shown()["experiment"]
        self.assertEqual((after["state"], after["is_paused"]), ("interrupted", False))
        self.assertLess(after["running_seconds"], before["running_seconds"] + pause)

    def test_an_enqueued_config_is_a_trial_whatever_happens(self):
        self.begin()
        self.assertIn("the next trial has these values", self.cadre("enqueue", "test", "lr=0.5"))
        self.process.kill()  # at once: what was acknowledged is in the store
        self.process.communicate()
        self.tune("--restore", "test")
        self.assertEqual([float(rows[0]["lr"]) for rows in map(self.rows, range(3))][2], 0.5)
        self.assertEqual(self.statuses(), ["TERMINATED"] * 3)

    def test_a_config_that_does_not_fit_is_refused(self):
        self.begin()
        message = self.cadre("enqueue", "test", "lr=7", "depth=3", code=1)
        self.assertIn('"lr": 7 is not in uniform(0.0, 1.0)', message)
        self.assertIn('"depth": param_space has no such key', message)
        self.assertIn("lr: write KEY=VALUE, as in lr=0.1", self.cadre("enqueue", "test", "lr", code=1))
        self.cadre("stop", "test")
        self.finish()
        self.assertEqual(len(self.trials()), 2)

    def test_keys_of_an_enqueued_config_are_paths(self):
        self.begin("--set", "space.model.width=randint(1, 9)")
        self.assertIn('"model/width": 64 is not in randint(1, 9)',
                      self.cadre("enqueue", "test", "model/width=64", code=1))
        self.cadre("enqueue", "test", "lr=0.5", "model/width=8")
        self.finish()
        self.assertIn({"lr": 0.5, "model": {"width": 8}}, [trial["config"] for trial in self.trials()])

    def test_requests_of_others_are_ignored_and_old_ones_refused(self):
        self.begin()
        folder = self.experiment / ".requests"
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        request = {"request": {"do": "stop"}, "until": time.time() + 100}
        (folder / "1.json").write_text(json.dumps(request))  # the folder is not its owner's alone
        time.sleep(0.7)
        self.assertTrue((folder / "1.json").exists())
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(folder / "1.json", 1234, 1234)
        else:  # cannot make a file of another user
            (folder / "1.json").unlink()
        (folder / "2.json").write_text(json.dumps(request | {"until": time.time() - 1}))
        (folder / "3.json").write_text("no JSON")
        (folder / "4.json").write_text(json.dumps({"request": {"do": "dance"}, "until": time.time() + 100}))
        folder.chmod(0o755)  # at last, as a request is whole when it comes
        for number, message in [(2, "too late"), (3, "the request, offset 1"), (4, "dance")]:
            answer = folder / f"{number}.answer"
            self.wait_until(answer.exists, f"answer {number}")
            self.assertIn(message, json.loads(answer.read_text())["error"])
        self.assertEqual((folder / "1.json").exists(), is_root)
        self.assertEqual(self.statuses(), ["RUNNING", "RUNNING"])
        self.cadre("stop", "test")
        self.finish()


if __name__ == "__main__":
    unittest.main()
