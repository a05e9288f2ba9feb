"""One model, trained by workers on two nodes of a real Slurm, comes to the parameters that it comes to on one machine with
as many workers. As on Debian, the name of each node leads to a loopback address there."""

import importlib.util
import json
import os
import pathlib
import re
import sys
import unittest

import rig

BIN = pathlib.Path(os.environ["CADRE_BIN"])
DEADLINE_S = 120


class TrainingTest(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=3))
        self.groups = [{"nodes": 2}]
        for node in self.cluster.nodes:
            self.name_leads_to_loopback(node)

    def name_leads_to_loopback(self, node):
        hosts = self.cluster.directory / f"hosts_of_{node}"
        lines = (self.cluster.directory / "hosts").read_text().splitlines()
        kept = [line for line in lines if node not in line.split()]
        hosts.write_text("\n".join([f"127.0.1.1 {node}", *kept]) + "\n")
        self.cluster.run(node, ["mount", "--bind", hosts, "/etc/hosts"])

    def two_nodes(self):
        file = self.cluster.directory / "two_nodes.json"
        file.write_text(json.dumps({"engine": "slurm", "groups": self.groups}), encoding="utf-8")
        return file

    def start(self, program, name, *arguments, **variables):
        return rig.start_for(self, self.cluster, [*program, self.cluster.directory / name, *arguments], **variables)

    def result(self, process):
        output, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        return output

    def places(self, name):
        """Returns what workers say about their places, in the order of their ranks."""
        return [re.findall("on .*", (self.cluster.directory / name / "training" / f"rank_{rank}" / "stdout").read_text())
                for rank in range(4)]

    def compare(self, program, steps, *arguments, meanwhile=lambda: None, beginnings=1):
        cpus = len(os.sched_getaffinity(0))  # a node has as many
        here = self.result(self.start(program, "here", steps, cpus / 4, *arguments))
        self.assertGreater(len(here.split()), 8)
        process = self.start(program, "nodes", steps, cpus / 2, *arguments, CADRE_CLUSTER=str(self.two_nodes()))
        meanwhile()
        self.assertEqual(self.result(process), here)
        places = self.places("nodes")
        self.assertEqual([len(said) for said in places], [beginnings] * 4)
        self.assert_two_on_each([said[-1] for said in places])

    def assert_two_on_each(self, places):
        hosts = [re.findall(r"on (\w+)", said)[0] for said in places]
        self.assertEqual(len(set(hosts)), 2)
        self.assertEqual(places, [f"on {host} local rank {rank % 2} of 2, node {rank // 2}" for rank, host in enumerate(hosts)])

    def compare_in_cpp(self, *arguments, **options):
        tool = BIN / "torch_training_tool"
        if not tool.exists():
            self.skipTest("Cadre is built without libtorch")
        self.compare([tool], *arguments, **options)

    def wait_for_reports(self, number):
        file = self.cluster.directory / "nodes/training/result.json"
        rig.wait_until(lambda: file.exists() and file.read_text().count("\n") >= number, f"{number} reports")

    def test_in_cpp(self):
        self.compare_in_cpp(20, 1)

    def test_a_node_is_cut_off_for_a_while(self):
        def cut():
            self.wait_for_reports(10)
            self.cluster.cut("n1", seconds=8)

        self.compare_in_cpp(100, 50, meanwhile=cut)

    def test_an_agent_is_killed_and_its_node_comes_back(self):
        def kill():
            self.wait_for_reports(10)
            self.cluster.kill("torch_training_tool", node="n1")

        self.compare_in_cpp(60, 50, meanwhile=kill, beginnings=2)

    def test_a_spare_takes_over(self):
        """Of three nodes two are needed: the third is there when one is lost, and no other one comes."""
        self.groups = [{"nodes": 3}]

        def end():
            self.wait_for_reports(10)
            nodes = json.loads(self.cluster.run("ctl", [BIN / "cadre", "nodes", self.cluster.directory / "nodes/training",
                                                        "--json"]).stdout)["nodes"]
            [victim] = [node["name"] for node in nodes if 0 in node["ranks"]]
            self.cluster.kill("slurmd", node=victim)  # which could begin another step there
            self.cluster.kill("torch_training_tool", node=victim)

        self.compare_in_cpp(60, 50, meanwhile=end, beginnings=2)

    def test_in_python(self):
        if importlib.util.find_spec("cadre") is None or importlib.util.find_spec("torch") is None:
            self.skipTest("this Python lacks the module cadre or torch")
        self.compare([sys.executable, pathlib.Path(__file__).parent / "training.py"], 20)


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
