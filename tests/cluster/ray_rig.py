"""A real Ray cluster in the namespaces of rig.py: its head on the control node, without CPUs, and as many nodes as wanted.

    with ray_rig.RayRig() as cluster:
        cluster.state()
"""

import contextlib
import json
import pathlib
import subprocess
import sys

import rig

DEADLINE_S = 120
RAY = [sys.executable, "-m", "ray.scripts.scripts"]
# Prints what the cluster has, for each line of its input: it takes seconds to connect to Ray.
STATE = """
import json, signal, sys, ray
ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
for _ in sys.stdin:
    signal.alarm(60)  # ends it
    groups = [group["state"] for group in ray.util.placement_group_table().values()]
    nodes = {node["NodeManagerHostname"]: node["NodeID"] for node in ray.nodes() if node["Alive"]}
    free = ray.available_resources().get("CPU", 0)
    signal.alarm(0)
    groups = [state for state in groups if state != "REMOVED"]
    print(json.dumps({"groups": groups, "free": free, "nodes": nodes}), flush=True)
"""


class RayRig(rig.Rig):
    """Nodes of `cpus` CPUs each; `further` are more arguments of `ray start` by node: by default the second one has two
    GPUs, as far as Ray knows."""

    def __init__(self, nodes=2, cpus=4, further=None, private=()):
        super().__init__(nodes=nodes, slurm=False, private=private)
        self.cpus = cpus
        self._teller = None  # the process that tells the state
        self.further = {"n2": ["--num-gpus=2", '--resources={"tpu": 2, "accelerator_type:A100": 1}']} if further is None else further

    def __enter__(self):
        super().__enter__()
        try:
            self.start_ray("ctl", "--head", "--port=6379", "--num-cpus=0", "--include-dashboard=false",
                           f"--temp-dir={self.directory}/r").communicate(timeout=DEADLINE_S)
            starting = [self.start_node(node) for node in self.nodes]
            for process in starting:
                output, _ = process.communicate(timeout=DEADLINE_S)
                if process.returncode != 0:
                    raise rig.RigError(f"ray start: {output}")
            rig.wait_until(lambda: len(self.state()["nodes"]) == len(self.nodes) + 1, "Ray has its nodes")
        except BaseException:
            self.close()
            raise
        return self

    def _make_nodes(self):
        # Ray has its sockets there; those of two nodes that start together would be the same files.
        sessions = self.directory / "r"
        sessions.mkdir()
        self._private = [sessions, *self._private]
        super()._make_nodes()

    def environment(self, variables=None):
        # Ray's token and files would be those of this user's other clusters.
        own = {"HOME": str(self.directory), "RAY_AUTH_MODE": "disabled", "PATH": f"{pathlib.Path(sys.executable).parent}:{rig.PATH}"}
        all_of_it = super().environment(own | (variables or {}))
        all_of_it.pop("OMP_NUM_THREADS", None)  # which Ray sets
        return all_of_it

    def start_ray(self, node, *arguments):
        command = [*RAY, "start", *arguments, f"--node-ip-address={self.address(node)}", "--disable-usage-stats",
                   "--object-store-memory=80000000", *self.further.get(node, ["--num-gpus=0"])]
        return self.start(node, command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          cwd=self.directory)

    def start_node(self, node):
        return self.start_ray(node, f"--address={self.address('ctl')}:6379", f"--num-cpus={self.cpus}")

    def launchers(self):
        """Returns the ids of the processes of Cadre's launchers."""
        found = []
        for pid in self.processes(node="ctl"):
            with contextlib.suppress(OSError):  # it has ended
                if b"Runs agents on the nodes of a Ray cluster" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def state(self):
        """Returns the states of placement groups that are there, how many CPUs are free, as Ray knows a while later,
        and the ids of nodes by name."""
        for _ in range(3):
            if self._teller is None:
                self._start_teller()
            try:
                self._teller.stdin.write("state\n")
                self._teller.stdin.flush()
                for line in self._teller.stdout:
                    if line.startswith('{"groups"'):
                        return json.loads(line)
            except OSError:
                pass
            self._end_teller()  # it has lost Ray
        said = (self.directory / "teller.log").read_text(errors="replace")
        raise rig.RigError(f"Ray does not tell its state: {said[-4000:]}")

    def close(self):
        if self._teller is not None:
            self._end_teller()
        super().close()

    def _start_teller(self):
        with open(self.directory / "teller.log", "ab") as log:
            self._teller = self.start("ctl", [sys.executable, "-c", STATE], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=log, text=True, cwd=self.directory)

    def _end_teller(self):
        self._teller.kill()
        with contextlib.suppress(OSError):
            self._teller.stdin.close()
        self._teller.stdout.close()
        self._teller.wait(DEADLINE_S)
        self._teller = None
