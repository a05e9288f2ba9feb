"""The examples on a GPU: trials and workers with shares of one, a killed experiment that is restored, and what is said
where there are not enough. Skipped where there is no GPU, except under `make test-gpu`."""

import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["CADRE_BIN"])
DATA = pathlib.Path(os.environ["CADRE_SOURCE"]) / "data" / "mnist"
SKIPPED = 77
DEADLINE = 240


def gpu_processes():
    """Returns the programs that compute on a GPU, as nvidia-smi sees them; inside some containers it sees none."""
    query = ["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, timeout=60).stdout.split()


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        storage = tempfile.TemporaryDirectory()
        self.addCleanup(storage.cleanup)
        self.storage = pathlib.Path(storage.name)

    def command(self, program, *flags):
        return [BIN / program, "--storage-path", self.storage, "--data-dir", DATA, *flags]

    def run_program(self, program, *flags):
        return subprocess.run(self.command(program, *flags), capture_output=True, text=True, timeout=DEADLINE)

    def iterations(self):
        """Returns the iterations of each trial in the order of its rows."""
        files = sorted(self.storage.glob("pbt_mnist/*/result.json"))
        return [[json.loads(line)["training_iteration"] for line in file.read_text().splitlines()] for file in files]

    def test_trials_with_a_quarter_of_a_gpu_train_on_it_and_survive_a_kill(self):
        flags = ("--gpus-per-trial", "0.25", "--num-samples", "4", "--max-iterations", "12")
        with subprocess.Popen(self.command("pbt_mnist", *flags), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as program:
            begin = time.monotonic()
            while sum(map(len, self.iterations())) < 12:
                self.assertIsNone(program.poll(), program.stderr.read() if program.poll() is not None else "")
                self.assertLess(time.monotonic() - begin, DEADLINE)
                time.sleep(0.02)
            print("processes on the GPU, as nvidia-smi sees them:", len(gpu_processes()), file=sys.stderr)
            program.kill()
        before = self.iterations()
        done = self.run_program("pbt_mnist", "--restore")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(float(re.search(r"mean_accuracy ([\d.]+)", done.stdout)[1]), 0.8, done.stdout)
        after = self.iterations()
        self.assertEqual(len(after), 4)
        for trial in after:
            self.assertEqual(sorted(set(trial)), list(range(1, 13)))
        for earlier, later in zip(before, after):
            self.assertEqual(later[:len(earlier)], earlier)

    def test_one_worker_trains_on_a_whole_gpu(self):
        for model in ("convnet", "resnet18"):
            with self.subTest(model=model):
                done = self.run_program("fashion_mnist_train", "--num-workers", "1", "--gpus-per-worker", "1", "--epochs",
                                        "2", "--model", model, "--max-images", "20000", "--name", model)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertGreater(float(re.search(r"accuracy on the test images ([\d.]+)", done.stdout)[1]), 0.9)

    def test_two_workers_share_a_gpu(self):
        done = self.run_program("fashion_mnist_train", "--num-workers", "2", "--gpus-per-worker", "0.5", "--epochs", "2",
                                "--model", "convnet", "--max-images", "20000")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(float(re.search(r"accuracy on the test images ([\d.]+)", done.stdout)[1]), 0.9)

    def test_more_gpus_than_there_are_is_said_before_anything_runs(self):
        done = self.run_program("fashion_mnist_train", "--num-workers", "64", "--gpus-per-worker", "1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("64 gpus (there are ", done.stderr)
        print(done.stderr.strip(), file=sys.stderr)
        self.assertFalse(list(self.storage.glob("*/*")))


if __name__ == "__main__":
    if not glob.glob("/dev/nvidia[0-9]*") and "CADRE_REQUIRE_GPU" not in os.environ:
        print("there is no NVIDIA GPU")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
