"""Sessions in the standard input and output of what starts agents: no port, and nothing that outlives the controller.

On agents of this machine without root; on steps of a real Slurm, whose nodes reach no port, where there can be one."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import nodes_test
import restart_test
import rig

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "population_tool"
# Of what listens on the control node: srun, for the steps that it has started, and programs, as the kernel chooses them.
PORTS_OF_SRUN = "61001-63000"
PORTS_OF_PROGRAMS = "32768-60999"
SILENCE_S = 17  # after which an agent ends that hears nothing: agent_silence of engine/cluster/stdio.h
DIAL = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1)
except OSError as error:
    print(type(error).__name__)
"""


def sockets_of(pid):
    """Returns the inodes of a process's sockets, for each of its descriptors."""
    found = []
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(descriptor)
            if target.startswith("socket:["):
                found.append(target[8:-1])
    return found


def internet_sockets(pid):
    """Returns those of a process's sockets that are of the network."""
    lines = [line.split() for kind in ("tcp", "tcp6", "udp", "udp6")
             for line in pathlib.Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]]
    return set(sockets_of(pid)) & {line[9] for line in lines}


def loads_tls(pid):
    return "libcadre_tls" in pathlib.Path(f"/proc/{pid}/maps").read_text()


def children(pid):
    with contextlib.suppress(OSError):
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []  # it has ended


class StdioTest(restart_test.RestartTest):
    def cluster_file(self, name="stdio.json", **members):
        return super().cluster_file(name, **({"link": "stdio"} | members))

    def wait_middle(self):
        restart_test.wait_until(lambda: self.rows() >= 20 and len(self.agents()) == 2, "two nodes are there")
        self.assertFalse((self.experiment() / restart_test.KEPT).exists())


class ProcessesTest(StdioTest):
    engine = "processes"

    setUp = restart_test.ProcessesTest.setUp
    start = restart_test.ProcessesTest.start
    agents = restart_test.ProcessesTest.agents
    kill_agents = restart_test.ProcessesTest.kill_agents

    def wait_for_workers(self):
        """Waits until workers are on both nodes."""
        self.wait_middle()
        restart_test.wait_until(lambda: all(any(map(children, children(agent))) for agent in self.agents()),
                                "both have workers")

    def test_there_is_no_port_and_no_encryption(self):
        process = self.start(self.cluster_file())
        self.wait_for_workers()
        agents = self.agents()
        self.assertEqual(len(agents), 2)
        for pid in (process.pid, *agents):
            self.assertEqual(internet_sockets(pid), set())
            self.assertFalse(loads_tls(pid))
        self.finish(process)
        self.expect_no_agents()

    def test_by_default_there_are_both(self):
        process = self.start(self.cluster_file("port.json", link="port"))
        restart_test.wait_until(lambda: self.rows() >= 20 and len(self.agents()) == 2, "two nodes are there")
        for pid in (process.pid, *self.agents()):
            restart_test.wait_until(lambda pid=pid: internet_sockets(pid) and loads_tls(pid), "it has both")
        self.finish(process)

    def test_only_the_agent_has_the_session(self):
        process = self.start(self.cluster_file())
        self.wait_for_workers()
        for agent in self.agents():
            [server] = children(agent)
            self.assertEqual(os.readlink(f"/proc/{agent}/fd/1"), os.readlink(f"/proc/{agent}/fd/2"))
            self.assertEqual(os.readlink(f"/proc/{agent}/fd/0"), "/dev/null")
            held = sockets_of(agent)
            [session] = {one for one in held if held.count(one) == 2}  # for input and output
            workers = children(server)
            self.assertNotEqual(workers, [])
            for other in (server, *workers):
                with contextlib.suppress(OSError):  # it has ended
                    self.assertNotIn(session, sockets_of(other))
        self.finish(process)

    def test_a_killed_controller_leaves_nothing_and_is_continued(self):
        process = self.start(self.cluster_file())
        self.wait_middle()
        process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        self.expect_no_agents()
        self.assertLess(time.monotonic() - killed, SILENCE_S)  # as the connection has ended
        self.finish(self.start(self.cluster_file()))
        self.expect_no_agents()

    def test_a_controller_that_stands_still_loses_its_nodes_and_goes_on(self):
        process = self.start(self.cluster_file())
        self.wait_middle()
        process.send_signal(signal.SIGSTOP)
        self.expect_no_agents()
        process.send_signal(signal.SIGCONT)
        self.finish(process)
        self.expect_no_agents()

    def test_nodes_that_wait_at_a_port_are_given_back(self):
        first = self.start(self.cluster_file("port.json", link="port"))
        restart_test.wait_until(lambda: self.rows() >= 20, "the experiment has come to its middle")
        waiting = self.agents()
        first.kill()
        first.wait()
        process = self.start(self.cluster_file())
        restart_test.wait_until(lambda: self.agents() and not set(waiting) & set(self.agents()), "there are others")
        self.assertIn("the nodes of the process before are of no use: they dial a port", self.finish(process))
        self.expect_no_agents()


class FaultsTest(unittest.TestCase):
    def test_queued_jobs_cannot_have_it_and_nothing_runs(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "cluster.json"
            file.write_text(json.dumps({"engine": "slurm", "link": "stdio"}), encoding="utf-8")
            done = subprocess.run([str(TOOL), directory, "1", "1"], env=rig.environment({"CADRE_CLUSTER": str(file)}),
                                  capture_output=True, text=True, check=False, timeout=restart_test.DEADLINE_S)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("this program is in no allocation of Slurm", done.stderr)
            self.assertIn("sbatch or salloc", done.stderr)
            self.assertEqual(os.listdir(directory), ["cluster.json"])


@unittest.skipIf(restart_test.MISSING, restart_test.MISSING)
class StepsTest(StdioTest):
    engine = "slurm"

    agents = restart_test.SlurmTest.agents
    controller = restart_test.SlurmTest.controller

    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2, slurmd_timeout_s=60, settings=f"SrunPortRange={PORTS_OF_SRUN}"))
        self.directory = self.cluster.directory

    def start(self, then="true", **members):
        """Starts the program in an allocation, and `then` something else."""
        command = ["salloc", "--quiet", "--nodes=2", "--exclusive", "sh", "-c", f'"$@"; {then}', "sh", *self.command()]
        return nodes_test.NodesTest.start(self, command, CADRE_CLUSTER=self.cluster_file(**members))

    def finish(self, process):
        self.hurry().touch()
        output, errors = process.communicate(timeout=restart_test.DEADLINE_S)
        results = [json.loads(line) for line in output.splitlines()]
        self.assertEqual([trial["done"] for trial in results], [self.iterations] * self.trials, errors)
        self.expect_no_agents()
        return results

    def expect_each_result_once(self):
        for file in self.experiment().glob("*/result.json"):
            steps = [json.loads(line)["training_iteration"] for line in file.read_text().splitlines()]
            self.assertEqual(steps, list(range(1, self.iterations + 1)), file)

    def steps(self):
        """Returns the steps that run, but those of the allocation itself."""
        printed = self.cluster.run("ctl", ["squeue", "--noheader", "--steps", "--format=%i"]).stdout.split()
        return [step for step in printed if step.rpartition(".")[2].isdigit()]

    def launchers(self):
        """Returns the srun by the name of the node where its agent is."""
        controller = self.controller()
        found = {}
        for pid in self.cluster.processes("srun", "ctl"):
            if restart_test.parent(pid) == controller:
                ordinal = next(word for word in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                               if word.startswith(b"CADRE_AGENT_ORDINAL="))
                [agent] = [agent for agent in self.agents() if ordinal in pathlib.Path(f"/proc/{agent}/environ").read_bytes()]
                [node] = [node for node in self.cluster.nodes if agent in self.cluster.processes(TOOL.name, node)]
                found[node] = pid
        return found

    def close_ports(self):
        """Lets nodes reach no port of the control node that a program gets there."""
        for node in self.cluster.nodes:
            self.cluster.run(node, ["nft", "-f", "-"], input=f"""
                table inet closed {{
                    chain output {{
                        type filter hook output priority 0;
                        ip daddr {self.cluster.address("ctl")} tcp dport {PORTS_OF_PROGRAMS} tcp flags & (syn | ack) == syn drop
                    }}
                }}
                """)
            dialled = self.cluster.run(node, [sys.executable, "-c", DIAL, self.cluster.address("ctl"), PORTS_OF_PROGRAMS[:5]])
            self.assertEqual(dialled.stdout.strip(), "TimeoutError")  # and not refused, as without the rule

    def test_nodes_that_reach_no_port_serve_a_population(self):
        self.iterations = 200  # one node may have room for all trials: then an exploit moves one
        self.close_ports()
        process = self.start()
        self.wait_middle()
        controller = self.controller()
        inherited = internet_sockets(restart_test.parent(controller))  # of salloc
        self.assertEqual(internet_sockets(controller) - inherited, set())
        self.assertFalse(loads_tls(controller))
        restart_test.wait_until(lambda: self.hosts() == {"n1", "n2"}, "trials are on both nodes")
        self.finish(process)
        self.expect_each_result_once()

    def test_a_short_cut_loses_nothing(self):
        self.iterations = 100
        process = self.start()
        self.wait_middle()
        agents = self.agents()
        self.cluster.cut("n1", seconds=8)
        restart_test.wait_until(lambda: self.rows() >= 300, "it goes on")
        self.assertEqual(self.agents(), agents)
        self.finish(process)
        self.expect_each_result_once()

    def test_a_killed_srun_costs_its_node_and_no_other(self):
        process = self.start()
        self.wait_middle()
        launchers = self.launchers()
        self.assertEqual(set(launchers), {"n1", "n2"})
        [other] = set(self.agents()) & set(self.cluster.processes(TOOL.name, "n1"))
        [lost] = set(self.agents()) & set(self.cluster.processes(TOOL.name, "n2"))
        os.kill(launchers["n2"], signal.SIGKILL)
        killed = time.monotonic()
        restart_test.wait_until(lambda: lost not in self.agents(), "its agent has ended")
        print(f"from the kill of srun to the end of its agent: {time.monotonic() - killed:.1f} s", file=sys.stderr)
        restart_test.wait_until(lambda: len(self.agents()) == 2, "another one is there")
        print(f"to the next agent: {time.monotonic() - killed:.1f} s", file=sys.stderr)
        self.assertIn(other, self.agents())
        self.finish(process)
        self.expect_each_result_once()

    def test_a_killed_agent_costs_its_node_and_no_other(self):
        process = self.start()
        self.wait_middle()
        [other] = set(self.agents()) & set(self.cluster.processes(TOOL.name, "n1"))
        [lost] = set(self.agents()) & set(self.cluster.processes(TOOL.name, "n2"))
        os.kill(lost, signal.SIGKILL)
        restart_test.wait_until(lambda: len(set(self.agents()) - {lost}) == 2, "another one is there")
        self.assertIn(other, self.agents())
        self.finish(process)
        self.expect_each_result_once()

    def test_a_killed_controller_leaves_nothing_and_is_continued_in_its_allocation(self):
        go_on = self.directory / "go_on"
        process = self.start(then=f'while [ ! -e {go_on} ]; do sleep 0.1; done; exec "$@"')
        self.wait_middle()
        os.kill(self.controller(), signal.SIGKILL)
        killed = time.monotonic()
        restart_test.wait_until(lambda: not self.steps(), "no step is left")
        self.expect_no_agents()
        print(f"from the kill of the controller to the end of all: {time.monotonic() - killed:.1f} s", file=sys.stderr)
        self.assertEqual(self.cluster.processes("srun"), [])
        go_on.touch()
        self.finish(process)


if __name__ == "__main__":
    unittest.main()
