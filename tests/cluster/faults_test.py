"""Experiments and training runs on nodes while everything fails at random: agents, their fork servers and workers, what has
started them, and the controller are killed, and nodes are cut off; on a real Slurm, its daemons are killed, jobs cancelled,
preempted and ended by their time limit. Nothing acknowledged is lost, nothing runs twice, and nothing is left, nor in the
queue. The nodes see the disk of the controller, or only where the run is published, or neither. There are as many nodes as
possible all the time, or as many as the work needs.

CADRE_FAULTS says how many faults there are for each kind of nodes, CADRE_SEED repeats their choice.
"""

import collections
import importlib.util
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

import ray_rig
import rig

BIN = pathlib.Path(os.environ["CADRE_BIN"])
EXPERIMENT, TRAINING = "survivor_tool", "cadre_training_controller"
DEADLINE_S = 150
FAULTS = int(os.environ.get("CADRE_FAULTS", 12))
SEED = int(os.environ.get("CADRE_SEED", random.randrange(1 << 32)))
# Ended of tests/survival/controller_process.h.
FINISHED, ENGINE_ERROR, INTERRUPTED = 0, 10, 13
MISSING = rig.missing()
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


class Faults:
    """A subclass makes the `cluster`, says what nodes programs ask for, and what else can fail."""

    def set_up(self, cluster):
        print(f"CADRE_SEED={SEED} CADRE_FAULTS={FAULTS}", file=sys.stderr)
        self.random = random.Random(SEED)
        self.cluster = self.enterContext(cluster)
        self.home = pathlib.Path("/mnt") / self.cluster.directory.name
        self.home.mkdir()
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.counts = collections.Counter()
        self.kinds = collections.Counter()
        self.log = []
        self.later = []
        self.faults = {self.kill_agent: 3, self.stop_agent: 1, self.tell_agent_to_go: 2, self.kill_server: 2, self.kill_worker: 2,
                       self.cut_node: 4, self.kill_controller: 4, self.signal_controller: 1}

    def cluster_file(self, group, **members):
        # An agent that stood still while its controller ended, and that nobody ends, dials on for so long.
        file = self.cluster.directory / "nodes.json"
        group |= {"name": "nodes", "nodes": 2} | ({"min_nodes": 0, "linger": 0.5} if self.on_demand else {})
        file.write_text(json.dumps({"nodes_stay": 30, "groups": [group]} | members), encoding="utf-8")
        return str(file)

    # Runs

    def test_nothing_is_lost_doubled_or_left(self):
        run = 0
        while self.counts.total() < FAULTS:
            self.run_one(run)
            run += 1
        print(f"{self.counts.total()} faults in {run} runs: {dict(self.counts)}; {dict(self.kinds)}", file=sys.stderr)

    def run_one(self, number):
        self.program = self.random.choice([EXPERIMENT, TRAINING] if (BIN / TRAINING).exists() else [EXPERIMENT])
        place, directory = self.random.choice([("seen", self.cluster.directory), ("published", self.cluster.directory / "share"),
                                               ("carried", self.home)])
        self.run_directory = directory / f"run_{number}"
        self.witnesses = self.cluster.directory / f"witnesses_{number}"
        self.witnesses.mkdir()
        self.on_demand = self.random.random() < 0.3
        self.draw_nodes()
        self.setting = self.draw_setting()
        self.former = []  # what earlier controllers have said
        self.log = [f"run {number}: {self.program} {self.setting}, {place}, {self.nodes}{', on demand' if self.on_demand else ''}"]
        self.kinds.update([self.program, place, self.nodes, *(["on demand"] if self.on_demand else [])])
        undisturbed = self.cluster.directory / f"undisturbed_{'_'.join(self.setting)}"
        if not undisturbed.exists():
            self.cluster.run("ctl", self.command(undisturbed), timeout=DEADLINE_S)
        code = None
        while code != FINISHED:
            self.start_controller()
            code = self.disturb_until_end()
            self.former.append(f"{time.monotonic():.2f} controller ended with {code}: {self.text()[-1000:]}")
            self.check([] if code != FINISHED else [undisturbed])
        self.heal()
        self.wait_until(lambda: not self.processes(), "no process is left")
        self.expect_nothing_left()

    def draw_nodes(self):
        """Draws what `nodes` the run is on."""
        raise NotImplementedError

    def draw_setting(self):
        if self.program == EXPERIMENT:
            return [str(self.random.randrange(12))]
        # The form of validators, and the numbers of workers, steps, steps between checkpoints, and checkpoints to keep.
        return list(map(str, (self.random.randrange(3), self.random.randrange(2, 5), 150, self.random.randrange(1, 5),
                              self.random.randrange(1, 3))))

    def command(self, run):
        if self.program == EXPERIMENT:
            return [BIN / EXPERIMENT, "run", run, *self.setting]
        return [BIN / TRAINING, run, self.cluster.directory / "rows", *self.setting]

    def in_cluster(self, command):
        """Returns the command that runs one on the nodes, and its environment."""
        raise NotImplementedError

    def start_controller(self):
        command, variables = self.in_cluster(self.command(self.run_directory))
        self.started = time.monotonic()
        self.said = self.cluster.directory / "said"
        with open(self.said, "wb") as said:
            self.process = self.cluster.start("ctl", command, stdout=said, stderr=said, cwd=self.cluster.directory,
                                              env=variables | self.places())
        self.is_mortal = False

    def places(self):
        # What trials bear witness of is found there, also if they work in directories of their nodes.
        return {"CADRE_NETWORK_FILE_SYSTEM": str(self.cluster.directory / "share"), "HOME": str(self.home),
                "CADRE_TEST_WITNESSES": str(self.witnesses)}

    def disturb_until_end(self):
        """Returns the code of the controller."""
        while not self.is_mortal and self.counts.total() < FAULTS:
            if self.ends_within(self.random.expovariate(1 / 0.7)):
                break
            [fault] = self.random.choices(list(self.faults), self.faults.values())
            if fault():
                self.counts[fault.__name__] += 1
                self.log.append(f"{time.monotonic():.2f} {fault.__name__}")
        if not self.ends_within(DEADLINE_S / 3):
            self.heal()  # Slurm does not use a node any more whose slurmd was killed too often
        if not self.ends_within(DEADLINE_S):
            self.fail(self.story(f"the controller hangs; processes: {self.processes()}"))
        code = self.process.returncode
        is_refused = code == ENGINE_ERROR and "a node cannot be had" in self.text()
        expected = code == FINISHED or self.is_mortal or is_refused or self.may_end_with(code)
        self.assertTrue(expected, self.story(f"the controller ended with {code}"))
        return code

    def may_end_with(self, code):
        return False

    def expect_nothing_left(self):
        pass

    def ends_within(self, seconds):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def check(self, undisturbed):
        command = [BIN / EXPERIMENT, "check", self.run_directory, *self.setting, *undisturbed]
        if self.program == TRAINING:
            if not undisturbed:
                return
            command = [BIN / EXPERIMENT, "check-training", *undisturbed, *self.command(self.run_directory)[1:]]
        done = self.cluster.run("ctl", command, check=False, timeout=DEADLINE_S, env=self.places())
        self.assertEqual(done.returncode, 0, self.story(done.stdout + done.stderr))

    def heal(self):
        for timer in self.later:
            timer.join()
        self.later = []
        for node in self.cluster.nodes:
            self.cluster.heal(node)

    def wait_until(self, condition, what):
        try:
            rig.wait_until(condition, what, DEADLINE_S)
        except rig.RigError as error:
            self.fail(self.story(f"{error}; processes: {self.processes()}"))

    def text(self):
        return self.said.read_text(errors="replace")

    def story(self, what):
        return "\n".join([what, f"CADRE_SEED={SEED}", *self.log, *self.former, self.text()[-4000:]])

    # Who is there

    def processes(self, node=None):
        return self.cluster.processes(self.program, node)

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

    def cut_node(self):
        how = self.random.random()
        seconds = self.random.uniform(0.1, 2) if how < 0.7 else self.random.uniform(4, 9) if how < 0.95 else 25
        self.cluster.cut(self.draw_node(), seconds=seconds)
        return True

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


@unittest.skipIf(MISSING, MISSING)
class SlurmFaultsTest(Faults, unittest.TestCase):
    def setUp(self):
        self.set_up(rig.Rig(nodes=2, private=["/mnt"], slurmd_timeout_s=15, partitions=PARTITIONS))
        self.slurmctld_killed = -math.inf
        self.faults |= {self.kill_slurmd: 2, self.kill_slurmstepd: 1, self.kill_slurmctld: 2, self.signal_job: 1,
                        self.cancel_job: 2, self.preempt: 2, self.end_time: 1}

    def draw_nodes(self):
        self.nodes = self.random.choice(["steps", "jobs"])
        self.in_allocation = self.nodes == "steps"

    def in_cluster(self, command):
        if self.in_allocation:
            self.heal()
            rig.wait_until(lambda: self.slurm("squeue"), "slurmctld answers", DEADLINE_S)
            self.slurm("scancel", "--name=interactive")  # which salloc could not give back without slurmctld
            # The shell says how the controller has ended; salloc itself takes a signal for success.
            command = ["salloc", "--nodes=2", "--exclusive", "sh", "-c", '"$@"; exit $?', "sh", *command]
        return command, {"CADRE_CLUSTER": self.cluster_file({}, engine="slurm")}

    def start_controller(self):
        super().start_controller()
        if self.in_allocation:  # salloc waits for ever when slurmctld dies with its request
            self.wait_until(lambda: self.processes("ctl") or self.process.poll() is not None, "the allocation is there")

    def may_end_with(self, code):
        # A slurmctld that is killed soon after an allocation does not know of it afterwards, and salloc ends its program.
        return code == INTERRUPTED and self.in_allocation and self.slurmctld_killed > self.started - 30

    def expect_nothing_left(self):
        # A job of this test's own may stay there after its slurmd and slurmstepd were killed.
        self.wait_until(lambda: not self.queue("cadre-"), "no job is left")

    def heal(self):
        super().heal()
        for node in self.cluster.nodes:
            self.cluster.run("ctl", ["scontrol", "update", f"nodename={node}", "state=resume"], check=False)

    def story(self, what):
        there = self.cluster.run("ctl", ["squeue", "--long"], check=False).stdout
        return super().story(f"{what}\n{there}")

    def queue(self, beginning=""):
        """Returns the jobs whose names begin so."""
        lines = self.cluster.run("ctl", ["squeue", "--noheader", "--format=%i %j"], check=False).stdout.splitlines()
        return [line.split()[0] for line in lines if line.split()[1].startswith(beginning)]

    # Faults

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

    def slurm(self, *command):
        try:
            return self.cluster.run("ctl", command, check=False).returncode == 0
        except subprocess.TimeoutExpired:  # slurmctld was killed with the request
            return False


class RemoteShellFaultsTest(Faults, unittest.TestCase):
    """Nodes by a remote shell."""

    def setUp(self):
        self.set_up(rig.Rig(nodes=2, private=["/mnt"], slurm=False))
        self.shell = self.cluster.remote_shell()
        self.faults |= {self.kill_shell: 2}

    def draw_nodes(self):
        self.nodes = "remote shell"

    def in_cluster(self, command):
        group = {"options": {"hosts": ", ".join(self.cluster.nodes)}}
        commands = {"submit": [str(self.shell), "{host}", "sh"]}
        return command, {"CADRE_CLUSTER": self.cluster_file(group, engine="commands", commands=commands)}

    def kill_shell(self):
        shell = self.draw(self.cluster.processes(self.shell.name, "ctl"))
        return shell is not None and send(shell, signal.SIGKILL)


@unittest.skipIf(importlib.util.find_spec("ray") is None, "this Python lacks ray")
class RayFaultsTest(Faults, unittest.TestCase):
    def setUp(self):
        self.set_up(ray_rig.RayRig(private=["/mnt"]))
        self.faults |= {self.kill_launcher: 2, self.kill_raylet: 1}

    def draw_nodes(self):
        self.nodes = "Ray"

    def in_cluster(self, command):
        return command, {"CADRE_CLUSTER": self.cluster_file({}, engine="ray")}

    def expect_nothing_left(self):
        self.wait_until(lambda: not self.cluster.state()["groups"], "no placement group is left")
        self.wait_until(lambda: not self.cluster.launchers(), "no launcher is left")

    def kill_launcher(self):
        launcher = self.draw(self.cluster.launchers())
        return launcher is not None and send(launcher, signal.SIGKILL)

    def kill_raylet(self):
        node = self.draw_node()
        if self.cluster.kill("raylet", node, may_be_none=True) == 0:
            return False
        self.after(self.random.uniform(0, 2), lambda: self.cluster.start_node(node).communicate())
        return True


if __name__ == "__main__":
    rig.skip_unless_there(slurm=False)
    unittest.main()
