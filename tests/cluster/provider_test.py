"""Slurm's providers on a real Slurm of two nodes: steps of an allocation, and jobs of the queue."""

import contextlib
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time
import unittest

import rig

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "provider_tool"
DEADLINE_S = float(os.environ.get("CADRE_DEADLINE_S", 120))  # shorter to see a test fail

# Writes its environment to a file of its own and waits.
AGENT = """#!/bin/sh
env >"$1/.writing-$$-$(hostname)"
mv "$1/.writing-$$-$(hostname)" "$1/agent-$CADRE_AGENT_ORDINAL-$(hostname)-$$"
exec sleep 600
"""


class Tool:
    """provider_tool on the control node; with `allocation`, in an allocation of that many nodes."""

    def __init__(self, cluster, mode, agents, experiment="x", allocation=None, salloc=(), then="true", env=None):
        self.cluster = cluster
        command = [str(TOOL), mode, experiment, "/bin/sh", str(cluster.directory / "agent.sh"), str(agents)]
        if allocation:
            command = ["salloc", "--quiet", f"--nodes={allocation}", "--exclusive", *salloc, "sh", "-c", f'"$@"; {then}', "sh", *command]
        self.process = cluster.start("ctl", command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, cwd=cluster.directory, bufsize=1)
        self.events = []
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(line.strip()) for line in self.process.stdout], daemon=True).start()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait_for(self, *beginning):
        """Returns the text after the first event that begins with these words; asks the provider to look again and again."""
        beginning = " ".join(map(str, beginning))
        return self.wait_for_any(beginning).removeprefix(beginning).strip()

    def wait_for_any(self, *beginnings):
        """Returns the first event that begins as one of these; asks as above."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            for event in self.events:
                if (event + " ").startswith(tuple(beginning + " " for beginning in beginnings)):
                    return event
            with contextlib.suppress(queue.Empty):
                self.events.append(self.lines.get(timeout=0.5))
                continue
            with contextlib.suppress(OSError):
                self.say("look")
        raise AssertionError(f"no event of {beginnings} but {self.events}")

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(DEADLINE_S)
        self.process.stdout.close()
        self.process.stderr.close()


class ProviderTest(unittest.TestCase):
    partitions = {"all": "Default=YES PriorityTier=1 GraceTime=0", "urgent": "PriorityTier=9 PreemptMode=OFF"}

    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2, partitions=self.partitions, gpus={"n2": ("a100", 2)}))
        (self.cluster.directory / "agent.sh").write_text(AGENT, encoding="utf-8")
        self.agents = self.cluster.directory / "agents"
        self.agents.mkdir()

    def tool(self, mode, **options):
        tool = Tool(self.cluster, mode, self.agents, **options)
        self.addCleanup(tool.close)
        return tool

    def running(self):
        """Returns (ordinal, node) of agents that run."""
        inner = {}
        for pid in self.cluster.processes("sleep"):
            with contextlib.suppress(OSError):
                inner[int(pathlib.Path(f"/proc/{pid}/status").read_text().partition("NSpid:")[2].split("\n")[0].split()[-1])] = pid
        found = []
        for file in self.agents.glob("agent-*"):
            _, ordinal, node, pid = file.name.split("-")
            if int(pid) in inner:
                found.append((int(ordinal), node))
        return sorted(found)

    def wait_for_agents(self, *ordinals):
        rig.wait_until(lambda: [ordinal for ordinal, _ in self.running()] == list(ordinals),
                       f"agents {ordinals} run, not {self.running()}", DEADLINE_S)

    def wait_for_two_agents(self, mode):
        begin = time.monotonic()
        self.wait_for_agents(0, 1)
        print(f"{mode}: two agents run after {time.monotonic() - begin:.2f} s", file=sys.stderr)
        self.assertEqual(sorted(node for _, node in self.running()), ["n1", "n2"])


class StepsTest(ProviderTest):
    def begin(self, nodes=2):
        return self.tool("steps", allocation=nodes)

    def test_two_agents_start_and_one_is_given_back_then_all(self):
        tool = self.begin()
        tool.say("request 1 2")
        self.wait_for_two_agents("steps")
        environment = next(self.agents.glob("agent-0-*")).read_text()
        self.assertIn("CADRE_SECRET=not in a command line", environment)
        tool.say("release 1 0")
        tool.wait_for("ended", 1, 0)
        self.wait_for_agents(1)
        tool.say("request 2 1")
        self.wait_for_agents(0, 1)
        tool.say("release 1")
        tool.say("release 2")
        tool.wait_for("ended", 1, 1)
        tool.wait_for("ended", 2, 0)
        self.wait_for_agents()

    def test_nodes_that_belong_together_are_numbered_and_given_back_together(self):
        tool = self.begin()
        tool.say("request 1 2 all")
        self.wait_for_two_agents("steps, all or none")
        tool.say("release 1 0")
        tool.say("release 1 1")
        tool.wait_for("ended", 1, "all")
        self.wait_for_agents()

    def test_a_busy_node_is_waited_for_and_too_many_are_refused(self):
        tool = self.begin()
        tool.say("request 1 2")
        self.wait_for_agents(0, 1)
        tool.say("request 2 1")
        self.assertIn("all 2 nodes of the allocation are in use", tool.wait_for("queued", 2))
        tool.say("request 3 3")
        self.assertIn("the allocation has 2 nodes, not 3", tool.wait_for("refused", 3))
        tool.say("release 1 1")
        self.wait_for_agents(0, 0)

    def test_a_step_that_is_cancelled_from_outside_is_told(self):
        tool = self.begin()
        tool.say("request 1 1")
        self.wait_for_agents(0)
        job = self.cluster.run("ctl", ["squeue", "--noheader", "--format=%i"]).stdout.strip()
        self.cluster.run("ctl", ["scancel", f"{job}.0"])
        # srun prints both, and may be killed before the second.
        self.assertRegex(tool.wait_for("ended", 1, 0), "CANCELLED|Job step aborted")

    def test_agents_see_all_gpus_of_the_allocation(self):
        tool = Tool(self.cluster, "steps", self.agents, allocation=1, salloc=["--gres=gpu:a100:2"])
        self.addCleanup(tool.close)
        tool.say("request 1 1")
        self.wait_for_agents(0)
        self.assertIn("CUDA_VISIBLE_DEVICES=0,1\n", next(self.agents.glob("agent-0-*")).read_text())

    def test_steps_end_with_the_controller(self):
        # The allocation lives on, so it is not Slurm that ends them.
        tool = Tool(self.cluster, "steps", self.agents, allocation=2, then="cat")
        self.addCleanup(tool.close)
        tool.say("request 1 2")
        self.wait_for_agents(0, 1)
        self.assertEqual(self.cluster.kill("provider_tool"), 1)
        self.wait_for_agents()
        self.assertIn("RUNNING", self.cluster.run("ctl", ["squeue", "--noheader", "--format=%T"]).stdout)

    def test_outside_of_an_allocation_they_are_refused(self):
        tool = self.tool("steps")
        self.assertEqual(tool.process.wait(DEADLINE_S), 1)
        self.assertIn("SLURM_JOB_ID is not set", tool.process.stderr.read())


class JobsTest(ProviderTest):
    def test_two_agents_start_and_one_is_given_back_then_all(self):
        tool = self.tool("jobs")
        tool.say("request 1 2")
        self.wait_for_two_agents("jobs")
        environment = next(self.agents.glob("agent-0-*")).read_text()
        self.assertIn("CADRE_SECRET=not in a command line", environment)
        tool.say("release 1 0")
        self.assertIn("CANCELLED", tool.wait_for("ended", 1, 0))
        self.wait_for_agents(1)
        tool.say("release 1")
        tool.wait_for("ended", 1, 1)
        self.wait_for_agents()

    def test_nodes_that_belong_together_are_one_job(self):
        tool = self.tool("jobs")
        tool.say("request 1 2 all")
        self.wait_for_two_agents("jobs, all or none")
        tool.say("release 1")
        tool.wait_for("ended", 1, "all")
        self.wait_for_agents()

    def test_a_job_that_is_cancelled_from_outside_is_told(self):
        tool = self.tool("jobs")
        tool.say("request 1 2")
        self.wait_for_agents(0, 1)
        job = self.cluster.run("ctl", ["squeue", "--noheader", "--format=%F"]).stdout.split()[0]
        self.cluster.run("ctl", ["scancel", f"{job}_1"])
        self.assertRegex(tool.wait_for("ended", 1, 1), rf"job {job}_1 on n\d: CANCELLED")
        self.wait_for_agents(0)

    def test_a_queue_shows_its_reason_and_can_be_left(self):
        tool = self.tool("jobs")
        tool.say("request 1 3")
        self.wait_for_agents(0, 1)
        tool.wait_for("queued", 1, "Resources")
        tool.say("release 1 2")
        tool.wait_for("ended", 1, 2)
        self.wait_for_agents(0, 1)

    def test_the_time_limit_of_a_job_is_told_and_told_again_when_it_changes(self):
        tool = self.tool("jobs")
        tool.say("request 1 1 time=2")
        self.assertIn(int(tool.wait_for("limit", 1, 0)), range(60, 121))
        job = self.cluster.run("ctl", ["squeue", "--noheader", "--array", "--format=%i"]).stdout.strip()
        self.cluster.run("ctl", ["scontrol", "update", f"JobId={job}", "TimeLimit=10"])
        tool.events.clear()
        self.assertIn(int(tool.wait_for("limit", 1, 0)), range(500, 601))

    def test_gpus_choose_the_node(self):
        tool = self.tool("jobs")
        tool.say("request 1 1 gres=gpu:a100:2")
        self.wait_for_agents(0)
        self.assertEqual(self.running(), [(0, "n2")])
        self.assertIn("CUDA_VISIBLE_DEVICES=0,1\n", next(self.agents.glob("agent-0-*")).read_text())

    def test_a_refusal_has_slurms_words(self):
        tool = self.tool("jobs")
        tool.say("request 1 1 partition=nope")
        self.assertIn("Invalid partition name specified", tool.wait_for("refused", 1))
        tool.say("request 2 1 array=7")
        self.assertIn('the option "array" is set by Cadre', tool.wait_for("refused", 2))

    def test_a_preemption_is_told(self):
        tool = self.tool("jobs")
        tool.say("request 1 2")
        self.wait_for_agents(0, 1)
        self.cluster.run("ctl", ["srun", "--partition=urgent", "--nodes=2", "true"])
        self.assertIn("PREEMPTED", tool.wait_for("ended", 1, 0))
        self.assertIn("PREEMPTED", tool.wait_for("ended", 1, 1))

    def test_jobs_of_a_killed_controller_are_claimed_or_cancelled(self):
        first = self.tool("jobs")
        first.say("request 1 1")
        first.say("request 2 1")
        self.wait_for_agents(0, 0)
        self.assertEqual(self.cluster.kill("provider_tool"), 1)
        self.cluster.run("ctl", ["sbatch", "--job-name=cadre-other.1", "--output=/dev/null", "--wrap=sleep 600"])
        second = self.tool("jobs")
        second.say("claim 2")
        self.wait_for_agents(0)
        second.say("release 2")
        second.wait_for("ended", 2, 0)
        self.wait_for_agents()
        self.assertIn("cadre-other.1", self.cluster.run("ctl", ["squeue", "--noheader", "--format=%j"]).stdout)

    def wait_until_saved(self):
        """Waits until slurmctld has saved the only job as it is, which it does a while after each change."""
        state = self.cluster.directory / "state" / "job_state"
        changed = time.time_ns()
        [job] = self.cluster.run("ctl", ["squeue", "--noheader", "--format=%A"]).stdout.split()
        self.cluster.run("ctl", ["scontrol", "update", f"jobid={job}", "comment=changed"])
        rig.wait_until(lambda: state.exists() and state.stat().st_mtime_ns > changed, "the job is saved", DEADLINE_S)

    def test_slurmctld_restarts_meanwhile(self):
        tool = self.tool("jobs")
        tool.say("request 1 1")
        self.wait_for_agents(0)
        self.wait_until_saved()  # a job that slurmctld forgot would be another test
        self.cluster.kill("slurmctld")
        tool.say("request 2 1")
        self.assertIn("Unable to contact slurm controller", tool.wait_for("queued", 2))
        self.cluster.start_slurmctld()
        self.wait_for_agents(0, 0)
        tool.say("release 1")
        tool.say("release 2")
        tool.wait_for("ended", 1, 0)
        tool.wait_for("ended", 2, 0)
        self.assertFalse([event for event in tool.events if event.startswith("refused")])

    def test_slurm_is_missing_or_too_old(self):
        tools = self.cluster.directory / "old"
        tools.mkdir()
        (tools / "sbatch").write_text("#!/bin/sh\necho slurm 19.05.7\n", encoding="utf-8")
        (tools / "sbatch").chmod(0o755)
        old = self.tool("jobs", env={"PATH": f"{tools}:{rig.PATH}"})
        self.assertEqual(old.process.wait(DEADLINE_S), 1)
        self.assertIn("this is Slurm 19.05.7; 20.11 or newer is needed", old.process.stderr.read())
        (tools / "sbatch").unlink()
        none = self.tool("jobs", env={"PATH": str(tools)})
        self.assertEqual(none.process.wait(DEADLINE_S), 1)
        self.assertIn("there is no Slurm", none.process.stderr.read())


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
