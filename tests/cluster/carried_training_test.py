"""Training runs on nodes that see no directory of theirs: parts of checkpoints come over the connections of the agents, and
go back to nodes that read them."""

import json
import os
import pathlib
import signal
import sys
import unittest

import carried_test
import commands_test
import restart_test
import rig

# Two ranks, each on a node of its own; the first one reports checkpoints of so many bytes.
PROGRAM = """
import json, os, sys, tempfile, time
import cadre
from cadre import train

def learn(config):
    rank = train.get_context().get_world_rank()
    done = 0
    if checkpoint := train.get_checkpoint():
        with checkpoint.as_directory() as directory:
            done = int(open(os.path.join(directory, "step")).read())
    print("begun with", done, flush=True)
    for step in range(done + 1, config["steps"] + 1):
        while step > config["steps_before"] and not os.path.exists(config["go_on"]):
            time.sleep(0.01)
        directory = tempfile.mkdtemp()
        with open(os.path.join(directory, "weights"), "wb") as file:
            if config["sparse"]:
                file.truncate(config["bytes"])
            else:
                file.write(os.urandom(config["bytes"]))
        with open(os.path.join(directory, "step"), "w") as file:
            file.write(str(step))
        mode = train.CheckpointUploadMode[config["mode"]]
        checkpoint = train.Checkpoint.from_directory(directory) if rank == 0 else None
        train.report({"step": step}, checkpoint, checkpoint_upload_mode=mode)
    if rank == 1 and config["reads"]:
        found = train.get_all_reported_checkpoints(train.CheckpointConsistencyMode.COMMITTED)
        print("lacks", sum(not os.path.exists(reported.checkpoint.path) for reported in found), flush=True)
        for reported in found:
            with reported.checkpoint.as_directory() as directory:
                assert os.path.getsize(os.path.join(directory, "weights")) == config["bytes"]
                assert open(os.path.join(directory, "step")).read() == str(reported.metrics["step"])
        gone = train.Checkpoint(os.path.join(os.path.dirname(found[0].checkpoint.path), "checkpoint_000000"))
        try:
            with gone.as_directory():
                pass
        except cadre.CadreError as error:
            print("refused:", error, flush=True)
        print("read", len(found), flush=True)

cadre.init()
config = dict(steps=4, steps_before=100, go_on="", bytes=1000, sparse=False, mode="SYNC", reads=False) | json.loads(sys.argv[2])
result = train.DataParallelTrainer(
    learn, train_loop_config=config, scaling_config=train.ScalingConfig(
        num_workers=2, placement_strategy="STRICT_SPREAD"),
    run_config=train.RunConfig(name="training", storage_path=sys.argv[1], failure_config=train.FailureConfig(max_failures=3),
                               checkpoint_config=train.CheckpointConfig(num_to_keep=3))).fit()
if result.error:
    sys.exit(str(result.error))
"""
MEGABYTE = 1 << 20


class CarriedTrainingTest(carried_test.Carried):
    """Ranks report checkpoints in all ways, and each is validated."""

    def experiment(self):
        return self.storage / "training"

    def command(self, steps=25, milliseconds=1, storage=None):
        return ["env", f"CADRE_TEST_HURRY={self.hurry()}", commands_test.BIN / "checkpoints_tool", storage or self.storage,
                steps, milliseconds, "/mnt/own"]

    def on_nodes(self, *arguments):
        return self.start(self.command(*arguments), CADRE_CLUSTER=self.cluster_file())

    def agents(self):
        return [pid for pid in self.cluster.processes("checkpoints_tool") if b"\0CADRE_AGENT=" in b"\0" + environment(pid)]

    def output(self, process):
        self.hurry().touch()
        output, errors = process.communicate(timeout=restart_test.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        return output

    def expect_what_one_machine_comes_to(self, process, steps):
        output = self.output(process)
        here = self.directory / "here"
        self.assertEqual(output, self.output(self.start(self.command(steps, storage=here))))
        self.assertEqual(output.count("validated"), 12, output)
        self.assertEqual(self.files(self.experiment()), self.files(here / "training"))
        restart_test.wait_until(lambda: not self.cluster.processes("checkpoints_tool"), "all agents have ended")

    def files(self, run):
        """Returns all files of checkpoints, with what is in them: their numbers are others if one was lost on its way."""
        self.assertFalse(list(run.glob(".reporting*")))
        return sorted((file.name, int(file.read_bytes())) for file in run.glob("*/rank_?"))

    def wait_for_reports(self, number):
        file = self.experiment() / "result.json"
        restart_test.wait_until(lambda: file.exists() and file.read_text().count("\n") >= number, f"{number} reports")

    def test_all_ways_to_report_a_checkpoint(self):
        self.expect_what_one_machine_comes_to(self.on_nodes(25), 25)
        for rank in range(4):
            self.assertIn("begun", (self.experiment() / f"rank_{rank}" / "stdout").read_text())
            self.assertFalse((self.experiment() / f"rank_{rank}" / "stderr").read_text())

    def test_killed_controllers_and_agents_lose_nothing(self):
        for reports in (7, 14, 21):
            process = self.on_nodes(40, 50)
            self.wait_for_reports(reports)
            self.cluster.kill("checkpoints_tool", node="ctl")
            process.wait(restart_test.DEADLINE_S)
        process = self.on_nodes(40, 50)
        self.wait_for_reports(28)
        self.cluster.kill("checkpoints_tool", node="n1")
        self.expect_what_one_machine_comes_to(process, 40)

    def test_a_node_that_is_cut_off_for_a_while_loses_nothing(self):
        process = self.on_nodes(40, 50)
        self.wait_for_reports(10)
        self.cluster.cut("n1", seconds=3)
        self.expect_what_one_machine_comes_to(process, 40)

    def test_it_goes_on_where_another_one_ended(self):
        process = self.start(self.command(40, 50))
        self.wait_for_reports(7)
        self.cluster.kill("checkpoints_tool")
        process.wait(restart_test.DEADLINE_S)
        process = self.on_nodes(40, 50)
        self.wait_for_reports(14)
        self.cluster.kill("checkpoints_tool")
        process.wait(restart_test.DEADLINE_S)
        self.assertEqual(self.output(self.start(self.command(40, 50))), self.output(self.start(self.command(40, 1, self.directory / "here"))))

    def test_one_model_comes_to_the_parameters_of_one_machine(self):
        tool = commands_test.BIN / "torch_training_tool"
        if not tool.exists():
            self.skipTest("Cadre is built without libtorch")
        cpus = len(os.sched_getaffinity(0))  # a node has as many
        process = self.start([tool, self.storage, 60, cpus / 2, 50], CADRE_CLUSTER=self.cluster_file())
        self.wait_for_reports(10)
        self.cluster.kill(tool.name, node="n1")
        self.wait_for_reports(30)
        self.cluster.kill(tool.name, node="ctl")
        process.wait(restart_test.DEADLINE_S)
        output = self.output(self.start([tool, self.storage, 60, cpus / 2, 50], CADRE_CLUSTER=self.cluster_file()))
        self.assertEqual(output, self.output(self.start([tool, self.directory / "here", 60, cpus / 4, 0])))
        self.assertGreater(len(output.split()), 8)

    # ---- In Python

    def start_in_python(self, **config):
        program = self.directory / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        return self.start([sys.executable, program, self.storage, json.dumps(config)], CADRE_CLUSTER=self.cluster_file())

    def checkpoints(self):
        return sorted(path.name for path in self.experiment().glob("checkpoint_*"))

    def said(self, rank):
        return (self.experiment() / f"rank_{rank}" / "stdout").read_text()

    def node_of(self, rank):
        nodes = json.loads(self.cluster.run("ctl", [commands_test.BIN / "cadre", "nodes", self.experiment(), "--json"]).stdout)["nodes"]
        [name] = {node["name"] for node in nodes if rank in node["ranks"]}
        return name

    def megabytes(self, node, direction):
        """Returns how many a node has sent or received: "tx" or "rx"."""
        file = f"/sys/class/net/eth0/statistics/{direction}_bytes"
        return int(self.cluster.run(node, ["sh", "-c", f"mount -t sysfs sysfs /sys; cat {file}"]).stdout) / MEGABYTE

    def test_a_checkpoint_crosses_once(self):
        go_on = self.directory / "go_on"
        process = self.start_in_python(bytes=32 * MEGABYTE, steps_before=2, go_on=str(go_on), reads=True)
        restart_test.wait_until(lambda: self.checkpoints() == ["checkpoint_000000", "checkpoint_000001"], "two checkpoints are there")
        first, second = self.node_of(0), self.node_of(1)
        sent = self.megabytes(first, "tx")
        self.assertTrue(64 <= sent < 70, sent)
        self.assertLess(self.megabytes(first, "rx"), 2)
        self.assertLess(self.megabytes(second, "rx"), 2)
        [worker] = self.workers(second)
        os.kill(worker, signal.SIGKILL)  # the group begins anew, with the latest checkpoint
        restart_test.wait_until(lambda: "begun with 2" in self.said(0) and "begun with 2" in self.said(1), "it goes on")
        self.assertLess(self.megabytes(first, "rx"), 2)
        self.assertTrue(32 <= self.megabytes(second, "rx") < 36)
        go_on.touch()
        self.output(process)
        self.assertIn("lacks 2", self.said(1))
        self.assertIn("read 3", self.said(1))
        self.assertRegex(self.said(1), "refused: .*the run keeps no checkpoint checkpoint_000000 any more")

    def test_training_goes_on_while_a_checkpoint_is_on_its_way(self):
        for node in self.cluster.nodes:
            self.cluster.bandwidth(node, "10mbit")
        process = self.start_in_python(bytes=24 * MEGABYTE, mode="ASYNC", steps=3)  # twenty seconds each
        self.wait_for_reports(2)
        self.assertEqual(self.checkpoints(), [])
        for node in self.cluster.nodes:
            self.cluster.heal(node)
        self.output(process)
        self.assertEqual(len(self.checkpoints()), 3)

    def test_a_node_that_is_lost_with_a_checkpoint_on_its_way_is_replaced(self):
        for node in self.cluster.nodes:
            self.cluster.bandwidth(node, "10mbit")
        process = self.start_in_python(bytes=24 * MEGABYTE, mode="ASYNC", steps=3)
        self.wait_for_reports(2)
        self.cluster.kill("python3", node=self.node_of(0))
        for node in self.cluster.nodes:
            self.cluster.heal(node)
        self.output(process)
        self.assertEqual(len(self.checkpoints()), 3)
        self.assertEqual((self.experiment() / self.checkpoints()[-1] / "step").read_text(), "3")
        self.assertFalse(list(self.experiment().glob(".reporting*")))

    def test_a_checkpoint_that_is_too_large_is_named(self):
        process = self.start_in_python(bytes=(2 << 30) + 1, sparse=True)
        _, errors = process.communicate(timeout=restart_test.DEADLINE_S)
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(errors, "checkpoint_00000. of report 1 could not be uploaded: .* has 214748365. bytes, and at most 2147483648 go "
                                 "over the connection of a node: set storage_path to a file system that the nodes share")


def environment(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
