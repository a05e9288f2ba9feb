"""Experiments on a real Slurm while everything fails at random: agents, their fork servers and workers, slurmd, slurmstepd,
slurmctld and the controller are killed, nodes are cut off, jobs cancelled, preempted and ended by their time limit. Nothing
acknowledged is lost, nothing runs twice, and nothing is left, nor in the queue. In half of the experiments the nodes do not
see the disk of the controller, and its trials work where it is published.

CADRE_FAULTS says how many faults, CADRE_SEED repeats their choice.
"""

import collections
import json
import math
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

import rig

BIN = pathlib.Path(os.environ["CADRE_BIN"])
TOOL = "survivor_tool"
DEADLINE_S = 150
FAULTS = int(os.environ.get("CADRE_FAULTS", 15))
SEED = int(os.environ.get("CADRE_SEED", random.randrange(1 << 32)))
# Ended of tests/survival/controller_process.h.
FINISHED, ENGINE_ERROR, INTERRUPTED = 0, 10, 13
PARTITIONS = {"all": "Default=YES PriorityTier=1", "urgent": "PriorityTier=10"}


def children_of(pid):
    try:
        return list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:  # it has ended
        return []


def send(pid, signal_number):
    """Returns whether the process was there."""
    try:
        os.kill(pid, signal_number)
    except ProcessLookupError:
        return False
    return True


class FaultsTest(unittest.TestCase):
    def setUp(self):
        print(f"CADRE_SEED={SEED} CADRE_FAULTS={FAULTS}", file=sys.stderr)
        self.random = random.Random(SEED)
        self.cluster = self.enterContext(rig.Rig(nodes=2, slurmd_timeout_s=15, partitions=PARTITIONS, private=["/mnt"]))
        self.home = pathlib.Path("/mnt") / self.cluster.directory.name
        self.home.mkdir()
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        # An agent that stood still while its controller ended, and whose job Slurm does not end as its slurmd was killed,
        # dials on for so long.
        self.nodes = self.cluster.directory / "nodes.json"
        self.nodes.write_text(json.dumps({"engine": "slurm", "nodes_stay": 60}), encoding="utf-8")
        self.counts = collections.Counter()
        self.log = []
        self.later = []
        self.slurmctld_killed = -math.inf
        self.faults = {self.kill_agent: 3, self.stop_agent: 1, self.tell_agent_to_go: 2, self.kill_server: 2, self.kill_worker: 2,
                       self.kill_slurmd: 2, self.kill_slurmstepd: 1, self.kill_slurmctld: 2, self.cut_node: 4,
                       self.signal_job: 1, self.cancel_job: 2, self.preempt: 2, self.end_time: 1, self.kill_controller: 4,
                       self.signal_controller: 1}

    # Runs

    def test_nothing_is_lost_doubled_or_left(self):
        run = 0
        while self.counts.total() < FAULTS:
            self.run_one(run)
            run += 1
        print(f"{self.counts.total()} faults in {run} runs: {dict(self.counts)}", file=sys.stderr)

    def run_one(self, number):
        self.is_shared = self.random.random() < 0.5
        self.experiment = self.cluster.directory / ("share" if self.is_shared else "") / f"run_{number}"
        self.setting = str(self.random.randrange(12))
        self.in_allocation = self.random.random() < 0.5
        self.former = []  # what earlier controllers have said
        self.log = [f"run {number}, setting {self.setting}, {'steps' if self.in_allocation else 'jobs'}"
                    f"{', in a shared place' if self.is_shared else ''}"]
        undisturbed = self.cluster.directory / f"undisturbed_{self.setting}"
        if not undisturbed.exists():
            self.cluster.run("ctl", [BIN / TOOL, "run", undisturbed, self.setting], timeout=DEADLINE_S)
        code = None
        while code != FINISHED:
            self.start_controller()
            code = self.disturb_until_end()
            self.former.append(f"{time.monotonic():.2f} controller ended with {code}: {self.text()[-1000:]}")
            self.check([] if code != FINISHED else [undisturbed])
        self.heal()
        self.wait_until(lambda: not self.processes(), "no process is left")
        # A job of this test's own may stay there after its slurmd and slurmstepd were killed.
        self.wait_until(lambda: not self.queue("cadre-"), "no job is left")

    def start_controller(self):
        command = [BIN / TOOL, "run", self.experiment, self.setting]
        if self.in_allocation:
            self.heal()
            rig.wait_until(lambda: self.slurm("squeue"), "slurmctld answers", DEADLINE_S)
            self.slurm("scancel", "--name=interactive")  # which salloc could not give back without slurmctld
            # The shell says how the controller has ended; salloc itself takes a signal for success.
            command = ["salloc", "--nodes=2", "--exclusive", "sh", "-c", '"$@"; exit $?', "sh", *command]
        self.started = time.monotonic()
        self.said = self.cluster.directory / "said"
        with open(self.said, "wb") as said:
            self.process = self.cluster.start("ctl", command, stdout=said, stderr=said, cwd=self.cluster.directory,
                                              env={"CADRE_CLUSTER": str(self.nodes)} | self.places())
        self.is_mortal = False
        if self.in_allocation:  # salloc waits for ever when slurmctld dies with its request
            self.wait_until(lambda: self.processes("ctl") or self.process.poll() is not None, "the allocation is there")

    def places(self):
        return {"CADRE_NETWORK_FILE_SYSTEM": str(self.cluster.directory / "share"), "HOME": str(self.home)}

    def disturb_until_end(self):
        """Returns the code of the controller."""
        while not self.is_mortal and self.counts.total() < FAULTS:
            if self.ends_within(self.random.expovariate(1 / 0.7)):
                break
            [fault] = self.random.choices(list(self.faults), self.faults.values())
            if fault():
                self.counts[fault.__name__] += 1
                self.log.append(f"{time.monotonic():.2f} {fault.__name__}")
        if not self.ends_within(DEADLINE_S):
            self.fail(self.story(f"the controller hangs; queue: {self.queue()}; processes: {self.processes()}"))
        code = self.process.returncode
        # A slurmctld that is killed soon after an allocation does not know of it afterwards, and salloc ends its program.
        is_revoked = code == INTERRUPTED and self.in_allocation and self.slurmctld_killed > self.started - 30
        is_refused = code == ENGINE_ERROR and "a node cannot be had" in self.text()
        expected = code == FINISHED or self.is_mortal or is_refused or is_revoked
        self.assertTrue(expected, self.story(f"the controller ended with {code}"))
        return code

    def ends_within(self, seconds):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def check(self, undisturbed):
        done = self.cluster.run("ctl", [BIN / TOOL, "check", self.experiment, self.setting, *undisturbed], check=False,
                                timeout=DEADLINE_S, env=self.places())
        self.assertEqual(done.returncode, 0, self.story(done.stdout + done.stderr))

    def heal(self):
        for timer in self.later:
            timer.join()
        self.later = []
        for node in self.cluster.nodes:
            self.cluster.heal(node)
            self.cluster.run("ctl", ["scontrol", "update", f"nodename={node}", "state=resume"], check=False)

    def wait_until(self, condition, what):
        try:
            rig.wait_until(condition, what, DEADLINE_S)
        except rig.RigError as error:
            there = self.cluster.run("ctl", ["squeue", "--long"], check=False).stdout
            self.fail(self.story(f"{error}; processes: {self.processes()}\n{there}"))

    def text(self):
        return self.said.read_text(errors="replace")

    def story(self, what):
        return "\n".join([what, f"CADRE_SEED={SEED}", *self.log, *self.former, self.text()[-4000:]])

    # Who is there

    def processes(self, node=None):
        return self.cluster.processes(TOOL, node)

    def queue(self, beginning=""):
        """Returns the jobs whose names begin so."""
        lines = self.cluster.run("ctl", ["squeue", "--noheader", "--format=%i %j"], check=False).stdout.splitlines()
        return [line.split()[0] for line in lines if line.split()[1].startswith(beginning)]

    def draw(self, choices):
        """Returns one of them; None if there are none."""
        return self.random.choice(choices) if choices else None

    def draw_agent(self):
        """An agent is a process of the program whose parent is none."""
        there = self.processes(self.random.choice(self.cluster.nodes))
        below = {child for pid in there for child in children_of(pid)}
        return self.draw([pid for pid in there if pid not in below])

    def draw_node(self):
        return self.random.choice(self.cluster.nodes)

    def after(self, seconds, act):
        timer = threading.Timer(seconds, act)
        timer.start()
        self.later.append(timer)

    # Faults: each returns whether there was something to disturb

    def kill_agent(self):
        agent = self.draw_agent()
        return agent is not None and send(agent, signal.SIGKILL)

    def tell_agent_to_go(self):
        agent = self.draw_agent()
        return agent is not None and send(agent, signal.SIGTERM)

    def stop_agent(self):
        agent = self.draw_agent()
        if agent is None or not send(agent, signal.SIGSTOP):
            return False
        self.after(self.random.choice([0.2, 1, 7]), lambda: send(agent, signal.SIGCONT))
        return True

    def kill_server(self):
        agent = self.draw_agent()
        server = self.draw(children_of(agent)) if agent else None
        return server is not None and send(server, signal.SIGKILL)

    def kill_worker(self):
        agent = self.draw_agent()
        servers = children_of(agent) if agent else []
        worker = self.draw([worker for server in servers for worker in children_of(server)])
        return worker is not None and send(worker, signal.SIGKILL)

    def kill_slurmd(self):
        node = self.draw_node()
        if self.cluster.kill("slurmd", node, may_be_none=True) == 0:
            return False
        self.after(self.random.uniform(0, 2), lambda: self.cluster.start_slurmd(node))
        return True

    def kill_slurmstepd(self):
        stepd = self.draw(self.cluster.processes("slurmstepd", self.draw_node()))
        return stepd is not None and send(stepd, signal.SIGKILL)

    def kill_slurmctld(self):
        if self.cluster.kill("slurmctld", may_be_none=True) == 0:
            return False
        self.slurmctld_killed = time.monotonic()
        self.after(self.random.uniform(0, 2), self.cluster.start_slurmctld)
        return True

    def cut_node(self):
        how = self.random.random()
        seconds = self.random.uniform(0.1, 2) if how < 0.7 else self.random.uniform(4, 9) if how < 0.95 else 25
        self.cluster.cut(self.draw_node(), seconds=seconds)
        return True

    def signal_job(self):
        job = self.draw(self.queue())
        return job is not None and self.slurm("scancel", "--signal=TERM", job)

    def cancel_job(self):
        # In an allocation this ends the controller, too.
        job = self.draw(self.queue())
        if job is None or self.in_allocation:
            return False
        return self.slurm("scancel", job)

    def preempt(self):
        if self.in_allocation:
            return False
        seconds = self.random.uniform(0, 2)
        return self.slurm("sbatch", "--partition=urgent", f"--nodelist={self.draw_node()}", "--exclusive", "--output=/dev/null",
                          f"--wrap=sleep {seconds}")

    def end_time(self):
        job = self.draw(self.queue())
        if job is None or self.in_allocation:
            return False
        return self.slurm("scontrol", "update", f"jobid={job}", "endtime=now")

    def kill_controller(self):
        return self.end_controller(signal.SIGKILL)

    def signal_controller(self):
        return self.end_controller(signal.SIGTERM)

    def end_controller(self, signal_number):
        there = self.processes("ctl")
        below = {child for pid in there for child in children_of(pid)}
        controllers = [pid for pid in there if pid not in below]
        self.is_mortal = any([send(pid, signal_number) for pid in controllers])
        return self.is_mortal

    def slurm(self, *command):
        try:
            return self.cluster.run("ctl", command, check=False).returncode == 0
        except subprocess.TimeoutExpired:  # slurmctld was killed with the request
            return False


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
