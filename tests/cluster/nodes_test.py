"""Programs on the nodes of a real Slurm: the suite that every engine passes, and experiments while nodes are cut off and
killed."""

import json
import os
import pathlib
import re
import shutil
import sqlite3
import time
import unittest

import rig

BIN = pathlib.Path(os.environ["CADRE_BIN"])
DEADLINE_S = 120
# All of it is passed on steps of Slurm, over both kinds of connections. An agent does the same once it is connected,
# whoever has started it: elsewhere it is enough to see that workers start, report, are killed and end as they should.
SUITE = ("Agents/*:BrokenConnections/*", 28)
SUITE_OVER_STDIO = ("AgentsOverStdio/*", 14)
SHORT_SUITE = (":".join(f"Agents/*.{test}" for test in (
    "ReportsAndAnswersComeInOrder", "TwoWorkersRunAtOnce", "ExitCodesAndSignalsAreToldApart", "KillEndsAWorkerThatHangs",
    "ManyWorkersStartedInOneTurnAllExitOnceAfterTheirMessages")), 5)


class NodesTest(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2, slurmd_timeout_s=60))
        self.storage = self.cluster.directory / "experiments"

    def cluster_file(self, **members):
        file = self.cluster.directory / "cluster.json"
        file.write_text(json.dumps({"engine": "slurm"} | members), encoding="utf-8")
        return str(file)

    def allocated(self, command):
        return ["salloc", "--quiet", "--nodes=2", "--exclusive", *command]

    def population(self, *arguments, storage=None):
        return [str(BIN / "population_tool"), str(storage or self.storage), *map(str, arguments)]

    def start(self, command, **variables):
        return rig.start_for(self, self.cluster, command, **variables)

    def results(self, process):
        output, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        return [json.loads(line) for line in output.splitlines()]

    def rows(self, storage=None):
        """Returns the steps of all trials, as they are in the result files."""
        steps = {}
        for file in ((storage or self.storage) / "population").glob("*/result.json"):
            steps[file.parent.name] = [json.loads(line)["done"] for line in file.read_text().splitlines()]
        return steps

    def begun(self, rows=1):
        return lambda: sum(map(len, self.rows().values())) >= rows

    def wait_begun(self, rows=1):
        rig.wait_until(self.begun(rows), "the experiment has begun", DEADLINE_S)


class SuiteTest(NodesTest):
    def run_suite(self, suite, engine="slurm", before=()):
        names, tests = suite
        command = [*before, BIN / "cadre_system_tests", f"--gtest_filter={names}"]
        done = self.cluster.run("ctl", command, env={"CADRE_TEST_CLUSTER": engine}, check=False, timeout=800,
                                cwd=self.cluster.directory)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"[  PASSED  ] {tests} tests.", done.stdout)

    def test_steps_pass_it(self):
        self.run_suite(SUITE, before=self.allocated([]))

    def test_steps_whose_srun_carries_the_session_pass_it(self):
        self.run_suite(SUITE_OVER_STDIO, before=self.allocated([]))

    def test_jobs_pass_what_depends_on_them(self):
        self.run_suite(SHORT_SUITE)


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
        file = self.cluster_file(patience=25)
        process = self.start(self.allocated(self.population(4, 80, 100)), CADRE_CLUSTER=file)
        self.wait_begun(20)
        self.cluster.cut("n1")
        found = self.results(process)
        self.assertEqual([trial["done"] for trial in found], [80] * 4)
        self.assertEqual({trial["host"] for trial in found}, {"n2"})

    def test_a_killed_agent_costs_the_steps_since_the_last_checkpoint(self):
        process = self.start(self.allocated(self.population(8, 40, 50)), CADRE_CLUSTER="slurm")
        self.wait_begun(20)
        self.cluster.kill("population_tool", node="n2")
        found = self.results(process)
        self.assertEqual([trial["done"] for trial in found], [40] * 8)

    def test_a_killed_controller_leaves_nothing_and_is_continued(self):
        process = self.start(self.population(4, 40, 50), CADRE_CLUSTER=self.cluster_file(nodes_stay=0))
        self.wait_begun(20)
        self.cluster.kill("population_tool", node="ctl")
        process.wait(DEADLINE_S)
        rig.wait_until(lambda: not self.cluster.processes("population_tool"), "all agents have ended", DEADLINE_S)
        rig.wait_until(lambda: not self.cluster.run("ctl", ["squeue", "--noheader"]).stdout.strip(), "no job is left",
                       DEADLINE_S)
        found = self.results(self.start(self.population(4, 40, 50), CADRE_CLUSTER="slurm"))
        self.assertEqual([trial["done"] for trial in found], [40] * 4)


class NodesCommandTest(NodesTest):
    def nodes(self, *arguments):
        return self.cluster.run("ctl", [str(BIN / "cadre"), "nodes", f"{self.storage}/population", *arguments], check=False)

    def test_what_waits_in_the_queue_is_shown_with_slurms_reason(self):
        self.cluster.run("ctl", ["sbatch", "--nodelist=n2", "--exclusive", "--output=/dev/null", "--wrap=sleep 600"])
        file = self.cluster_file(groups=[{"name": "trial", "nodes": 2}])
        self.start(self.population(4, 5000, 50), CADRE_CLUSTER=file)
        self.wait_begun(20)
        waiting = rig.wait_until(lambda: json.loads(self.nodes("--json").stdout)["waiting"], "a node waits", DEADLINE_S)
        self.assertEqual([(one["group"], one["nodes"]) for one in waiting], [("trial", 1)])
        reason = re.compile(r'waits for +1 of "trial": (Resources|Priority)')
        rig.wait_until(lambda: reason.search(self.nodes().stdout), "Slurm's reason is shown", DEADLINE_S)
        self.assertRegex(self.nodes().stdout, r"1 +n1 +ready +\d")


class PrivateFoldersTest(NodesTest):
    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2, slurmd_timeout_s=60, private=["/mnt"]))
        self.storage = pathlib.Path("/mnt") / self.cluster.directory.name
        self.addCleanup(shutil.rmtree, self.storage, ignore_errors=True)

    def test_files_of_an_experiment_go_over_the_connections_where_nodes_see_no_directory(self):
        here = self.results(self.start(self.population(4, 12, 1, storage=self.cluster.directory / "here")))
        for name, command in (("steps", self.allocated), ("jobs", list)):
            storage = self.storage / name
            found = self.results(self.start(command(self.population(4, 12, 1, storage=storage)), CADRE_CLUSTER="slurm"))
            self.assertEqual([trial["value"] for trial in found], [trial["value"] for trial in here])
            self.assertEqual(self.rows(storage), self.rows(self.cluster.directory / "here"))
        rig.wait_until(lambda: not self.cluster.processes("population_tool"), "all agents have ended", DEADLINE_S)

    def test_a_program_that_nodes_do_not_see_is_named(self):
        self.storage.mkdir()
        program = self.storage / "program"
        shutil.copy(BIN / "population_tool", program)
        command = [str(program), str(self.cluster.directory / "experiments"), "4", "12", "1"]
        for called, said in (command, f"job 1_0 on n[12]: FAILED.*: {program}: not found"), \
                (self.allocated(command), f"{program}: No such file or directory"):
            process = self.start(called, CADRE_CLUSTER="slurm", LD_LIBRARY_PATH=str(BIN.parent / "src" / "tls"))
            _, errors = process.communicate(timeout=DEADLINE_S)
            self.assertEqual(process.returncode, 1, errors)
            self.assertRegex(errors, f"a node cannot be had: an agent has ended: .*{said}")
        self.assertFalse(list((self.cluster.directory / "experiments" / "population").glob(".agents")))


class TimeLimitTest(NodesTest):
    ITERATIONS = 450  # of 100 ms, in turns of five; they take no time once the test has seen what it waits for

    def setUp(self):
        super().setUp()
        self.hurry = self.cluster.directory / "hurry"

    def start(self, command, **variables):
        return super().start(command, CADRE_TEST_HURRY=str(self.hurry), **variables)

    def results(self, process):
        self.hurry.touch()
        return super().results(process)

    def ending(self, seconds, command):
        """Returns a command in an allocation that ends so soon after it begins."""
        script = f'scontrol update JobId=$SLURM_JOB_ID EndTime=now+{seconds}; exec "$@"'
        return self.allocated(["sh", "-c", script, "sh", *command])

    def events(self, kind):
        with sqlite3.connect(f"file:{self.storage}/population/experiment.db?mode=ro", uri=True) as store:
            rows = store.execute("select data from events where kind = ? order by sequence", (kind,))
            return [json.loads(data) for data, in rows]

    def wait_for_events(self, kind, number):
        rig.wait_until(lambda: len(self.events(kind)) >= number, f"{number} events {kind}", DEADLINE_S)

    def expect_that_nothing_was_lost(self):
        undisturbed = self.cluster.directory / "undisturbed"
        self.results(self.start(self.population(4, self.ITERATIONS, 0, 3, storage=undisturbed)))
        self.assertEqual(self.rows(), self.rows(undisturbed))  # some steps are repeated in exploits
        self.assertFalse([end for end in self.events("worker_ended") if end["exit"]["kind"] == "node_lost"])

    def test_a_job_drains_before_its_limit_and_another_one_follows(self):
        file = self.cluster_file(groups=[{"nodes": 2, "options": {"time": "1"}}])
        process = self.start(self.population(4, self.ITERATIONS, 100, 3), CADRE_CLUSTER=file)
        self.wait_begun(20)
        joined = len(self.events("node_joined"))
        self.wait_for_events("node_draining", 2)
        self.wait_for_events("node_joined", joined + 1)
        found = self.results(process)
        self.assertEqual([trial["done"] for trial in found], [self.ITERATIONS] * 4)
        self.expect_that_nothing_was_lost()
        draining = self.events("node_draining")
        self.assertGreaterEqual(len(draining), 2)
        for event in draining:
            self.assertIn("its time limit comes in", event["reason"])
            self.assertGreater(event["seconds_left"], 15)
            self.assertLessEqual(event["seconds_left"], 30)

    def test_an_experiment_is_interrupted_before_its_allocation_ends_and_goes_on_in_another_one(self):
        program = self.population(4, self.ITERATIONS, 100, 3)
        process = self.start(self.ending(24, program), CADRE_CLUSTER="slurm")
        _, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 128 + 15, errors)
        self.assertIn("was interrupted, and everything that was reported is saved", errors)
        self.assertEqual([event["node"] for event in self.events("node_draining")], [1, 2])
        self.assertEqual(len(self.events("experiment_interrupted")), 1)
        done = self.rows()
        self.assertTrue(all(20 < len(steps) < self.ITERATIONS for steps in done.values()), done)
        found = self.results(self.start(self.allocated(program), CADRE_CLUSTER="slurm"))
        self.assertEqual([trial["done"] for trial in found], [self.ITERATIONS] * 4)
        self.expect_that_nothing_was_lost()

    def test_an_allocation_whose_limit_is_extended_meanwhile_drains_no_node(self):
        process = self.start(self.ending(30, self.population(4, self.ITERATIONS, 100)), CADRE_CLUSTER="slurm")
        self.wait_begun(20)
        job, end = self.cluster.run("ctl", ["squeue", "--noheader", "--format=%i %e"],
                                    env={"SLURM_TIME_FORMAT": "%s"}).stdout.split()
        self.cluster.run("ctl", ["scontrol", "update", f"JobId={job}", "EndTime=now+3600"])
        rig.wait_until(lambda: time.time() > float(end), "it would have ended")
        found = self.results(process)
        self.assertEqual([trial["done"] for trial in found], [self.ITERATIONS] * 4)
        self.assertEqual(self.events("node_draining"), [])

    def test_an_allocation_that_is_cancelled_interrupts_the_experiment(self):
        process = self.start(self.allocated(self.population(4, self.ITERATIONS, 100)), CADRE_CLUSTER="slurm")
        self.wait_begun(20)
        job = self.cluster.run("ctl", ["squeue", "--noheader", "--format=%i"]).stdout.strip()
        self.cluster.run("ctl", ["scancel", job])
        _, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 128 + 15, errors)
        self.assertIn("was interrupted, and everything that was reported is saved", errors)


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
