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

DEADLINE_S = 90
RAY = [sys.executable, "-m", "ray.scripts.scripts"]
# Prints what the cluster has.
STATE = """
import json, ray
ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
groups = [group["state"] for group in ray.util.placement_group_table().values()]
print(json.dumps({"groups": [state for state in groups if state != "REMOVED"], "free": ray.available_resources().get("CPU", 0),
                  "nodes": {node["NodeManagerHostname"]: node["NodeID"] for node in ray.nodes() if node["Alive"]}}))
"""


class RayRig(rig.Rig):
    """Nodes of `cpus` CPUs each; `further` are more arguments of `ray start` by node: by default the second one has two
    GPUs, as far as Ray knows."""

    def __init__(self, nodes=2, cpus=4, further=None, private=()):
        super().__init__(nodes=nodes, slurm=False, private=private)
        self.cpus = cpus
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
        output = self.run("ctl", [sys.executable, "-c", STATE]).stdout
        return json.loads(next(line for line in output.splitlines() if line.startswith('{"groups"')))
