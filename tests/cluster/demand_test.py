"""Nodes that are there while something waits for them: the queue of a real Slurm shows which, and when."""

import json
import os
import pathlib
import re
import threading
import time
import unittest

import rig

BIN = pathlib.Path(os.environ["CADRE_BIN"])
DEADLINE_S = 120
LINGER_S = 2
SLACK_S = 120  # for Slurm to end a job, on a slow machine


def nodes_of(cluster, experiment):
    return json.loads(cluster.run("ctl", [BIN / "cadre", "nodes", experiment, "--json"]).stdout)["nodes"]


def hold_back(storage, name):
    """Returns the file that holds something of validating_tool back until it is removed."""
    hold = storage / f"hold_{name}"
    hold.touch()
    return hold


def wait_for_nodes(cluster, run, condition, what):
    """Returns the first true value of a condition for all nodes of a run."""
    rig.wait_until(lambda: (run / "experiment.db").exists(), "the run has begun", DEADLINE_S)
    return rig.wait_until(lambda: condition(nodes_of(cluster, run)), what, DEADLINE_S)


def wait_until_given_back(cluster, run, number):
    wait_for_nodes(cluster, run, lambda nodes: any(node["node"] == number and node["left"] for node in nodes),
                   f"node {number} is given back")


class DemandTest(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2))
        self.storage = self.cluster.directory / "experiments"
        self.storage.mkdir()
        self.queue = []  # moments, and the jobs' states by group then
        self._ends = threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        self.addCleanup(self._watcher.join)
        self.addCleanup(self._ends.set)

    def _watch(self):
        while not self._ends.wait(0.1):
            done = self.cluster.run("ctl", ["squeue", "--noheader", "--format=%k %T"], check=False)
            self.queue.append((time.time(), sorted(done.stdout.splitlines())))

    def jobs(self):
        done = self.cluster.run("ctl", ["squeue", "--noheader", "--states=all", "--format=%T"], check=False)
        return [state for state in done.stdout.split() if state in ("PENDING", "RUNNING")]

    def most_jobs(self):
        return max((len(jobs) for _, jobs in self.queue), default=0)

    def cluster_file(self, groups, **members):
        file = self.cluster.directory / "cluster.json"
        # Three of a node's four CPUs: no other job is there.
        groups = [{"cpus": 3, "linger": LINGER_S} | group for group in groups]
        file.write_text(json.dumps({"engine": "slurm", "groups": groups} | members), encoding="utf-8")
        return str(file)

    def start(self, *command, groups, **variables):
        return rig.start_for(self, self.cluster, [str(part) for part in command],
                             CADRE_CLUSTER=self.cluster_file(groups), **variables)

    def finish(self, process, code=0):
        output, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, code, errors + output)
        rig.wait_until(lambda: not self.jobs(), "the queue is empty", DEADLINE_S)
        return output + errors

    def nodes(self, experiment):
        return nodes_of(self.cluster, experiment)


class TrialsTest(DemandTest):
    def hosts(self):
        return {json.loads(line)["host"] for file in (self.storage / "population").glob("*/result.json")
                for line in file.read_text().splitlines()}

    def test_a_population_gets_the_nodes_that_it_needs_and_they_go_when_the_last_trials_need_fewer(self):
        hurry = self.cluster.directory / "hurry"
        process = self.start(BIN / "population_tool", self.storage, 5, 40, 100, CADRE_TEST_HURRY=str(hurry),
                             groups=[{"name": "trials", "nodes": 2, "min_nodes": 0}])
        rig.wait_until(lambda: self.hosts() == {"n1", "n2"}, "trials are on both nodes", DEADLINE_S)
        rig.wait_until(lambda: self.most_jobs() == 2, "the queue has both nodes", DEADLINE_S)
        hurry.touch()
        output = self.finish(process)
        results = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        self.assertEqual([trial["done"] for trial in results], [40] * 5)
        self.assertEqual(self.most_jobs(), 2)

    def test_a_single_trial_gets_one(self):
        process = self.start(BIN / "population_tool", self.storage, 1, 40, 100,
                             groups=[{"name": "trials", "nodes": 2, "min_nodes": 0}])
        self.finish(process)
        self.assertEqual(self.most_jobs(), 1)


class ValidationTest(DemandTest):
    groups = [{"name": "training", "nodes": 1}, {"name": "validators", "nodes": 1, "min_nodes": 0}]

    def validated(self):
        """Returns what validations say: host, begin, end, step."""
        file = self.storage / "validated"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(host, float(begin), float(end), int(step)) for host, begin, end, step in map(str.split, lines)]

    def start_training(self, steps, every, validation_ms, workers="1", groups=None):
        return self.start(BIN / "validating_tool", self.storage, workers, steps, 100, every, validation_ms,
                          groups=groups or self.groups)

    def test_validators_have_a_node_while_there_is_something_to_validate(self):
        hold = hold_back(self.storage, 40)
        process = self.start_training(steps=45, every=20, validation_ms=500)
        wait_until_given_back(self.cluster, self.storage / "run", 2)
        given_back = time.time()
        rig.wait_until(lambda: self.queue[-1][0] > given_back and len(self.queue[-1][1]) == 1, "its job has ended",
                       DEADLINE_S)
        hold.unlink()
        self.finish(process)
        first, second = self.validated()
        self.assertEqual((first[3], second[3]), (20, 40))
        nodes = self.nodes(self.storage / "run")
        self.assertEqual([node["node"] for node in nodes], [1, 2, 3])  # training, and one for each validation
        self.assertNotIn(nodes[0]["name"], (first[0], second[0]))
        self.assertRegex(nodes[1]["reason"], r"nothing has run there for 2 s")
        for node in nodes[1:]:
            self.assertLess(node["left"] - node["joined"] - node["busy"], LINGER_S + SLACK_S)
            self.assertGreater(node["busy"], 0.4)
        alone = [moment for moment, jobs in self.queue if first[2] < moment < second[1] and len(jobs) == 1]
        self.assertTrue(alone, "the node was never given back")
        self.assertLess(alone[0] - first[2], LINGER_S + SLACK_S)
        asked = next(moment for moment, jobs in self.queue if len(jobs) > 1)
        self.assertGreater(asked, nodes[0]["joined"] + 20 * 0.1)  # and not before there was something to validate

    def test_a_validation_whose_node_dies_is_tried_again_on_another(self):
        hold = hold_back(self.storage, "validation_10")
        process = self.start_training(steps=20, every=10, validation_ms=100)
        [victim] = wait_for_nodes(self.cluster, self.storage / "run",
                                  lambda nodes: [node["name"] for node in nodes if node["validations"]],
                                  "something is validated")
        self.assertEqual(self.cluster.kill("validating_tool", node=victim), 1)  # the agent
        hold.unlink()
        self.finish(process)
        self.assertEqual(sorted(step for _, _, _, step in self.validated()), [10, 20])
        self.assertEqual(len([node for node in self.nodes(self.storage / "run") if node["state"] == "lost"]), 1)

    def test_validators_that_cannot_be_had_end_the_run_with_the_reason_when_it_has_trained(self):
        groups = [self.groups[0], self.groups[1] | {"options": {"partition": "none"}}]
        said = self.finish(self.start_training(steps=20, every=10, validation_ms=100, groups=groups), code=1)
        self.assertIn("a node cannot be had any more", said)
        self.assertIn("no other one can be had", said)
        self.assertIn("partition", said)
        # Where they can be had, it goes on with what waits.
        self.finish(self.start_training(steps=20, every=10, validation_ms=100))
        self.assertEqual(sorted(step for _, _, _, step in self.validated()), [10, 20])

    def test_a_run_with_a_range_of_workers_grows_with_its_nodes(self):
        groups = [{"name": "training", "nodes": 2, "min_nodes": 1, "cpus": 3}]
        hold = hold_back(self.storage, 10)
        process = self.start(BIN / "validating_tool", self.storage, "1-6", 30, 100, 1000, 100, groups=groups)
        wait_for_nodes(self.cluster, self.storage / "run",
                       lambda nodes: sum(node["state"] == "ready" for node in nodes) == 2, "two nodes are there")
        hold.unlink()
        self.finish(process)
        sizes = re.findall(r"rank 0 of (\d)", (self.storage / "run" / "rank_0" / "stdout").read_text())
        cpus = min(3, len(os.sched_getaffinity(0)))  # of a node
        self.assertEqual(sizes, [str(cpus), str(2 * cpus)])


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
