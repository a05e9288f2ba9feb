"""Experiments on nodes that see no directory of theirs: files go over the connections of the agents."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

import commands_test
import restart_test
import rig

# Its function and parameters are objects of the experiment. Each trial adds up what it was given.
PROGRAM = """
import json, os, sys, tempfile
import numpy
import cadre
from cadre import tune

def add(config, numbers):
    checkpoint = tune.get_checkpoint()
    done = 0
    if checkpoint:
        with checkpoint.as_directory() as directory:
            done = os.path.getsize(os.path.join(directory, "done"))
    for step in range(done, 3):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "done"), "wb") as file:
                file.write(b"x" * (step + 1))
            os.makedirs(os.path.join(directory, "deep", "empty"))
            tune.report({"sum": float(numbers.sum()) * config["factor"]}, checkpoint=cadre.tune.Checkpoint.from_directory(directory))

cadre.init()
numbers = numpy.ones(5_000_000)
tuner = tune.Tuner(tune.with_parameters(add, numbers=numbers), param_space={"factor": tune.grid_search([1, 2, 3, 4])},
                   run_config=tune.RunConfig(name="sums", storage_path=sys.argv[1], verbose=0))
for result in tuner.fit():
    print(json.dumps({"sum": result.metrics["sum"], "error": str(result.error or ""), "files": sorted(os.listdir(result.checkpoint.path))}))
"""


class Carried(commands_test.RemoteShell):
    """The `storage` is a folder that only the control node sees."""

    private = ("/mnt",)

    def setUp(self):
        super().setUp()
        self.storage = pathlib.Path("/mnt") / self.directory.name
        self.storage.mkdir()
        self.addCleanup(shutil.rmtree, self.storage, ignore_errors=True)
        self.storage_path = str(self.storage)  # as the command has it

    def undisturbed(self):
        here = self.directory / "here"
        command = [word.replace(self.storage_path, str(here)) for word in self.command()]
        output, errors = self.start(command).communicate(timeout=restart_test.DEADLINE_S)
        self.assertEqual(errors, "")
        return here / "population", [json.loads(line)["value"] for line in output.splitlines()]

    def rows_of(self, experiment):
        return {file.parent.name: [json.loads(line)["done"] for line in file.read_text().splitlines()]
                for file in experiment.glob("*/result.json")}

    def finish_as_undisturbed(self, process):
        """Expects the outcome of one machine, and the files that expect_files() asks for. Returns what the program has said."""
        self.hurry().touch()
        output, errors = process.communicate(timeout=restart_test.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        here, values = self.undisturbed()
        self.assertEqual([json.loads(line)["value"] for line in output.splitlines()], values, errors)
        self.assertEqual(self.rows_of(self.experiment()), self.rows_of(here))
        self.expect_files(here)
        self.expect_no_agents()
        return errors


class CarriedTest(Carried):
    iterations = 60  # each sends a checkpoint

    def experiment(self):
        return self.storage / "population"

    def files(self, experiment):
        """Returns all files of checkpoints, with what is in them, and what each trial has printed, without the times."""
        checkpoints = {str(file.relative_to(experiment)): file.read_bytes() for file in experiment.glob("*/checkpoint_*/state")}
        self.assertFalse(list(experiment.glob("*/.reporting*")))
        return checkpoints

    def expect_files(self, here):
        self.assertEqual(self.files(self.experiment()), self.files(here))

    def test_the_directory_has_what_it_has_on_one_machine(self):
        process = self.begin()
        for folder in self.experiment().glob("*_step*"):
            restart_test.wait_until(lambda folder=folder: "begun" in (folder / "stdout").read_text(), "its output is here")
        self.finish_as_undisturbed(process)

    def test_killed_controllers_are_continued(self):
        for _ in range(3):
            process = self.start(self.command(), CADRE_CLUSTER=self.cluster_file())
            rows = self.rows()
            restart_test.wait_until(lambda rows=rows: self.rows() >= rows + 20, "it goes on")
            os.kill(self.controller(), signal.SIGKILL)
            process.wait()
        self.finish_as_undisturbed(self.start(self.command(), CADRE_CLUSTER=self.cluster_file()))

    def test_a_killed_agent_and_a_cut_lose_nothing(self):
        process = self.begin()
        self.cluster.cut("n1", seconds=3)
        time.sleep(1)
        n2 = [pid for pid in self.cluster.processes(restart_test.TOOL.name, "n2") if restart_test.is_agent(pid)]
        os.kill(n2[0], signal.SIGKILL)
        self.finish_as_undisturbed(process)

    def test_what_is_published_in_an_object_storage_is_continued_without_the_local_disk(self):
        server = self.cluster.start("ctl", [sys.executable, str(rig.SOURCE / "tests" / "storage" / "object_server.py")],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for act in (server.wait, server.stdout.close, server.stdin.close):
            self.addCleanup(act)
        port = server.stdout.readline().strip()
        server.stdin.write("bucket tests\n")
        server.stdin.flush()
        server.stdout.readline()
        place = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true",
                 "AWS_DEFAULT_REGION": "us-east-1", "HOME": str(self.storage), "CADRE_LEASE_PERIOD": "0.2",
                 "LD_LIBRARY_PATH": str(commands_test.BIN.parent / "src" / "object_storage")}
        command = [word.replace(str(self.storage), "s3://tests") for word in self.command()]
        first = self.start(command, CADRE_CLUSTER=self.cluster_file(nodes_stay=0), **place)
        working = self.storage / "cadre_results" / "population"

        def is_in_its_middle():
            rows = self.rows_of(working)
            return len(rows) == 4 and min(map(len, rows.values())) >= 40

        restart_test.wait_until(is_in_its_middle, "it is in its middle")
        os.kill(self.controller(), signal.SIGKILL)
        first.wait()
        self.expect_no_agents()
        shutil.rmtree(working.parent)
        self.hurry().touch()
        output, errors = self.start(command, CADRE_CLUSTER=self.cluster_file(), **place).communicate(timeout=restart_test.DEADLINE_S)
        here, values = self.undisturbed()
        self.assertEqual([json.loads(line)["value"] for line in output.splitlines()], values, errors)
        self.assertEqual(self.rows_of(working), self.rows_of(here))

    def test_objects_are_brought_and_directories_come_as_they_are(self):
        program = self.directory / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        process = self.start([sys.executable, str(program), str(self.storage)], CADRE_CLUSTER=self.cluster_file())
        output, errors = process.communicate(timeout=restart_test.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        results = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        self.assertEqual([result["sum"] for result in results], [5e6 * factor for factor in (1, 2, 3, 4)])
        self.assertEqual([result["files"] for result in results], [[".metadata.json", "deep", "done"]] * 4)
        self.assertEqual(len(list((self.storage / "sums").glob("*/checkpoint_*/deep/empty"))), 12)


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
