"""Experiments on nodes that see no directory of theirs, and reach the object storage where they are published: nodes store
checkpoints there themselves."""

import json
import os
import pathlib
import re
import random
import shutil
import signal
import subprocess
import sys
import unittest

import carried_test
import carried_training_test
import commands_test
import restart_test
import rig

MEGABYTE = 1 << 20

# Each trial reports checkpoints of so many files of so many bytes, the second trial continues from that of the first one.
PROGRAM = """
import json, os, sys, tempfile, time
import cadre
from cadre import tune

def learn(config):
    done = 0
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as directory:
            done = int(open(os.path.join(directory, "step")).read())
            for number in range(config["files"]):
                assert os.path.getsize(os.path.join(directory, f"weights_{number}")) == config["bytes"]
    print("begun with", done, flush=True)
    for step in range(done + 1, config["steps"] + 1):
        if step > config["steps_before"]:
            while not os.path.exists(config["go_on"]):
                time.sleep(0.01)
        with tempfile.TemporaryDirectory() as directory:
            for number in range(config["files"]):
                with open(os.path.join(directory, f"weights_{number}"), "wb") as file:
                    file.write(os.urandom(config["bytes"]))
            with open(os.path.join(directory, "step"), "w") as file:
                file.write(str(step))
            tune.report({"step": step}, checkpoint=tune.Checkpoint.from_directory(directory))

cadre.init()
config = dict(steps=3, steps_before=100, go_on="", bytes=1000, files=1) | json.loads(sys.argv[2])
name = "learning"
path = os.path.join(sys.argv[1], name)
if tune.Tuner.can_restore(path):
    tuner = tune.Tuner.restore(path, learn)
else:
    tuner = tune.Tuner(learn, param_space=config, tune_config=tune.TuneConfig(num_samples=json.loads(sys.argv[3])), run_config=tune.RunConfig(
        name=name, storage_path=sys.argv[1], verbose=0, failure_config=tune.FailureConfig(max_failures=10),
        checkpoint_config=tune.CheckpointConfig(num_to_keep=1)))
for result in tuner.fit():
    print(json.dumps({"step": result.metrics["step"], "error": str(result.error or "")}))
"""


class Stored(carried_test.Carried):
    """An object storage on the control node, which all nodes reach."""

    def setUp(self):
        super().setUp()
        self.server = self.cluster.start("ctl", [sys.executable, str(rig.SOURCE / "tests" / "storage" / "object_server.py"),
                                                 self.cluster.address("ctl")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for act in (self.server.wait, self.server.stdout.close, self.server.stdin.close):
            self.addCleanup(act)
        self.storage_path = "s3://tests"
        self.port = self.server.stdout.readline().strip()
        self.tell("bucket tests")
        self.place = {"AWS_ENDPOINT_URL": f"http://{self.cluster.address('ctl')}:{self.port}", "AWS_ACCESS_KEY_ID": "test",
                      "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true", "AWS_DEFAULT_REGION": "us-east-1",
                      "HOME": str(self.storage), "CADRE_LEASE_PERIOD": "0.2",
                      "LD_LIBRARY_PATH": str(commands_test.BIN.parent / "src" / "object_storage")}

    def tell(self, command):
        self.server.stdin.write(command + "\n")
        self.server.stdin.flush()
        return self.server.stdout.readline().strip()

    def objects(self):
        """Returns the names of all objects of checkpoints."""
        return {name.removeprefix("tests/") for name in json.loads(self.tell("objects")) if "/checkpoint_" in name}

    def transferred(self, file):
        """Returns how many megabytes were written and read of objects that end so; signatures between them are a little more."""
        found = [sizes for name, sizes in json.loads(self.tell("bytes")).items() if name.endswith(file)]
        return [round(sum(sum(sizes[way]) for sizes in found) / MEGABYTE) for way in (0, 1)]

    def nodes_of(self, run):
        return json.loads(self.cluster.run("ctl", [commands_test.BIN / "cadre", "nodes", run, "--json"]).stdout)["nodes"]

    def wall(self, node):
        """Lets a node not reach the storage any more."""
        self.cluster.run(node, ["sh", "-c", "nft add table inet walled && nft add chain inet walled out '{ type filter hook output priority 0; }' && "
                                            f"nft add rule inet walled out tcp dport {self.port} reject with tcp reset"])

    def open_wall(self, node):
        self.cluster.run(node, ["nft", "delete", "table", "inet", "walled"])

    def on_nodes(self, command, **members):
        return self.start(command, CADRE_CLUSTER=self.cluster_file(**members), **self.place)

    def megabytes(self, node, direction):
        """Returns how many a node has sent or received: "tx" or "rx"."""
        file = f"/sys/class/net/eth0/statistics/{direction}_bytes"
        return int(self.cluster.run(node, ["sh", "-c", f"mount -t sysfs sysfs /sys; cat {file}"]).stdout) / MEGABYTE

    def expect_only_what_is_listed(self, run):
        """Expects objects of checkpoints only where the run's directory has a checkpoint. The files of one are there, too, if
        a node needed them that does not reach the storage."""
        objects = self.objects()
        listed = set()
        for file in run.rglob(".remote.json"):
            remote = json.loads(file.read_text())
            place = remote["place"] or str(file.parent.relative_to(run))
            listed |= {str(pathlib.PurePath(run.name, place, one.get("part", ""), name)) for name, one in remote["files"].items()}
        for checkpoint in [*run.glob("checkpoint_*"), *run.glob("*/checkpoint_*")]:
            is_output = checkpoint.parent.name == "validations"
            if not is_output and not (checkpoint / ".remote.json").exists():
                files = [file.relative_to(checkpoint) for file in checkpoint.rglob("*") if file.is_file()]
                own = f"{run.name}/{checkpoint.relative_to(run)}"  # where the publisher stores it
                by_nodes = {str(pathlib.PurePath(name).parent) for name in objects - listed if re.search(r"/checkpoint_[0-9]+_[0-9]+/", name)}
                places = [own, *sorted(place for place in by_nodes if pathlib.PurePath(place).parent == pathlib.PurePath(own).parent)]
                place = next((place for place in places if all(f"{place}/{file}" in objects for file in files)), own)
                listed |= {f"{place}/{file}" for file in files}
        self.assertEqual(objects, {name for name in listed if "/checkpoint_" in name})


class StoredTest(Stored):
    iterations = 40  # each stores a checkpoint

    def experiment(self):
        return self.storage / "cadre_results" / "population"

    def command(self):
        return ["env", f"CADRE_TEST_HURRY={self.hurry()}", str(restart_test.TOOL), self.storage_path, *map(str, (self.trials, self.iterations, self.pause_ms))]

    def on_nodes(self, command=None, **members):
        return super().on_nodes(command or self.command(), **members)

    def expect_files(self, here):
        self.expect_only_what_is_listed(self.experiment())

    def places(self):
        """Returns the names of checkpoints' directories in the storage."""
        return {pathlib.PurePath(name).parent.name for name in self.objects()}

    def test_a_population_comes_to_what_one_machine_comes_to(self):
        process = self.on_nodes()
        restart_test.wait_until(lambda: len(self.agents()) == 2 and self.rows() > 20, "it is at work")
        self.assertFalse(list(self.experiment().glob("*/checkpoint_*/state")), "checkpoints do not come here")
        self.finish_as_undisturbed(process)
        self.assertTrue(all(name.count("_") == 2 for name in self.places()), self.places())

    def test_a_population_that_is_killed_again_and_again_comes_to_the_same_and_leaves_nothing(self):
        choice = random.Random(int(os.environ.get("CADRE_SEED", "1")))
        for _ in range(3):
            process = self.on_nodes()
            rows = self.rows()
            restart_test.wait_until(lambda rows=rows: self.rows() >= rows + choice.randint(5, 25), "it goes on")
            if choice.random() < 0.5:
                os.kill(choice.choice(self.agents()), signal.SIGKILL)
                rows = self.rows()
                restart_test.wait_until(lambda rows=rows: self.rows() >= rows + 10, "it goes on without the agent")
            os.kill(self.controller(), signal.SIGKILL)
            process.wait()
        self.finish_as_undisturbed(self.on_nodes())

    def test_it_is_continued_without_the_disk_of_the_program(self):
        first = self.on_nodes(nodes_stay=0)

        def is_in_its_middle():
            rows = self.rows_of(self.experiment())
            return len(rows) == 4 and min(map(len, rows.values())) >= 25

        restart_test.wait_until(is_in_its_middle, "it is in its middle")
        os.kill(self.controller(), signal.SIGKILL)
        first.wait()
        self.expect_no_agents()
        shutil.rmtree(self.experiment().parent)
        self.finish_as_undisturbed(self.on_nodes())

    def test_a_node_that_does_not_reach_the_storage_uses_its_connection(self):
        self.wall("n2")
        process = self.on_nodes()
        restart_test.wait_until(lambda: len(self.agents()) == 2 and self.rows() > 20, "it is at work")
        self.finish_as_undisturbed(process)
        self.assertEqual({name.count("_") for name in self.places()}, {1, 2}, "some were stored by n1, others published")

    def test_a_node_that_reaches_the_storage_later_stores_there_from_then_on(self):
        self.iterations, self.pause_ms = 100, 300
        self.wall("n2")
        process = self.on_nodes()
        restart_test.wait_until(lambda: len(self.agents()) == 2 and self.rows() > 20, "it is at work")
        [there] = [node["trials"] for node in self.nodes_of(self.experiment()) if node["name"] == "n2"]

        def stored():
            return [name for name in self.objects() if int(name.split("/")[-3][:5]) in there and name.split("/")[-2].count("_") == 2]

        self.assertEqual(stored(), [])
        self.open_wall("n2")
        self.assertTrue(any("node n2 reaches s3://tests/population now" in line for line in process.stderr))
        restart_test.wait_until(stored, "n2 stores what its workers report")
        self.finish_as_undisturbed(process)

    def test_a_storage_that_fails_for_a_while_costs_time_and_one_that_denies_is_done_without(self):
        process = self.on_nodes()
        restart_test.wait_until(lambda: len(self.agents()) == 2 and self.rows() > 20, "it is at work")
        for fault in ("503", "refuse"):
            self.tell(f"fail {fault} 40")
            rows = self.rows()
            restart_test.wait_until(lambda rows=rows: self.rows() >= rows + 10, "it goes on")
        self.assertTrue(all(name.count("_") == 2 for name in self.places()), self.places())
        self.tell("fail denied -1")
        rows = self.rows()
        restart_test.wait_until(lambda: self.rows() >= rows + 20, "it goes on over the connections")
        self.tell("well")
        errors = self.finish_as_undisturbed(process)
        self.assertRegex(errors, "cadre: node n[12] fails at s3://tests/population, and its files go over its connection for 60 s: .*ACCESS_DENIED")

    def test_what_continues_while_the_storage_fails_waits_for_it(self):
        process = self.on_nodes()
        restart_test.wait_until(lambda: len(self.agents()) == 2 and self.rows() > 20, "it is at work")
        victim = self.agents()[0]
        self.tell("fail refuse -1")
        os.kill(victim, signal.SIGKILL)
        restart_test.wait_until(lambda: len(self.nodes_of(self.experiment())) == 3, "another node has tried the storage, and joined")
        requests = int(self.tell("requests"))
        restart_test.wait_until(lambda: int(self.tell("requests")) > requests + 60, "it is tried again and again")
        self.tell("well")
        errors = self.finish_as_undisturbed(process)
        self.assertIn("does not reach s3://tests/population", errors)

    # ---- In Python

    def start_in_python(self, samples=1, **config):
        program = self.directory / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        return self.on_nodes([sys.executable, program, self.storage_path, json.dumps(config), str(samples)])

    def learning(self):
        return self.storage / "cadre_results" / "learning"

    def said(self):
        return "".join(file.read_text() for file in self.learning().glob("*/stdout"))

    def output(self, process, steps):
        output, errors = process.communicate(timeout=restart_test.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        results = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        self.assertEqual(results, [{"step": steps, "error": ""}] * len(results))
        return results

    def node_of_trial(self):
        [name] = {node["name"] for node in self.nodes_of(self.learning()) if node["trials"] and node["state"] == "ready"}
        return name

    def test_a_large_checkpoint_is_stored_once_and_loaded_once(self):
        go_on = self.directory / "go_on"
        process = self.start_in_python(bytes=50 * MEGABYTE, steps=2, steps_before=1, go_on=str(go_on))
        restart_test.wait_until(lambda: list(self.learning().glob("*/checkpoint_000000")), "a checkpoint is there")
        first = self.node_of_trial()
        self.assertTrue(50 <= self.megabytes(first, "tx") < 54, self.megabytes(first, "tx"))
        self.assertEqual(self.transferred("/weights_0"), [50, 0])
        [victim] = [pid for pid in self.cluster.processes("python3", first) if is_agent(pid)]
        os.kill(victim, signal.SIGKILL)
        restart_test.wait_until(lambda: "begun with 1" in self.said(), "it goes on")
        second = self.node_of_trial()
        if second != first:
            self.assertTrue(50 <= self.megabytes(second, "rx") < 54, self.megabytes(second, "rx"))
        self.assertEqual(self.transferred("/weights_0"), [50, 50])
        go_on.touch()
        self.output(process, 2)
        self.assertEqual(self.transferred("/weights_0"), [100, 50])
        self.expect_only_what_is_listed(self.learning())
        self.assertEqual(len(self.objects()), 3, "one checkpoint is kept, of two files and its metadata")

    def test_what_was_stored_and_never_reported_is_gone(self):
        for node in self.cluster.nodes:
            self.cluster.bandwidth(node, "20mbit")
        process = self.start_in_python(bytes=MEGABYTE, files=40, steps=1)  # sixteen seconds
        restart_test.wait_until(lambda: len(self.objects()) > 5, "some files of a checkpoint are stored")
        before = self.objects()
        self.assertEqual(self.said().count("begun with 0"), 1)
        [victim] = [pid for node in self.cluster.nodes for pid in self.cluster.processes("python3", node)
                    if is_agent(pid) and self.megabytes(node, "tx") > 4]
        os.kill(victim, signal.SIGKILL)
        for node in self.cluster.nodes:
            self.cluster.heal(node)
        self.output(process, 1)
        self.assertEqual(self.said().count("begun with 0"), 2)
        self.expect_only_what_is_listed(self.learning())
        self.assertFalse(before & self.objects())


class StoredTrainingTest(Stored):
    def training(self):
        return self.storage / "cadre_results" / "training"

    def output(self, process):
        self.hurry().touch()
        output, errors = process.communicate(timeout=restart_test.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        return output

    def tool(self, storage, steps, milliseconds):
        return ["env", f"CADRE_TEST_HURRY={self.hurry()}", commands_test.BIN / "checkpoints_tool", storage, steps,
                milliseconds, "/mnt/own"]

    def wait_for_reports(self, number):
        file = self.training() / "result.json"
        restart_test.wait_until(lambda: file.exists() and file.read_text().count("\n") >= number, f"{number} reports")

    def test_ranks_that_report_in_all_ways_and_are_killed_come_to_what_one_machine_comes_to(self):
        process = self.on_nodes(self.tool(self.storage_path, 30, 50))
        self.wait_for_reports(8)
        self.cluster.kill("checkpoints_tool", node="ctl")
        process.wait(restart_test.DEADLINE_S)
        process = self.on_nodes(self.tool(self.storage_path, 30, 50))
        self.wait_for_reports(18)
        self.cluster.kill("checkpoints_tool", node="n1")
        output = self.output(process)
        self.assertEqual(output, self.output(self.start(self.tool(self.directory / "here", 30, 1))))
        self.expect_only_what_is_listed(self.training())

    def test_parts_of_a_node_that_does_not_reach_the_storage_are_merged_with_others(self):
        self.wall("n2")
        output = self.output(self.on_nodes(self.tool(self.storage_path, 20, 1)))
        self.assertEqual(output, self.output(self.start(self.tool(self.directory / "here", 20, 1))))
        self.expect_only_what_is_listed(self.training())

    def test_ranks_read_what_others_have_stored(self):
        program = self.directory / "program.py"
        program.write_text(carried_training_test.PROGRAM, encoding="utf-8")
        self.output(self.on_nodes([sys.executable, program, self.storage_path, json.dumps({"bytes": 4 * MEGABYTE, "reads": True})]))
        said = (self.training() / "rank_1" / "stdout").read_text()
        self.assertIn("read 3", said)
        self.assertRegex(said, "refused: .*the run keeps no checkpoint checkpoint_000000 any more")
        self.assertEqual(self.transferred("/weights"), [16, 12])
        self.expect_only_what_is_listed(self.training())

    def test_a_large_checkpoint_is_stored_once_and_loaded_once(self):
        program, go_on = self.directory / "program.py", self.directory / "go_on"
        program.write_text(carried_training_test.PROGRAM, encoding="utf-8")
        config = {"bytes": 50 * MEGABYTE, "steps_before": 1, "steps": 2, "go_on": str(go_on)}
        process = self.on_nodes([sys.executable, program, self.storage_path, json.dumps(config)])
        restart_test.wait_until(lambda: list(self.training().glob("checkpoint_000000")), "a checkpoint is there")
        self.assertEqual(self.transferred("/weights"), [50, 0])
        self.assertLess(self.megabytes("n1", "tx") + self.megabytes("n2", "tx"), 58)
        [victim] = self.workers("n2")
        os.kill(victim, signal.SIGKILL)  # the group begins anew, with the latest checkpoint
        said = [self.training() / f"rank_{rank}" / "stdout" for rank in (0, 1)]
        restart_test.wait_until(lambda: all("begun with 1" in file.read_text() for file in said), "it goes on")
        self.assertEqual(self.transferred("/weights"), [50, 50], "the node that has stored it has it")
        go_on.touch()
        self.output(process)
        self.assertEqual(self.transferred("/weights"), [100, 50])
        self.expect_only_what_is_listed(self.training())


def is_agent(pid):
    """Returns true for the process that init has made an agent, and not for those that it has made."""
    def has_settings(process):
        try:
            return b"\0CADRE_AGENT=" in b"\0" + pathlib.Path(f"/proc/{process}/environ").read_bytes() \
                and b"program.py" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            return False
    return has_settings(pid) and not has_settings(restart_test.parent(pid))


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
