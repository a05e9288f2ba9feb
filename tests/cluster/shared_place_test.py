"""Experiments and training runs on a file system that the nodes share, while the controller's working directory lies on a
disk that they do not see: workers write checkpoints to where they are published, and the commit renames them there."""

import json
import os
import pathlib
import shutil
import sqlite3
import unittest

import nodes_test
import rig

BIN = pathlib.Path(os.environ["CADRE_BIN"])
DEADLINE_S = 120


class SharedPlace(nodes_test.NodesTest):
    """`name` is that of the run, and `program` the one that is killed."""

    name = "population"
    program = "population_tool"

    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2, slurmd_timeout_s=60, private=["/mnt"]))
        self.storage = self.cluster.directory / "share"
        self.home = pathlib.Path("/mnt") / self.cluster.directory.name
        self.home.mkdir()
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.hurry = self.cluster.directory / "hurry"
        self.working = self.home / "cadre_results" / self.name
        self.published = self.storage / self.name

    def start(self, command, **variables):
        own = {"CADRE_NETWORK_FILE_SYSTEM": str(self.storage), "HOME": str(self.home),
               "CADRE_TEST_HURRY": str(self.hurry)}
        return super().start(command, **own | variables)

    def impatient(self):
        """Returns the file of a cluster whose nodes do not stay for a further controller."""
        file = self.cluster.directory / "impatient.json"
        file.write_text(json.dumps({"engine": "slurm", "nodes_stay": 0}), encoding="utf-8")
        return str(file)

    def kill(self, process):
        """Kills the controller, and waits until its workers have ended, which nobody waits for who has no nodes."""
        self.cluster.kill(self.program, node="ctl")
        process.wait(DEADLINE_S)
        rig.wait_until(lambda: not self.cluster.processes(self.program), "all agents have ended", DEADLINE_S)

    def stored_checkpoints(self):
        with sqlite3.connect(f"file:{self.working / 'experiment.db'}?mode=ro", uri=True) as store:
            return {directory: json.loads(manifest) for directory, manifest in store.execute("select directory, manifest from checkpoints")}

    def expect_whole(self):
        """Each checkpoint lies once, where it is published, and nothing else is there."""
        places = set()
        for directory, manifest in self.stored_checkpoints().items():
            self.assertEqual(os.listdir(self.working / directory), [".remote.json"], directory)
            listed = json.loads((self.working / directory / ".remote.json").read_text())
            self.assertEqual(listed["files"], manifest)
            place = listed["place"] or directory
            places.add(place)
            for name, file in manifest.items():
                self.assertEqual((self.published / place / name).stat().st_size, file["size"])
                self.assertEqual(len(file["xxh3"]), 16)
        found = {str(path.parent.relative_to(self.published)) for path in self.published.rglob(".metadata.json")}
        self.assertEqual(found, places)
        self.assertFalse(list(self.published.rglob(".reporting*")))


class PopulationTest(SharedPlace):
    def wait_begun(self, rows=1):
        rig.wait_until(lambda: sum(map(len, self.rows(self.working.parent).values())) >= rows, "the experiment has begun", DEADLINE_S)

    def here(self, *arguments):
        """Returns what one machine comes to, on its own disk."""
        return super().results(super().start(self.population(*arguments, storage=self.cluster.directory / "here"),
                                             CADRE_TEST_HURRY=""))

    def results(self, process):
        self.hurry.touch()
        return super().results(process)

    def expect_same(self, found, here):
        self.assertEqual([trial["value"] for trial in found], [trial["value"] for trial in here])
        self.assertEqual(self.rows(self.working.parent), self.rows(self.cluster.directory / "here"))

    def expect_output(self, nodes):
        """What trials print is found in the working directory and where it is published."""
        for trial in self.working.glob("0*"):
            printed = (trial / "stdout").read_text()
            self.assertIn("begun", printed)
            self.assertEqual((self.published / trial.name / "stdout").read_text(), printed)
            self.assertEqual((trial / "stdout").is_symlink(), nodes)
        for place in (self.working, self.published):
            shown = self.cluster.run("ctl", [BIN / "cadre", "logs", place], env={"CADRE_NETWORK_FILE_SYSTEM": str(self.storage)}).stdout
            self.assertGreaterEqual(shown.count("begun"), 4)

    def test_trials_write_their_checkpoints_to_where_they_stay(self):
        here = self.here(4, 12, 1)
        found = self.results(self.start(self.allocated(self.population(4, 12, 1)), CADRE_CLUSTER="slurm"))
        self.expect_same(found, here)
        self.assertLessEqual({trial["host"] for trial in found}, {"n1", "n2"})
        self.expect_whole()
        self.expect_output(nodes=True)
        shutil.rmtree(self.home)  # another machine continues it, from what is published
        self.home.mkdir()
        self.assertEqual(self.results(self.start(self.population())), found)

    def test_a_killed_controller_is_continued_with_and_without_nodes(self):
        here = self.here(4, 40, 1)
        command = self.population(4, 40, 50)
        for rows, variables in ((20, {"CADRE_CLUSTER": "slurm"}), (50, {"CADRE_CLUSTER": "slurm"}), (80, {}),
                                (110, {"CADRE_CLUSTER": "slurm"})):
            process = self.start(command, **variables)
            self.wait_begun(rows)
            self.cluster.kill("population_tool", node="ctl")
            process.wait(DEADLINE_S)
        self.expect_same(self.results(self.start(command, CADRE_CLUSTER="slurm")), here)
        self.expect_whole()
        self.expect_output(nodes=True)

    def test_one_machine_continues_what_nodes_have_begun(self):
        here = self.here(4, 40, 1)
        process = self.start(self.population(4, 40, 50), CADRE_CLUSTER=self.impatient())
        self.wait_begun(40)
        self.kill(process)
        self.expect_same(self.results(self.start(self.population(4, 40, 50))), here)
        self.assertFalse(list(self.published.glob("*/.reporting*")))
        self.expect_output(nodes=False)

    def test_another_machine_continues_what_a_killed_one_has_begun(self):
        process = self.start(self.population(4, 60, 100), CADRE_CLUSTER=self.impatient(), CADRE_LEASE_PERIOD="0.5")
        self.wait_begun(60)  # more than 5 s, so something is published
        rig.wait_until(lambda: json.loads((self.published / "published.json").read_text())["published"]["segments"], "a segment")
        self.kill(process)
        self.home.rename(self.home.with_name(self.home.name + "_lost"))
        self.addCleanup(shutil.rmtree, self.home.with_name(self.home.name + "_lost"), ignore_errors=True)
        self.home.mkdir()
        found = self.results(self.start(self.population(4, 60, 100), CADRE_CLUSTER="slurm", CADRE_LEASE_PERIOD="0.5"))
        self.assertEqual([trial["done"] for trial in found], [60] * 4)
        self.expect_whole()

    def test_a_killed_agent_leaves_nothing(self):
        process = self.start(self.allocated(self.population(8, 40, 50)), CADRE_CLUSTER="slurm")
        self.wait_begun(40)
        self.cluster.kill("population_tool", node="n2")
        found = self.results(process)
        self.assertEqual([trial["done"] for trial in found], [40] * 8)
        self.expect_whole()


class TrainingTest(SharedPlace):
    """Ranks report checkpoints in all ways, also from disks of their nodes, and each is validated."""

    name = "training"
    program = "checkpoints_tool"

    def command(self, steps, milliseconds, storage=None):
        return [BIN / "checkpoints_tool", storage or self.storage, steps, milliseconds, self.home / "own"]

    def on_nodes(self, steps, milliseconds):
        return self.start(self.command(steps, milliseconds), CADRE_CLUSTER=self.impatient())

    def output(self, process):
        self.hurry.touch()
        output, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        return output

    def here(self, steps):
        output = self.output(super().start(self.command(steps, 1, storage=self.cluster.directory / "here")))
        self.assertEqual(output.count("validated"), 12, output)
        return output

    def wait_begun(self, reports):
        file = self.working / "result.json"
        rig.wait_until(lambda: file.exists() and file.read_text().count("\n") >= reports, f"{reports} reports", DEADLINE_S)

    def test_all_ways_to_report_a_checkpoint(self):
        self.assertEqual(self.output(self.on_nodes(25, 1)), self.here(25))
        self.expect_whole()
        for rank in range(4):
            self.assertIn("begun", (self.working / f"rank_{rank}" / "stdout").read_text())
            self.assertFalse((self.working / f"rank_{rank}" / "stderr").read_text())

    def test_files_go_over_connections_where_nodes_see_neither(self):
        process = super().start(self.allocated([*self.command(3, 1, storage=self.home / "share"), "log"]), CADRE_CLUSTER="slurm",
                                CADRE_NETWORK_FILE_SYSTEM=str(self.home / "share"), HOME=str(self.home))
        output = self.output(process)
        self.assertRegex(output, f"Files go over the connections of the nodes' agents: {self.working} is not seen by all nodes: n[12] \\(No such file")
        self.assertRegex(output, f"; nor is {self.home}/share/training, where it is published: n[12] \\(No such file")
        self.assertEqual([line.split()[1] for line in output.splitlines()[-3:]], ["validated"] * 3)

    def test_what_ranks_print_is_shown(self):
        output = self.output(self.start([*self.command(3, 1), "log"], CADRE_CLUSTER=self.impatient()))
        for rank in range(4):
            self.assertIn(f"(rank {rank}) begun", output)

    def test_killed_controllers_and_agents_lose_nothing(self):
        for reports in (7, 14, 21):
            process = self.on_nodes(40, 50)
            self.wait_begun(reports)
            self.kill(process)
        process = self.on_nodes(40, 50)
        self.wait_begun(28)
        self.cluster.kill(self.program, node="n1")
        self.assertEqual(self.output(process), self.here(40))
        self.expect_whole()

    def test_it_goes_on_where_another_one_ended(self):
        process = self.start(self.command(40, 50))
        self.wait_begun(7)
        self.kill(process)
        process = self.on_nodes(40, 50)
        self.wait_begun(14)
        self.kill(process)
        self.assertEqual(self.output(self.start(self.command(40, 50))), self.here(40))


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
