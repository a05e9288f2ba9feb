"""Nodes of a real Ray cluster: its head on the control node, without CPUs, and two nodes."""

import contextlib
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import demand_test
import nodes_test
import provider_test
import ray_rig
import restart_test
import rig

DEADLINE_S = provider_test.DEADLINE_S
# Takes CPUs until its standard input ends.
BUSY = """
import ray, sys
ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=3)
class Busy:
    def is_there(self): return True
actors = [Busy.options(scheduling_strategy="SPREAD").remote() for _ in range(2)]
ray.get([actor.is_there.remote() for actor in actors])
print("busy", flush=True)
sys.stdin.read()
"""


def setUpModule():
    global cluster
    cluster = unittest.enterModuleContext(ray_rig.RayRig())
    (cluster.directory / "agent.sh").write_text(provider_test.AGENT, encoding="utf-8")


class OnRay:
    """All tests have one cluster, in which each leaves nothing."""

    def launchers(self):
        return self.cluster.launchers()

    def launcher(self):
        """Returns the process of the only launcher."""
        return rig.wait_until(self.launchers, "the launcher runs", DEADLINE_S)[0]

    def expect_nothing_left(self):
        def has_nothing():
            state = self.cluster.state()
            return not state["groups"] and state["free"] == 4 * (len(state["nodes"]) - 1)
        rig.wait_until(has_nothing, "Ray has everything back", DEADLINE_S)
        rig.wait_until(lambda: not self.launchers(), "all launchers have ended", DEADLINE_S)


class ProviderTest(OnRay, provider_test.ProviderTest):
    def setUp(self):
        self.cluster = cluster
        self.agents = self.cluster.directory / self.id().rpartition(".")[2][:40]
        self.agents.mkdir()
        self.addCleanup(self.expect_nothing_left)  # after the tool has ended

    def expect_nothing_left(self):
        rig.wait_until(lambda: not self.running(), "all agents have ended", DEADLINE_S)
        super().expect_nothing_left()

    def kill_and_wait(self, pid):
        os.kill(pid, signal.SIGKILL)
        rig.wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "it has ended", DEADLINE_S)

    def agent(self, ordinal):
        """Returns the process of an agent, its node, and its environment."""
        [file] = self.agents.glob(f"agent-{ordinal}-*")
        _, _, node, inner = file.name.split("-")
        for pid in self.cluster.processes("sleep"):
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            if status.partition("NSpid:")[2].split("\n")[0].split()[-1] == inner:
                return pid, node, dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
        raise AssertionError(f"no process of {file}")

    def test_two_agents_start_and_one_is_given_back_then_all(self):
        tool = self.tool("ray")
        tool.say("request 1 2")
        self.wait_for_two_agents("ray")
        tool.say("release 1 0")
        self.assertEqual(tool.wait_for("ended", 1, 0), "given back")
        self.wait_for_agents(1)
        tool.say("request 2 1")
        self.wait_for_agents(0, 1)
        tool.say("release 1")
        tool.say("release 2")
        tool.wait_for("ended", 1, 1)
        tool.wait_for("ended", 2, 0)
        self.wait_for_agents()
        rig.wait_until(lambda: not self.cluster.state()["groups"], "no placement group is left", DEADLINE_S)

    def test_an_agent_has_what_the_program_has_and_nothing_of_ray_or_of_the_other_machine(self):
        tool = self.tool("ray", env={"DISPLAY": ":7", "OF_THE_PROGRAM": "x"})
        tool.say("request 1 1 cpus=3")
        self.wait_for_agents(0)
        pid, _, environment = self.agent(0)
        self.assertEqual(environment["CADRE_SECRET"], "not in a command line")
        self.assertEqual(environment["OF_THE_PROGRAM"], "x")
        self.assertEqual(float(environment["CADRE_AGENT_CPUS"]), 3)
        self.assertEqual(environment["CUDA_VISIBLE_DEVICES"], "")
        self.assertNotIn("OMP_NUM_THREADS", environment)
        self.assertFalse([name for name in environment if name.startswith("RAY_")], environment)
        self.assertNotIn("DISPLAY", environment)
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), os.getcwd())
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, pid), 0)
        for process in self.cluster.processes():
            with contextlib.suppress(OSError):
                self.assertNotIn(b"not in a command line", pathlib.Path(f"/proc/{process}/cmdline").read_bytes())

    def test_what_is_asked_chooses_the_node(self):
        tool = self.tool("ray")
        tool.say('request 1 1 cpus=1 gpus=2 memory=100M accelerator_type=A100 resources={"tpu":1}')
        self.wait_for_agents(0)
        _, node, environment = self.agent(0)
        self.assertEqual((node, environment["CUDA_VISIBLE_DEVICES"]), ("n2", "0,1"))
        tool.say('request 2 1 cpus=1 resources={"tpu":2}')
        self.assertIn("Ray is asked for a node with 1 CPU, 2 tpu; free: ", tool.wait_for("queued", 2))

    def test_a_busy_cluster_is_waited_for_and_says_what_is_free(self):
        busy = self.cluster.start("ctl", [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for act in (busy.stdout.close, busy.wait, busy.stdin.close):
            self.addCleanup(act)
        self.assertEqual(busy.stdout.readline(), "busy\n")
        tool = self.tool("ray")
        tool.say("request 1 1")
        said = tool.wait_for("queued", 1)
        self.assertIn("Ray is asked for a node with 4 CPUs (all of one); free: ", said)
        self.assertIn("n1 1 of 4 CPUs", said)
        tool.say("request 2 1")
        tool.wait_for("queued", 2)
        tool.say("release 2")
        self.assertEqual(tool.wait_for("ended", 2, 0), "given back")
        busy.stdin.close()
        self.wait_for_agents(0)

    def test_nodes_with_a_strategy_come_together(self):
        tool = self.tool("ray")
        tool.say("request 1 2 cpus=1 strategy=STRICT_SPREAD")
        self.wait_for_two_agents("ray, together")
        tool.say("request 2 2 cpus=1 strategy=STRICT_PACK")
        rig.wait_until(lambda: len(self.running()) == 4, "four agents run", DEADLINE_S)
        tool.say("release 1")
        tool.wait_for("ended", 1, 0)
        tool.wait_for("ended", 1, 1)
        [first, second] = self.running()
        self.assertEqual(first[1], second[1])
        tool.say("release 2 0")
        tool.wait_for("ended", 2, 0)
        rig.wait_until(lambda: self.cluster.state()["free"] == 6, "Ray has the first two back", DEADLINE_S)
        self.assertEqual(self.cluster.state()["groups"], ["CREATED"])  # Ray takes back both or none
        tool.say("request 3 1 cpus=1 strategy=STRICT_PACK")
        self.wait_for_agents(0, 1)
        self.assertEqual(self.cluster.state()["groups"], ["CREATED"])  # it is where the one before was
        self.assertEqual(self.cluster.state()["free"], 6)

    def test_refusals_say_what_to_do(self):
        tool = self.tool("ray")
        tool.say("request 1 1 partition=a100")
        self.assertEqual(tool.wait_for("refused", 1), 'there is no option "partition"; there are accelerator_type, address, memory, '
                                                      "python, resources, strategy")
        tool.say("request 2 1 python=/usr/bin/python3 address=x")
        self.assertRegex(tool.wait_for("refused", 2), "/usr/bin/python3 has no Ray .*: install it there")
        tool.say("request 3 1 python=/no/python3")
        self.assertRegex(tool.wait_for("refused", 3), "cannot start /no/python3: No such file or directory; Ray needs a Python")
        tool.say("request 4 1 address=10.91.0.1:1")
        self.assertRegex(tool.wait_for("refused", 4), "there is no Ray cluster at 10.91.0.1:1 .Connection refused.: start one with")
        tool.say("request 5 1 address=local")
        self.assertIn("a cluster is needed that is there already, and the address is local", tool.wait_for("refused", 5))
        tool.say("request 8 1 address=ray://10.91.0.1:10001")
        self.assertIn("run the program on a machine of the cluster", tool.wait_for("refused", 8))
        tool.say('request 6 1 resources={"tpu":3}')
        self.assertIn('no node that Ray has now has CPUs and what else is asked', tool.wait_for("refused", 6))
        tool.say("request 7 1")  # the same provider goes on
        self.wait_for_agents(0)

    def test_without_a_cluster_it_is_said_how_to_start_one(self):
        with rig.Rig(nodes=0, slurm=False) as empty:
            tool = provider_test.Tool(empty, "ray", self.agents, env=self.cluster.environment())
            self.addCleanup(tool.close)
            tool.say("request 1 1")
            self.assertRegex(tool.wait_for("refused", 1),
                             "there is no Ray cluster on this machine, and RAY_ADDRESS is not set .*: start one with `ray start --head`")

    def test_a_launcher_that_says_anything_else_is_ended_and_quoted(self):
        python = self.cluster.directory / "no-python"
        python.write_text("#!/bin/sh\necho hello\nexec sleep 500\n", encoding="utf-8")
        python.chmod(0o755)
        tool = self.tool("ray")
        tool.say(f"request 1 1 python={python}")
        self.assertEqual(tool.wait_for("refused", 1), "Ray's launcher says what is none of its messages: hello")

    def test_an_agent_that_ends_is_told_with_what_it_has_said_last(self):
        tool = self.tool("ray")
        tool.say("request 1 2")
        self.wait_for_agents(0, 1)
        pid, node, _ = self.agent(1)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(tool.wait_for("ended", 1, 1), f"the agent on {node} ended with signal 9")
        self.wait_for_agents(0)
        rig.wait_until(lambda: self.cluster.state()["free"] == 4, "its node is free", DEADLINE_S)
        program = self.cluster.directory / "agent.sh"
        self.addCleanup(program.write_text, program.read_text())
        program.write_text("echo first >&2; echo last >&2; exit 7", encoding="utf-8")
        tool.say("request 2 1")
        self.assertEqual(tool.wait_for("ended", 2, 0), f"the agent on {node} ended with exit code 7: last")

    def test_a_launcher_that_is_killed_is_told_and_its_agents_end(self):
        tool = self.tool("ray")
        tool.say("request 1 2")
        self.wait_for_agents(0, 1)
        self.kill_and_wait(self.launcher())
        # An agent may run before its launcher has said so. Then another launcher is to start it, as one that waits.
        why = "Ray's launcher ended with signal 9"
        told = [tool.wait_for_any(f"ended 1 {ordinal}", f"queued 1 {why}") for ordinal in (0, 1)]
        again = [ordinal for ordinal in (0, 1) if told[ordinal] != f"ended 1 {ordinal} {why}"]
        self.wait_for_agents(*again)
        tool.say("release 1")
        self.wait_for_agents()
        tool.say("request 2 1")
        self.wait_for_agents(0)

    def test_everything_ends_with_the_controller(self):
        tool = self.tool("ray")
        tool.say("request 1 2")
        self.wait_for_agents(0, 1)
        self.assertEqual(self.cluster.kill("provider_tool"), 1)
        self.wait_for_agents()

    def start_node(self, node):
        self.cluster.start_node(node).communicate(timeout=DEADLINE_S)
        rig.wait_until(lambda: node in self.cluster.state()["nodes"], f"{node} is there again", DEADLINE_S)

    def test_a_node_that_ray_drains_ends_and_one_that_is_killed_is_told(self):
        tool = self.tool("ray")
        tool.say("request 1 2")
        self.wait_for_agents(0, 1)
        _, node, _ = self.agent(0)
        drain = [*ray_rig.RAY, "drain-node", f"--node-id={self.cluster.state()['nodes'][node]}", "--reason=DRAIN_NODE_REASON_PREEMPTION",
                 "--reason-message=test", "--deadline-remaining-seconds=300", "--address=10.91.0.1:6379"]
        self.addCleanup(self.start_node, node)
        self.cluster.run("ctl", drain)
        self.assertIn(int(tool.wait_for("limit", 1, 0)), range(200, 301))
        self.assertEqual(self.cluster.kill("raylet", node), 1)
        self.assertIn("Ray says: The actor died", tool.wait_for("ended", 1, 0))
        self.wait_for_agents(1)


class SuiteTest(OnRay, unittest.TestCase):
    def test_it_is_passed(self):
        self.cluster = cluster
        nodes_test.SuiteTest.run_suite(self, nodes_test.SHORT_SUITE, engine="ray")
        self.expect_nothing_left()


class DemandTest(OnRay, unittest.TestCase):
    def test_validators_have_a_node_while_there_is_something_to_validate(self):
        self.cluster = cluster
        storage = cluster.directory / "demand"
        storage.mkdir()
        file = storage / "cluster.json"
        groups = [{"name": "training", "nodes": 1, "cpus": 1},
                  {"name": "validators", "nodes": 1, "min_nodes": 0, "linger": 2, "cpus": 1}]
        file.write_text(json.dumps({"engine": "ray", "groups": groups}), encoding="utf-8")
        hold = demand_test.hold_back(storage, 40)
        command = [nodes_test.BIN / "validating_tool", storage, "1", "45", "100", "20", "500"]
        process = rig.start_for(self, cluster, command, CADRE_CLUSTER=str(file))
        demand_test.wait_until_given_back(cluster, storage / "run", 2)
        hold.unlink()
        output, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        first, second = [[float(moment) for moment in line.split()[1:3]]
                         for line in (storage / "validated").read_text().splitlines()]
        training, *validators = demand_test.nodes_of(cluster, storage / "run")
        self.assertEqual(training["resources"]["labels"]["group"], "training")
        self.assertEqual([node["resources"]["labels"]["group"] for node in validators], ["validators"] * 2)
        self.assertLess(validators[0]["joined"], first[0])
        self.assertLess(validators[0]["left"] - first[1], 2 + demand_test.SLACK_S)
        self.assertLess(validators[0]["left"], validators[1]["joined"])
        self.assertLess(validators[1]["joined"], second[0])
        self.expect_nothing_left()


class RestartTest(OnRay, restart_test.SlurmTest):
    __unittest_skip__ = False  # as that one is without Slurm
    engine = "ray"

    def setUp(self):
        self.cluster = cluster
        self.directory = cluster.directory / self.id().rpartition(".")[2][:40]
        self.directory.mkdir()

    def expect_nothing_left(self):
        super().expect_nothing_left()
        self.expect_no_agents()

    def begin(self, **members):
        """Starts a controller, and waits until two nodes are there."""
        process = self.start(self.command(), CADRE_CLUSTER=self.cluster_file(**members))
        restart_test.wait_until(lambda: self.rows() >= 1 and len(self.agents()) == 2, "two nodes are there")
        return process

    def go_on(self, launchers=1, **members):
        process = self.start(self.command(), CADRE_CLUSTER=self.cluster_file("next.json", **members))
        restart_test.wait_until(lambda: self.controller() and len(self.launchers()) == launchers, "it has its launchers")
        return process

    def waiting(self):
        return [state for state in self.cluster.state()["groups"] if state == "PENDING"]

    def wait_for_one_that_waits(self):
        rig.wait_until(lambda: self.waiting() == ["PENDING"], "one node is waited for", DEADLINE_S)

    def test_the_same_agents_serve_the_next_controller_and_what_waits_is_kept(self):
        first = self.begin(nodes=3)
        launcher = self.launcher()
        self.wait_for_one_that_waits()
        agents, killed = self.kill_controller()
        first.wait()
        second = self.go_on(nodes=3)
        begun = self.wait_begun(killed)
        print(f"from the kill of the controller to the first trial of the next one, on Ray: {begun - killed:.3f} s")
        self.assertEqual(self.agents(), agents)
        self.assertEqual(self.launchers(), [launcher])
        self.assertEqual(self.waiting(), ["PENDING"])
        self.finish(second)
        self.expect_nothing_left()

    def test_what_nobody_claims_is_given_back_also_what_waits(self):
        first = self.begin(groups=[{"name": "trial", "nodes": 2}, {"name": "late", "nodes": 1}])
        self.wait_for_one_that_waits()
        agents, _ = self.kill_controller()
        first.wait()
        second = self.go_on(nodes=1)
        restart_test.wait_until(lambda: len(self.agents()) == 1 and not self.waiting(), "others are given back")
        self.assertLess(set(self.agents()), set(agents))
        self.finish(second)
        self.expect_nothing_left()

    def test_agents_and_their_launcher_end_if_no_controller_comes(self):
        first = self.begin(nodes_stay=3)
        self.kill_controller()
        first.wait()
        self.expect_nothing_left()


if __name__ == "__main__":
    rig.skip_unless_there(slurm=False)
    if importlib.util.find_spec("ray") is None:
        print(f"skipped: {sys.executable} has no Ray", file=sys.stderr)
        sys.exit(rig.SKIPPED)
    unittest.main()
