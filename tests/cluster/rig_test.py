"""The cluster that tests run on: a real Slurm, networks that can be cut, and nothing that stays behind."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import rig

DEADLINE_S = 120

# A test that is killed: prints the folder and a process of its cluster, and waits.
KILLED = """
import rig, time
with rig.Rig(nodes=1) as cluster:
    print(cluster.directory, cluster.processes("slurmd")[0], flush=True)
    time.sleep(600)
"""


def network_devices():
    return sorted(os.listdir("/sys/class/net"))


class RigTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(rig.Rig(
            nodes=2, gpus={"n2": ("a100", 2)}, features={"n1": "train"},
            partitions={"all": "Default=YES PriorityTier=1", "urgent": "PriorityTier=9 PreemptMode=OFF"}))

    def reaches(self, node, other):
        ping = ["ping", "-c", "1", "-W", "1", self.cluster.address(other)]
        return self.cluster.run(node, ping, check=False).returncode == 0

    def job_state(self, job):
        shown = self.cluster.run("ctl", ["squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"]).stdout
        return sorted(shown.split())

    def wait_for_states(self, job, *states):
        rig.wait_until(lambda: self.job_state(job) == list(states), f"job {job} is {states}")

    def test_srun_runs_on_both_nodes_under_their_names(self):
        done = self.cluster.run("ctl", ["srun", "--nodes=2", "hostname"])
        self.assertEqual(sorted(done.stdout.split()), ["n1", "n2"])

    def test_nodes_know_each_other_by_name(self):
        self.assertEqual(self.cluster.run("n1", ["getent", "hosts", "n2"]).stdout.split(), ["10.91.0.12", "n2"])

    def test_sbatch_runs_an_array(self):
        output = self.cluster.directory / "array-%a.out"
        script = "#!/bin/sh\necho $SLURM_ARRAY_TASK_ID on $(hostname)\n"
        self.cluster.run("ctl", ["sbatch", "--wait", "--array=0-3", f"--output={output}"], input=script)
        lines = [(self.cluster.directory / f"array-{number}.out").read_text().split() for number in range(4)]
        self.assertEqual([line[0] for line in lines], ["0", "1", "2", "3"])

    def test_scancel_ends_a_job(self):
        job = self.cluster.run("ctl", ["sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 600"]).stdout.strip()
        self.wait_for_states(job, "RUNNING")
        self.cluster.run("ctl", ["scancel", job])
        self.wait_for_states(job, "CANCELLED")

    def test_an_urgent_job_preempts(self):
        options = ["--parsable", "--nodes=2", "--exclusive", "--output=/dev/null", "--no-requeue", "--wrap=exec sleep 600"]
        job = self.cluster.run("ctl", ["sbatch", *options]).stdout.strip()
        self.wait_for_states(job, "RUNNING")
        self.cluster.run("ctl", ["srun", "--partition=urgent", "--nodes=2", "true"])
        self.wait_for_states(job, "PREEMPTED")

    def test_gpus_and_features_choose_the_node(self):
        gpus = self.cluster.run("ctl", ["srun", "--gres=gpu:a100:2", "sh", "-c", "hostname; echo $CUDA_VISIBLE_DEVICES"]).stdout
        self.assertEqual(gpus.split(), ["n2", "0,1"])
        self.assertEqual(self.cluster.run("ctl", ["srun", "--constraint=train", "hostname"]).stdout, "n1\n")

    def test_a_cut_node_is_not_reached_until_it_is_healed(self):
        self.assertTrue(self.reaches("n1", "n2"))
        self.cluster.cut("n2")
        self.addCleanup(self.cluster.heal, "n2")
        self.assertFalse(self.reaches("n1", "n2"))
        self.assertTrue(self.reaches("n1", "ctl"))
        self.cluster.heal("n2")
        self.assertTrue(self.reaches("n1", "n2"))

    def test_a_cut_of_some_seconds_heals_by_itself(self):
        self.cluster.cut("n2", seconds=3)
        self.assertFalse(self.reaches("n1", "n2"))
        rig.wait_until(lambda: self.reaches("n1", "n2"), "n2 is back")

    def test_packets_are_lost_at_random(self):
        self.cluster.loss("n2", 50)
        self.addCleanup(self.cluster.heal, "n2")
        ping = ["ping", "-q", "-c", "100", "-i", "0.002", "-W", "1", self.cluster.address("n2")]
        received = int(self.cluster.run("n1", ping, check=False).stdout.partition(" received")[0].split()[-1])
        self.assertGreater(received, 2)  # a quarter is expected: half of those that went, and half of the answers
        self.assertLess(received, 60)

    def test_bandwidth_is_limited(self):
        self.cluster.bandwidth("n1", "8mbit")
        self.addCleanup(self.cluster.heal, "n1")
        receive = "import socket; s = socket.create_server(('', 7777)); print(flush=True); c, _ = s.accept()\nwhile c.recv(65536): pass"
        send = "import socket; c = socket.create_connection(('10.91.0.12', 7777)); c.sendall(bytes(1 << 20)); c.shutdown(1); c.recv(1)"
        with self.cluster.start("n2", ["python3", "-c", receive], stdout=subprocess.PIPE) as receiver:
            receiver.stdout.readline()
            begin = time.monotonic()
            self.cluster.run("n1", ["python3", "-c", send])
            self.assertGreater(time.monotonic() - begin, 0.9)  # 1 MiB at 1 MB/s


class KilledDaemonsTest(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2))

    def test_slurmctld_and_slurmd_are_killed_and_come_back(self):
        self.assertEqual(self.cluster.kill("slurmctld"), 1)
        self.assertEqual(self.cluster.idle_nodes(), [])
        self.cluster.start_slurmctld()
        self.assertEqual(self.cluster.kill("slurmd", "n1"), 1)
        self.cluster.start_slurmd("n1")
        self.cluster.wait_idle()
        self.assertEqual(self.cluster.run("ctl", ["srun", "--nodelist=n1", "hostname"]).stdout, "n1\n")

    def test_a_step_daemon_is_killed_on_one_node(self):
        with self.cluster.start("ctl", ["srun", "--nodes=2", "sleep", "600"], stderr=subprocess.DEVNULL):
            rig.wait_until(lambda: len(self.cluster.processes("sleep")) >= 4, "two tasks run")  # and the two nodes
            daemons = self.cluster.processes("slurmstepd")
            there = self.cluster.processes("slurmstepd", "n1")
            self.assertTrue(set(there) < set(daemons))  # Slurm ends that of the other node, too, some time later
            self.assertEqual(self.cluster.kill("slurmstepd", "n1"), len(there))
            self.cluster.run("ctl", ["scancel", "--user=root"])


class SeveralRigsTest(unittest.TestCase):
    def test_two_clusters_exist_beside_each_other(self):
        with rig.Rig(nodes=1) as one, rig.Rig(nodes=1) as other:
            self.assertEqual(one.run("ctl", ["srun", "hostname"]).stdout, "n1\n")
            self.assertEqual(other.run("ctl", ["srun", "hostname"]).stdout, "n1\n")
            self.assertFalse(set(one.processes()) & set(other.processes()))

    def test_a_node_has_private_folders(self):
        with rig.Rig(nodes=2, slurm=False, private=["/mnt"]) as cluster:
            mine = pathlib.Path("/mnt") / cluster.directory.name
            cluster.run("n1", ["touch", mine])
            self.assertEqual(cluster.run("n1", ["ls", "/mnt"]).stdout, f"{mine.name}\n")
            self.assertEqual(cluster.run("n2", ["ls", "/mnt"]).stdout, "")
            self.assertFalse(mine.exists())


class NothingIsLeftTest(unittest.TestCase):
    def assert_gone(self, directory, pid):
        rig.wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the cluster's processes end")
        rig.wait_until(lambda: not directory.exists(), "the cluster's folder is removed")

    def test_nothing_is_left_of_a_test_that_fails(self):
        devices, mounts = network_devices(), pathlib.Path("/proc/self/mounts").read_text()
        with self.assertRaises(ZeroDivisionError), rig.Rig(nodes=1) as cluster:
            pid = cluster.processes("slurmd")[0]
            self.assertEqual(network_devices(), devices)
            self.assertEqual(pathlib.Path("/proc/self/mounts").read_text(), mounts)
            raise ZeroDivisionError
        self.assert_gone(cluster.directory, pid)

    def test_nothing_is_left_of_a_test_that_is_killed(self):
        with subprocess.Popen([sys.executable, "-c", KILLED], cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE,
                              text=True) as test:
            directory, pid = test.stdout.readline().split()
            self.assertTrue(pathlib.Path(f"/proc/{pid}").exists())
            test.send_signal(signal.SIGKILL)
        self.assert_gone(pathlib.Path(directory), pid)


class MissingTest(unittest.TestCase):
    def test_a_machine_without_slurm_is_skipped_with_what_it_lacks(self):
        env = os.environ | {"CADRE_SLURM": "/nonexistent"}
        done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        if done.returncode != rig.SKIPPED:
            self.skipTest("Slurm is installed here")
        self.assertIn("skipped: this machine lacks the program slurmctld", done.stderr)

    def test_a_user_who_is_not_root_is_told_so(self):
        become = "import os, rig; os.setgid(65534); os.setuid(65534); print(rig.missing())"
        done = subprocess.run([sys.executable, "-c", become], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True,
                              timeout=DEADLINE_S, check=True)
        self.assertEqual(done.stdout, "a cluster of namespaces needs root\n")


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
