"""Programs on the nodes of a real Slurm: the suite that every engine passes, and experiments while nodes are cut off and
killed."""

import json
import os
import pathlib
import subprocess
import unittest

import rig

BIN = pathlib.Path(os.environ["CADRE_BIN"])
DEADLINE_S = 120
SUITE = "Agents/*:BrokenConnections/*"


class NodesTest(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2, slurmd_timeout_s=60))
        self.storage = self.cluster.directory / "experiments"

    def allocated(self, command):
        return ["salloc", "--quiet", "--nodes=2", "--exclusive", *command]

    def population(self, *arguments, storage=None):
        return [str(BIN / "population_tool"), str(storage or self.storage), *map(str, arguments)]

    def start(self, command, **variables):
        process = self.cluster.start("ctl", command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     cwd=self.cluster.directory)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def results(self, process):
        output, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        return [json.loads(line) for line in output.splitlines()]

    def rows(self):
        """Returns the steps of all trials, as they are in the result files."""
        steps = {}
        for file in (self.storage / "population").glob("*/result.json"):
            steps[file.parent.name] = [json.loads(line)["done"] for line in file.read_text().splitlines()]
        return steps

    def begun(self, rows=1):
        return lambda: sum(map(len, self.rows().values())) >= rows

    def wait_begun(self, rows=1):
        rig.wait_until(self.begun(rows), "the experiment has begun", DEADLINE_S)


class SuiteTest(NodesTest):
    def run_suite(self, command, tests=28):
        done = self.cluster.run("ctl", command, env={"CADRE_TEST_CLUSTER": "slurm"}, check=False, timeout=200,
                                cwd=self.cluster.directory)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"[  PASSED  ] {tests} tests.", done.stdout)

    def test_steps_pass_it(self):
        self.run_suite(self.allocated([str(BIN / "cadre_system_tests"), f"--gtest_filter={SUITE}"]))

    def test_steps_whose_srun_carries_the_session_pass_it(self):
        self.run_suite(self.allocated([str(BIN / "cadre_system_tests"), "--gtest_filter=AgentsOverStdio/*"]), tests=14)

    def test_jobs_pass_it(self):
        self.run_suite([str(BIN / "cadre_system_tests"), f"--gtest_filter={SUITE}"])


class PopulationTest(NodesTest):
    def test_steps_and_jobs_come_to_what_one_machine_comes_to(self):
        here = self.results(self.start(self.population(4, 12, 1, storage=self.cluster.directory / "here")))
        for name, command in (("steps", self.allocated), ("jobs", list)):
            found = self.results(self.start(command(self.population(4, 12, 1, storage=self.cluster.directory / name)),
                                            CADRE_CLUSTER="slurm"))
            self.assertEqual([trial["value"] for trial in found], [trial["value"] for trial in here])
            self.assertEqual({trial["host"] for trial in here}, {"ctl"})
            self.assertLessEqual({trial["host"] for trial in found}, {"n1", "n2"})

    def test_a_short_cut_loses_nothing(self):
        process = self.start(self.allocated(self.population(8, 60, 100)), CADRE_CLUSTER="slurm")
        self.wait_begun(20)
        self.cluster.cut("n1", seconds=8)
        found = self.results(process)
        self.assertEqual([trial["done"] for trial in found], [60] * 8)
        for trial, steps in self.rows().items():
            self.assertEqual(len(steps), 60, trial)

    def test_trials_of_a_node_that_is_cut_off_go_on_elsewhere(self):
        process = self.start(self.allocated(self.population(4, 120, 100)), CADRE_CLUSTER="slurm")
        self.wait_begun(20)
        self.cluster.cut("n1")
        found = self.results(process)
        self.assertEqual([trial["done"] for trial in found], [120] * 4)
        self.assertEqual({trial["host"] for trial in found}, {"n2"})

    def test_a_killed_agent_costs_the_steps_since_the_last_checkpoint(self):
        process = self.start(self.allocated(self.population(8, 40, 50)), CADRE_CLUSTER="slurm")
        self.wait_begun(20)
        self.cluster.kill("population_tool", node="n2")
        found = self.results(process)
        self.assertEqual([trial["done"] for trial in found], [40] * 8)

    def test_a_killed_controller_leaves_nothing_and_is_continued(self):
        impatient = self.cluster.directory / "impatient.json"
        impatient.write_text(json.dumps({"engine": "slurm", "nodes_stay": 0}), encoding="utf-8")
        process = self.start(self.population(4, 40, 50), CADRE_CLUSTER=str(impatient))
        self.wait_begun(20)
        self.cluster.kill("population_tool", node="ctl")
        process.wait(DEADLINE_S)
        rig.wait_until(lambda: not self.cluster.processes("population_tool"), "all agents have ended", DEADLINE_S)
        rig.wait_until(lambda: not self.cluster.run("ctl", ["squeue", "--noheader"]).stdout.strip(), "no job is left",
                       DEADLINE_S)
        found = self.results(self.start(self.population(4, 40, 50), CADRE_CLUSTER="slurm"))
        self.assertEqual([trial["done"] for trial in found], [40] * 4)


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
