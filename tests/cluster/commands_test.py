"""Nodes that commands start: a remote shell, and a batch system. Both are stood in for by scripts that run what they are
given on the nodes of a rig."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import unittest

import nodes_test
import restart_test
import rig

BIN = pathlib.Path(os.environ["CADRE_BIN"])

SUBMIT = """#!/bin/sh
job=$(mktemp "{spool}/XXXXXXXX")
cat >"$job.new"
echo waits >"$job.state"
mv "$job.new" "$job.script"
echo "Your job ${{job##*/}} is in the queue"
"""
LIST = """#!/bin/sh
cd "{spool}" || exit
echo "job state"
for state in *.state; do
  [ ! -e "$state" ] || echo "${{state%.state}} $(cat "$state" 2>/dev/null)"
done
"""
CANCEL = """#!/bin/sh
[ -e "{spool}/$1.state" ] || {{ echo "there is no job $1" >&2; exit 1; }}
: >"{spool}/$1.cancel"
"""

# Behaves as a host does whose login takes its time, and which does not hear that the shell here was ended.
SLOW_SHELL = """#!/bin/sh
host=$1
shift
[ "$host" != n2 ] || set -- sh -c 'until [ -e "{gate}" ]; do sleep 0.1; done; exec "$@"' slow "$@"
exec "{shell}" "$host" "$@"
"""


class Batch:
    """A batch system: a job runs on a node of its own, in the order in which they came."""

    def __init__(self, cluster, folder):
        self.cluster = cluster
        self.spool = folder / "spool"
        self.spool.mkdir()
        self.commands = {}
        for name, text in (("submit", SUBMIT), ("list", LIST), ("cancel", CANCEL)):
            script = folder / name
            script.write_text(text.format(spool=self.spool), encoding="utf-8")
            script.chmod(0o755)
            self.commands[name] = [str(script)]
        self.commands["cancel"].append("{id}")
        self.commands["id"] = r"job (\w+) is"
        self._running = {}
        self._ends = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self):
        self._ends = True
        self._thread.join()
        for process, _ in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def jobs(self):
        """Returns state by job."""
        states = {}
        for state in sorted(self.spool.glob("*.state")):
            with contextlib.suppress(OSError):  # it has ended
                states[state.stem] = state.read_text().strip()
        return states

    def cancel(self, job):
        (self.spool / f"{job}.cancel").touch()

    def _serve(self):
        while not self._ends:
            for script in sorted(self.spool.glob("*.script"), key=lambda file: file.stat().st_mtime_ns):
                self._look(script)
            time.sleep(0.02)

    def _look(self, script):
        job = script.stem
        is_cancelled = script.with_suffix(".cancel").exists()
        if job in self._running:
            process, _ = self._running[job]
            if is_cancelled:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
            if process.poll() is not None:
                del self._running[job]
                self._forget(script)
            return
        if is_cancelled:
            self._forget(script)
            return
        free = [node for node in self.cluster.nodes if node not in [node for _, node in self._running.values()]]
        if free:
            with open(script, "rb") as text:
                process = self.cluster.start(free[0], ["sh"], stdin=text, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                             start_new_session=True)
            self._running[job] = (process, free[0])
            script.with_suffix(".state").write_text(f"runs on {free[0]}\n", encoding="utf-8")

    @staticmethod
    def _forget(script):
        for suffix in (".state", ".cancel", ".script"):
            script.with_suffix(suffix).unlink(missing_ok=True)


class CommandsTest(restart_test.SlurmTest):
    """A rig without Slurm; `commands` are those of the subclass, `group` is more of its group."""

    engine = "commands"
    commands = {}
    group = {}
    private = ()  # folders of which each node has its own

    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2, slurm=False, private=self.private))
        self.directory = self.cluster.directory

    def cluster_file(self, name="cluster.json", nodes=0, **members):
        group = {"name": "trial", "nodes": nodes, **self.group}
        return super().cluster_file(name, groups=[group], commands=self.commands, **members)

    def begin(self, **members):
        process = self.start(self.command(), CADRE_CLUSTER=self.cluster_file(**members))
        restart_test.wait_until(lambda: self.rows() >= 20 and len(self.agents()) == 2, "two nodes are at work")
        return process

    def expect_to_pass(self, suite):
        names, tests = suite
        done = self.cluster.run("ctl", [BIN / "cadre_system_tests", f"--gtest_filter={names}"], check=False, timeout=800,
                                env={"CADRE_TEST_CLUSTER": self.cluster_file()}, cwd=self.directory)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"[  PASSED  ] {tests} tests.", done.stdout)

    def results_of(self, process):
        output, errors = process.communicate(timeout=restart_test.DEADLINE_S)
        self.assertEqual(errors, "")
        return [json.loads(line)["value"] for line in output.splitlines()]

    def expect_what_one_machine_comes_to(self, cluster):
        self.iterations = 200  # one node may have room for all trials: then an exploit moves one
        there = self.start(self.command(), CADRE_CLUSTER=cluster)
        restart_test.wait_until(lambda: self.hosts() == {"n1", "n2"}, "trials are on both nodes")
        self.hurry().touch()
        command = [word.replace(str(self.experiment().parent), str(self.directory / "here")) for word in self.command()]
        self.assertEqual(self.results_of(there), self.results_of(self.start(command)))

    def waiting(self):
        done = self.cluster.run("ctl", [BIN / "cadre", "nodes", self.experiment(), "--json"])
        return [(one["group"], one["nodes"], one["reason"]) for one in json.loads(done.stdout)["waiting"]]


class RemoteShell(CommandsTest):
    """Nodes by a remote shell."""

    def setUp(self):
        super().setUp()
        self.shell = self.cluster.remote_shell()
        self.commands = {"submit": [str(self.shell), "{host}", "sh"]}
        self.group = {"options": {"hosts": "n1, n2"}}

    def shells(self):
        return self.cluster.processes("remote", "ctl")


class RemoteShellTest(RemoteShell):

    def test_the_suite_passes(self):
        self.expect_to_pass(nodes_test.SHORT_SUITE)

    def test_the_suite_passes_with_the_session_in_its_input_and_output(self):
        self.expect_to_pass(nodes_test.SUITE_OVER_STDIO)

    def test_two_nodes_come_to_what_one_machine_comes_to(self):
        self.expect_what_one_machine_comes_to(self.cluster_file())
        self.expect_no_agents()
        self.assertEqual(self.shells(), [])

    def test_a_killed_agent_costs_its_steps_and_another_one_comes_to_its_host(self):
        process = self.begin()
        victim = self.agents()[0]
        os.kill(victim, signal.SIGKILL)
        restart_test.wait_until(lambda: len(set(self.agents()) - {victim}) == 2, "another one has come")
        self.finish(process)
        self.expect_no_agents()

    def test_an_agent_whose_shell_is_killed_goes_in_order_and_another_one_comes(self):
        process = self.begin()
        before = self.agents()
        os.kill(self.shells()[0], signal.SIGKILL)
        restart_test.wait_until(lambda: set(self.agents()) - set(before), "another one comes")
        restart_test.wait_until(lambda: len(set(before) & set(self.agents())) == 1, "the one without a shell goes")
        self.finish(process)
        self.expect_no_agents()

    def test_a_killed_controller_is_continued_on_the_same_agents(self):
        first = self.begin()
        agents, killed = self.kill_controller()
        first.wait()
        second = self.start(self.command(), CADRE_CLUSTER=self.cluster_file())
        self.wait_begun(killed)
        self.assertEqual(self.agents(), agents)
        self.finish(second)
        self.expect_no_agents()
        self.assertEqual(self.shells(), [])

    def test_an_agent_that_comes_after_the_end_goes(self):
        slow, gate = self.directory / "slow", self.directory / "gate"
        slow.write_text(SLOW_SHELL.format(shell=self.shell, gate=gate), encoding="utf-8")
        slow.chmod(0o755)
        self.commands = {"submit": [str(slow), "{host}", "sh"]}
        process = self.start(self.command(), CADRE_CLUSTER=self.cluster_file())
        restart_test.wait_until(lambda: self.rows() >= 20, "the first node is at work")
        self.finish(process)
        gate.touch()
        restart_test.wait_until(self.agents, "the agent of the second node comes")
        self.expect_no_agents()

    def test_a_host_that_is_not_there_is_named(self):
        self.group = {"options": {"hosts": "n3"}}
        process = self.start(self.command(), CADRE_CLUSTER=self.cluster_file())
        _, errors = process.communicate(timeout=restart_test.DEADLINE_S)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("ended with exit code 255: remote: there is no host n3", errors)


class BatchTest(CommandsTest):
    def setUp(self):
        super().setUp()
        self.batch = Batch(self.cluster, self.directory)
        self.addCleanup(self.batch.close)
        self.commands = self.batch.commands

    def expect_nothing_left(self):
        restart_test.wait_until(lambda: not self.batch.jobs(), "the queue is empty")
        self.expect_no_agents()

    def test_the_suite_passes(self):
        self.expect_to_pass(nodes_test.SHORT_SUITE)

    def test_two_nodes_come_to_what_one_machine_comes_to(self):
        self.expect_what_one_machine_comes_to(self.cluster_file(nodes=2))
        self.expect_nothing_left()

    def test_a_job_that_waits_is_shown_and_given_back_with_the_others(self):
        process = self.begin(nodes=3)
        [waiting] = [job for job, state in self.batch.jobs().items() if state == "waits"]
        restart_test.wait_until(lambda: self.waiting() == [("trial", 1, f"{waiting} waits")], "it is shown")
        self.finish(process)
        self.expect_nothing_left()

    def test_a_job_that_is_cancelled_from_outside_is_followed_by_another_one(self):
        process = self.begin(nodes=2)
        before = self.batch.jobs()
        self.batch.cancel(next(iter(before)))
        restart_test.wait_until(lambda: set(self.batch.jobs()) - set(before), "another job is there")
        self.finish(process)
        self.expect_nothing_left()

    def test_a_killed_controller_is_continued_with_the_same_jobs(self):
        first = self.begin(nodes=3)
        before = self.batch.jobs()
        self.assertEqual(len(before), 3)
        agents, killed = self.kill_controller()
        first.wait()
        second = self.start(self.command(), CADRE_CLUSTER=self.cluster_file(nodes=3))
        self.wait_begun(killed)
        self.assertEqual(self.agents(), agents)
        self.assertEqual(self.batch.jobs(), before)
        self.finish(second)
        self.expect_nothing_left()

    def test_jobs_that_are_not_wanted_any_more_are_cancelled(self):
        first = self.begin(nodes=3)
        self.kill_controller()
        first.wait()
        self.finish(self.start(self.command(), CADRE_CLUSTER=self.cluster_file(nodes=1)))
        self.expect_nothing_left()


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
