"""Controllers that are killed and started again: the nodes that waited for them, and those that nobody wants any more.

On agents of this machine without root; on a real Slurm where there can be one."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import nodes_test
import rig

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "population_tool"
DEADLINE_S = float(os.environ.get("CADRE_DEADLINE_S", 120))  # shorter to see a test fail
MISSING = rig.missing()
KEPT = ".cluster.json"


def parent(pid):
    with contextlib.suppress(OSError):
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def is_agent(pid):
    """Returns true for agents, and not for their fork servers and workers, which have the same environment."""
    def has_settings(process):
        with contextlib.suppress(OSError):
            return b"\0CADRE_AGENT=" in b"\0" + pathlib.Path(f"/proc/{process}/environ").read_bytes() \
                and pathlib.Path(f"/proc/{process}/comm").read_text().strip() == TOOL.name
        return False
    return has_settings(pid) and not has_settings(parent(pid))


def described(pid):
    """Returns a process's state, parent, files and threads, for somebody who asks why it is still there."""
    process = pathlib.Path(f"/proc/{pid}")
    with contextlib.suppress(OSError):
        status = [line for line in (process / "status").read_text().splitlines()
                  if line.startswith(("Name", "State", "PPid", "Threads", "SigPnd", "SigBlk", "SigCgt"))]
        files = [f"{link.name} -> {os.readlink(link)}" for link in (process / "fd").iterdir()]
        waits = [(task / "wchan").read_text() for task in (process / "task").iterdir()]
        children = (process / "task" / str(pid) / "children").read_text()
        return f"process {pid}: {status}, children {children}, waits in {waits}, files {files}"
    return f"process {pid} has ended"


def wait_until(condition, what):
    return rig.wait_until(condition, what, DEADLINE_S)


class RestartTest(unittest.TestCase):
    """A test's `directory`, and its `agents`. The experiment does not end before the test has seen all."""

    trials, iterations, pause_ms = 4, 60, 50
    said = ""  # by the last controller that has ended

    def experiment(self):
        return self.directory / "experiments" / "population"

    def hurry(self):
        return self.directory / "hurry"

    def command(self):
        return ["env", f"CADRE_TEST_HURRY={self.hurry()}", str(TOOL), str(self.experiment().parent),
                *map(str, (self.trials, self.iterations, self.pause_ms))]

    def cluster_file(self, name="cluster.json", nodes=2, **members):
        file = self.directory / name
        file.write_text(json.dumps({"engine": self.engine, "groups": [{"name": "trial", "nodes": nodes}]} | members),
                        encoding="utf-8")
        return str(file)

    def begun(self):
        """Returns the times at which workers of trials have begun, in the order of time."""
        files = self.experiment().glob("*/stdout")
        return sorted(float(line.split()[1]) for file in files for line in file.read_text().splitlines() if " " in line)

    def wait_begun(self, after):
        return wait_until(lambda: [moment for moment in self.begun() if moment > after], "a trial has begun")[0]

    def rows(self):
        return sum(len(file.read_text().splitlines()) for file in self.experiment().glob("*/result.json"))

    def hosts(self):
        """Returns the hosts of all results."""
        return {json.loads(line)["host"] for file in self.experiment().glob("*/result.json")
                for line in file.read_text().splitlines()}

    def kill(self, controller):
        """Kills a controller in the middle of its experiment."""
        wait_until(lambda: self.rows() >= 20, "the experiment has come to its middle")
        self.assertTrue((self.experiment() / KEPT).exists())
        os.kill(controller, signal.SIGKILL)
        return time.time()

    def finish(self, process):
        """Returns what the controller has said."""
        self.hurry().touch()
        output, errors = process.communicate(timeout=DEADLINE_S)
        self.said = errors
        self.assertEqual(process.returncode, 0, errors + output)
        results = [json.loads(line) for line in output.splitlines()]
        self.assertEqual([trial["done"] for trial in results], [self.iterations] * self.trials, errors)
        self.assertFalse((self.experiment() / KEPT).exists())
        return errors

    def expect_no_agents(self):
        try:
            wait_until(lambda: not self.agents(), "all agents have ended")
        except rig.RigError as error:
            raise rig.RigError("\n".join([str(error), *map(described, self.agents()), *self.logs_of_agents(), self.said])) from error

    def logs_of_agents(self):
        return [f"{log}:\n{log.read_text(errors='replace')[-2000:]}" for log in self.directory.glob("**/.agents/**/*")
                if log.is_file()]


class ProcessesTest(RestartTest):
    engine = "processes"

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.addCleanup(self.kill_agents)

    def start(self, cluster, command=None):
        process = subprocess.Popen(command or self.command(), env=os.environ | {"CADRE_CLUSTER": cluster}, cwd=self.directory,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for act in (process.stdout.close, process.stderr.close, process.wait, process.kill):
            self.addCleanup(act)
        return process

    def start_and_kill(self, cluster):
        """Returns the agents and the time of the kill."""
        process = self.start(cluster)
        wait_until(lambda: self.rows() >= 1 and len(self.agents()) == 2, "two nodes are there")
        agents = self.agents()
        killed = self.kill(process.pid)
        process.wait()
        return agents, killed

    def agents(self):
        mark = str(self.directory).encode()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "cmdline").read_bytes() and is_agent(entry.name):
                    found.append(int(entry.name))
        return sorted(found)

    def kill_agents(self):
        for pid in self.agents():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def go_on(self, cluster, agents, since, what):
        """Runs the next controller to its end, on the agents that are there."""
        process = self.start(cluster)
        first = self.wait_begun(since)
        print(f"from {what}: {first - since:.3f} s")
        self.assertEqual(self.agents(), agents)
        self.finish(process)
        self.expect_no_agents()

    def test_the_same_agents_serve_the_next_controller(self):
        cluster = self.cluster_file()
        agents, _ = self.start_and_kill(cluster)
        self.assertEqual(len(agents), 2)
        time.sleep(3)  # until they know that it is gone
        self.assertEqual(self.agents(), agents)
        self.go_on(cluster, agents, time.time(), "the start of the controller to its first trial, on agents that waited")

    def test_they_do_at_once(self):
        cluster = self.cluster_file()
        agents, killed = self.start_and_kill(cluster)
        self.go_on(cluster, agents, killed, "the kill of the controller to the first trial of the next one")

    def test_an_agent_that_ended_meanwhile_is_replaced(self):
        cluster = self.cluster_file()
        agents, _ = self.start_and_kill(cluster)
        os.kill(agents[0], signal.SIGKILL)
        wait_until(lambda: len(self.agents()) == 1, "it has ended")
        process = self.start(cluster)
        wait_until(lambda: len(self.agents()) == 2, "another one is there")
        self.assertIn(agents[1], self.agents())
        self.finish(process)
        self.expect_no_agents()

    def test_agents_end_if_no_controller_comes(self):
        agents, killed = self.start_and_kill(self.cluster_file(nodes_stay=2))
        self.expect_no_agents()
        self.assertGreater(time.time() - killed, 1)

    def test_agents_that_are_not_to_stay_end_with_their_controller(self):
        cluster = self.cluster_file(nodes_stay=0)
        process = self.start(cluster)
        wait_until(lambda: self.rows() >= 20, "the experiment has come to its middle")
        self.assertFalse((self.experiment() / KEPT).exists())
        process.kill()
        self.expect_no_agents()
        self.finish(self.start(cluster))

    def test_a_run_that_has_ended_requests_no_nodes(self):
        self.finish(self.start(self.cluster_file()))
        unreachable = self.cluster_file("unreachable.json", addresses=["192.0.2.1"])  # agents never connect
        self.assertEqual(self.finish(self.start(unreachable)), "")

    def test_fewer_nodes_are_wanted(self):
        agents, _ = self.start_and_kill(self.cluster_file())
        process = self.start(self.cluster_file("fewer.json", nodes=1))
        wait_until(lambda: len(self.agents()) == 1, "the other one has ended")
        self.assertLess(set(self.agents()), set(agents))
        self.finish(process)
        self.expect_no_agents()

    def test_agents_with_other_arguments_are_ended(self):
        cluster = self.cluster_file()
        agents, _ = self.start_and_kill(cluster)
        process = self.start(cluster, [*self.command(), "1"])
        wait_until(lambda: len(self.agents()) == 2 and not set(agents) & set(self.agents()), "there are others")
        self.assertIn("the nodes of the process before are of no use: they run the program with other arguments",
                      self.finish(process))
        self.expect_no_agents()

    def test_a_damaged_file_costs_the_nodes_and_nothing_else(self):
        cluster = self.cluster_file(nodes_stay=8)
        agents, _ = self.start_and_kill(cluster)
        kept = self.experiment() / KEPT
        kept.write_text(kept.read_text().replace("a", "b"))
        process = self.start(cluster)
        wait_until(lambda: len(set(self.agents()) - set(agents)) == 2, "there are others")
        self.assertIn(f"{kept} does not lead to the nodes of an earlier process: ", self.finish(process))
        self.expect_no_agents()  # those before end by themselves

    def test_what_may_still_run_is_known_to_the_process_after_one_that_did_not_begin(self):
        cluster = self.cluster_file()
        agents, _ = self.start_and_kill(cluster)
        os.kill(agents[0], signal.SIGSTOP)
        for _ in range(2):
            process = self.start(cluster)
            self.assertIn("waiting until workers of the process before have ended on", process.stderr.readline())
            os.kill(process.pid, signal.SIGINT)
            self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGINT)
            self.assertTrue((self.experiment() / KEPT).exists())

    def test_a_copy_of_the_experiment_leaves_the_agents_to_the_original(self):
        cluster = self.cluster_file()
        agents, _ = self.start_and_kill(cluster)
        shutil.copytree(self.experiment().parent, self.directory / "copies")
        copy = [str(self.directory / "copies") if word == str(self.experiment().parent) else word for word in self.command()]
        process = self.start(cluster, copy)
        self.hurry().touch()
        output, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        self.assertIn("it was copied together with its directory", errors)
        self.assertEqual(self.agents(), agents)
        process = self.start(cluster)
        self.finish(process)
        self.expect_no_agents()


@unittest.skipIf(MISSING, MISSING)
class SlurmTest(RestartTest):
    engine = "slurm"

    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2, slurmd_timeout_s=60))
        self.directory = self.cluster.directory

    start = nodes_test.NodesTest.start

    def agents(self):
        return [pid for pid in self.cluster.processes(TOOL.name) if is_agent(pid)]

    def workers(self, node):
        """Returns those whose output goes to a trial's directory."""
        def output(pid):
            with contextlib.suppress(OSError):
                return os.readlink(f"/proc/{pid}/fd/1")
            return ""
        return [pid for pid in self.cluster.processes(node=node) if output(pid).endswith("/stdout")]

    def controller(self):
        """Returns the one process of the tool on the control node that is no fork server."""
        def found():
            tools = self.cluster.processes(TOOL.name, "ctl")
            return [pid for pid in tools if parent(pid) not in tools]
        return wait_until(found, "the controller runs")[0]

    def jobs(self):
        """Returns state by job."""
        lines = self.cluster.run("ctl", ["squeue", "--noheader", "--array", "--format=%i %T"]).stdout.splitlines()
        return dict(line.split() for line in lines)

    def kill_controller(self):
        agents = self.agents()
        controller = self.controller()
        killed = self.kill(controller)
        wait_until(lambda: controller not in self.cluster.processes(TOOL.name, "ctl"), "it has ended")
        return agents, killed

    def expect_nothing_left(self):
        wait_until(lambda: not self.jobs(), "the queue is empty")
        self.expect_no_agents()


class JobsTest(SlurmTest):
    def test_the_same_jobs_serve_the_next_controller_and_a_waiting_one_is_kept(self):
        self.iterations = 150
        cluster = self.cluster_file(nodes=3)
        first = self.start(self.command(), CADRE_CLUSTER=cluster)
        wait_until(lambda: self.rows() >= 1 and len(self.agents()) == 2, "two nodes are there")
        before = self.jobs()
        self.assertEqual(sorted(before.values()), ["PENDING", "RUNNING", "RUNNING"])
        agents, killed = self.kill_controller()
        first.wait()
        second = self.start(self.command(), CADRE_CLUSTER=cluster)
        begun = self.wait_begun(killed)
        print(f"from the kill of the controller to the first trial of the next one, on jobs of Slurm: {begun - killed:.3f} s")
        self.assertEqual(self.agents(), agents)
        self.assertEqual(self.jobs(), before)
        rows = self.rows()
        wait_until(lambda: self.rows() >= rows + 40, "it goes on")
        self.assertEqual(self.jobs(), before)
        self.finish(second)
        self.expect_nothing_left()

    def test_a_controller_that_is_killed_in_the_queue_is_not_queued_twice(self):
        cluster = self.cluster_file(nodes=1)
        self.cluster.run("ctl", ["sbatch", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 600"])
        wait_until(lambda: "RUNNING" in self.jobs().values(), "the nodes are taken")
        [other] = self.jobs()
        first = self.start(self.command(), CADRE_CLUSTER=cluster)
        wait_until(lambda: len(self.jobs()) == 2, "it is in the queue")
        before = self.jobs()
        os.kill(self.controller(), signal.SIGKILL)
        first.wait()
        second = self.start(self.command(), CADRE_CLUSTER=cluster)
        self.controller()
        time.sleep(2)
        self.assertEqual(self.jobs(), before)
        self.cluster.run("ctl", ["scancel", other])
        self.finish(second)
        self.expect_nothing_left()

    def test_ctrl_c_in_the_queue_gives_the_place_back(self):
        self.cluster.run("ctl", ["sbatch", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 600"])
        wait_until(lambda: "RUNNING" in self.jobs().values(), "the nodes are taken")
        before = self.jobs()
        first = self.start(self.command(), CADRE_CLUSTER=self.cluster_file(nodes=1))
        wait_until(lambda: len(self.jobs()) == 2, "it is in the queue")
        os.kill(self.controller(), signal.SIGINT)
        _, errors = first.communicate(timeout=DEADLINE_S)
        self.assertEqual(first.returncode, 128 + signal.SIGINT, errors)
        self.assertIn("the experiment population was interrupted, and everything that was reported is saved", errors)
        self.assertIn("Tuner::restore", errors)
        self.assertEqual(self.jobs(), before)
        self.assertFalse((self.experiment() / KEPT).exists())
        self.cluster.run("ctl", ["scancel", *before])
        self.finish(self.start(self.command(), CADRE_CLUSTER=self.cluster_file(nodes=1)))
        self.expect_nothing_left()

    def test_jobs_that_nobody_claims_are_cancelled(self):
        wanted = {"name": "trial", "nodes": 2}
        late = {"name": "late", "nodes": 1, "options": {"begin": "now+1hour"}}  # its job ends only if it is cancelled
        first = self.start(self.command(), CADRE_CLUSTER=self.cluster_file(groups=[wanted, late]))
        wait_until(lambda: self.rows() >= 1 and len(self.agents()) == 2, "two nodes are there")
        before = self.jobs()
        self.assertEqual(sorted(before.values()), ["PENDING", "RUNNING", "RUNNING"])
        agents, _ = self.kill_controller()
        first.wait()
        second = self.start(self.command(), CADRE_CLUSTER=self.cluster_file("other.json", groups=[wanted]))
        wait_until(lambda: len(self.jobs()) == 2, "the one that waits is cancelled")
        self.assertEqual(self.agents(), agents)
        self.finish(second)
        self.expect_nothing_left()

    def restart_beside_a_node_that_is_cut_off(self, command):
        """Kills the controller while one node is cut off; returns what the next one says, which runs `command`."""
        # Three of a node's four CPUs: each of the jobs is on a node of its own, and none has room for all trials.
        cluster = self.cluster_file(groups=[{"name": "trial", "nodes": 2, "cpus": 3}])
        first = self.start(self.command(), CADRE_CLUSTER=cluster)
        wait_until(lambda: self.rows() >= 20 and len(self.agents()) == 2 and self.workers("n1"), "two nodes work")
        self.cluster.cut("n1")
        workers = self.workers("n1")
        killed = self.kill(self.controller())
        first.wait()
        second = self.start(command, CADRE_CLUSTER=cluster)
        last_seen = killed
        def has_begun():
            nonlocal last_seen
            now = time.time()
            if any(pathlib.Path(f"/proc/{pid}").exists() for pid in workers):
                last_seen = now
            return [moment for moment in self.begun() if moment > killed]
        begun = wait_until(has_begun, "a trial has begun")[0]
        print(f"workers of a node that is cut off end {last_seen - killed:.1f} s after the kill of the controller, and the "
              f"next one begins after {begun - killed:.1f} s")
        self.assertGreater(last_seen, killed)
        self.assertGreater(begun, last_seen)
        self.cluster.heal("n1")
        said = self.finish(second)
        self.assertIn("waiting until workers of the process before have ended on n1", said)
        self.expect_nothing_left()
        return said

    def test_nothing_begins_while_workers_run_on_a_node_that_is_cut_off(self):
        self.restart_beside_a_node_that_is_cut_off(self.command())

    def test_nothing_begins_either_if_the_nodes_are_of_no_use(self):
        self.assertIn("the nodes of the process before are of no use: they run the program with other arguments",
                      self.restart_beside_a_node_that_is_cut_off([*self.command(), "1"]))

    def test_jobs_end_if_no_controller_comes(self):
        first = self.start(self.command(), CADRE_CLUSTER=self.cluster_file(nodes=3, nodes_stay=3))
        wait_until(lambda: self.rows() >= 1, "it has begun")
        self.kill_controller()
        first.wait()
        self.expect_nothing_left()


class StepsTest(SlurmTest):
    def test_the_same_steps_serve_the_next_controller(self):
        script = ["salloc", "--quiet", "--nodes=2", "--exclusive", "sh", "-c", '"$@"; exec "$@"', "sh", *self.command()]
        process = self.start(script, CADRE_CLUSTER=self.cluster_file())
        wait_until(lambda: self.rows() >= 1 and len(self.agents()) == 2, "two nodes are there")
        agents, killed = self.kill_controller()
        begun = self.wait_begun(killed)
        print(f"from the kill of the controller to the first trial of the next one, on steps of Slurm: {begun - killed:.3f} s")
        self.assertEqual(self.agents(), agents)
        self.finish(process)
        self.expect_nothing_left()

    def test_steps_end_with_their_allocation(self):
        script = ["salloc", "--quiet", "--nodes=2", "--exclusive", *self.command()]
        process = self.start(script, CADRE_CLUSTER=self.cluster_file())
        self.kill_controller()
        process.wait()
        self.expect_nothing_left()


if __name__ == "__main__":
    unittest.main()
