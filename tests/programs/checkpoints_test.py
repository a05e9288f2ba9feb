"""`cadre tune`: checkpoints, Population Based Training, and experiments that are killed and restored."""

import importlib.util
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

from tuning import EXAMPLES, TuneTest

POPULATION = """
    metric = "{metric}"
    mode = "{mode}"
    name = "test"
    storage_path = "."
    num_samples = 4
    stop_patience = 1
    [space]
    lr = "loguniform(1e-5, {most})"
    momentum = "uniform(0.5, 0.9)"
    [scheduler]
    type = "PopulationBasedTraining"
    time_attr = "training_iteration"
    perturbation_interval = 5
    synch = true
    hyperparam_mutations = {{ lr = "loguniform(1e-5, {most})" }}
"""


class CheckpointsTest(TuneTest):
    def test_a_program_that_cannot_ask_renames_a_directory(self):
        self.write("tune.toml", """
            metric = "loss"
            mode = "min"
            name = "test"
            storage_path = "."
            space.end = 3
            metric_patterns = { loss = 'loss (.+)' }
            failure_config = { max_failures = 1 }
        """)
        self.tune("tune.toml", "--", *self.python("""
            import os
            before = os.environ.get("CADRE_CHECKPOINT_IN")
            step = int(open(before + "/step").read()) if before else 0
            while step < 6:
                step += 1
                os.mkdir("partial")
                open("partial/step", "w").write(str(step))
                os.rename("partial", os.environ["CADRE_CHECKPOINT_OUT"])
                print("loss", step, flush=True)
                while os.path.exists(os.environ["CADRE_CHECKPOINT_OUT"]):
                    pass
                if step == 3 and not before:
                    os._exit(1)  # it continues from its latest checkpoint
        """))
        self.assertEqual([row["loss"] for row in self.rows()], [1, 2, 3, 4, 5, 6])
        self.assertEqual([row["training_iteration"] for row in self.rows()], [1, 2, 3, 4, 5, 6])

    def test_a_program_is_asked_by_a_signal(self):
        self.write("tune.toml", """
            metric = "loss"
            mode = "min"
            name = "test"
            storage_path = "."
            metric_patterns = { loss = 'loss (.+)' }
            checkpoint_signal = "SIGUSR1"
            checkpoint_config = { checkpoint_frequency = 2 }
        """)
        self.tune("tune.toml", "--", *self.python("""
            import os, signal, time
            step = saved = 0
            def save(*_):
                global saved
                os.mkdir("partial")
                open("partial/step", "w").write(str(step))
                os.rename("partial", os.environ["CADRE_CHECKPOINT_OUT"])
                saved = step
            signal.signal(signal.SIGUSR1, save)
            for step in range(1, 5):
                print("loss", step, flush=True)
                time.sleep(0.1)  # it computes
                while step % 2 == 0 and (saved < step or os.path.exists(os.environ["CADRE_CHECKPOINT_OUT"])):
                    time.sleep(0.01)
        """))
        saved = [row["training_iteration"] for row in self.rows() if row["checkpoint_dir_name"]]
        self.assertEqual(saved, [2, 4])
        self.assertEqual(len(list(self.directory().glob("checkpoint_*/step"))), 2)

    def test_a_directory_of_the_programs_own(self):
        self.write("tune.toml", "name = 'test'\nstorage_path = '.'")
        self.tune("tune.toml", "--", *self.python("""
            import os
            os.mkdir("own")
            open("own/state", "w").write("mine")
            os.write(3, b'saved own\\n{"loss": 1}\\n')
        """))
        [state] = self.directory().glob("checkpoint_*/state")
        self.assertEqual(state.read_text(), "mine")
        self.assertFalse((self.folder / "own").exists())

    def test_a_program_that_does_not_save_when_it_is_asked_fails_its_trial(self):
        for answer, message in {
            'b\'{"loss": 2}\\n\'': "it must fill CADRE_CHECKPOINT_OUT and write \"saved\"",
            'b""': "ended with exit code 0 instead of writing the checkpoint that it was asked for",
        }.items():
            with self.subTest(answer=answer):
                self.write("tune.toml", "name = 'test'\nstorage_path = '.'")
                self.tune("tune.toml", "--", *self.python(f"""
                    import os
                    os.write(3, b'offer {{"loss": 1}}\\n')
                    os.read(3, 100)
                    os.write(3, {answer})
                """), code=1)
                self.assertIn(message, (self.directory() / "error.txt").read_text())
                self.remove_experiment()


class KillsTest(TuneTest):
    """Each example under synchronous Population Based Training, undisturbed and killed: the same in the end."""

    def outcome(self):
        """Returns configs, results and lineage, without times."""
        return [(trial["config"], trial["status"], [row[self.metric] for row in self.rows(index)])
                for index, trial in enumerate(self.trials())]

    def count_results(self):
        return sum(file.read_bytes().count(b"\n") for file in self.experiment.glob("*/result.json"))

    def check(self, metric, mode, most, *command, kills=6):
        self.metric = metric
        self.write("tune.toml", POPULATION.format(metric=metric, mode=mode, most=most))
        arguments = ["tune.toml", "--", *command]
        self.tune(*arguments)
        undisturbed = self.outcome()
        self.assertTrue(list(self.experiment.glob("pbt_policy_*")), "no trial was exploited")
        self.remove_experiment()

        total = sum(len(results) for _, _, results in undisturbed)
        for kill in range(1, kills + 1):
            process = self.start(*arguments)
            while self.count_results() < kill * total // (kills + 1):
                self.assertIsNone(process.poll(), "it ended before it was killed")
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=120)
            arguments = ["--restore", "test"]
        self.tune(*arguments)
        self.assertEqual(self.outcome(), undisturbed)

    def test_a_shell_script(self):
        self.check("loss", "min", 1, EXAMPLES / "sgd.sh", "{lr}")

    def test_a_compiled_program(self):
        source = pathlib.Path(EXAMPLES).parents[1]
        compiler = next(path for path in map(shutil.which, ["cc", "clang-19", "clang"]) if path)
        subprocess.run([compiler, "-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{source}/include",
                        EXAMPLES / "descent.c", "-o", self.folder / "descent"], check=True)
        self.check("loss", "min", 1e-3, "./descent", "{lr}", "{momentum}")

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_a_script_with_pytorch(self):
        # Few epochs, because each start of a trial imports torch.
        self.check("accuracy", "max", 1, sys.executable, EXAMPLES / "train.py", "--lr={lr}", "--momentum={momentum}",
                   "--epochs=10", kills=2)


if __name__ == "__main__":
    unittest.main()
