"""`cadre tune` on the nodes of a real Slurm: a shell script under Population Based Training."""

import contextlib
import json
import os
import pathlib
import shutil
import unittest

import nodes_test
import restart_test
import rig

BIN = pathlib.Path(os.environ["CADRE_BIN"])
SCRIPT = rig.SOURCE / "examples" / "programs" / "sgd.sh"

# The scheduler is synchronous, so the results do not depend on where trials run. A node has room for two trials.
FILE = """
metric = "loss"
mode = "min"
name = "sgd"
storage_path = "."
num_samples = 4
resources = { cpus = 2 }
[space]
lr = "loguniform(1e-5, 1)"
[scheduler]
type = "PopulationBasedTraining"
time_attr = "training_iteration"
perturbation_interval = 5
synch = true
hyperparam_mutations = { lr = "loguniform(1e-5, 1)" }
"""


class TuneTest(nodes_test.NodesTest):
    def setUp(self):
        self.cluster = self.enterContext(rig.Rig(nodes=2, slurmd_timeout_s=60, private=["/mnt"]))
        self.directory = self.cluster.directory
        (self.directory / "tune.toml").write_text(FILE, encoding="utf-8")
        cluster = {"engine": "slurm", "groups": [{"name": "trial", "nodes": 2}]}
        (self.directory / "two.json").write_text(json.dumps(cluster), encoding="utf-8")
        self.hold = self.directory / "hold"
        self.script(self.directory / "sgd.sh")

    def script(self, path):
        """Writes a variant of the example, which also prints its host, sleeps in each step, and does not begin its last
        step while the file `hold` exists."""
        text = SCRIPT.read_text(encoding="utf-8")
        hold = f'  while [ "$step" -eq 40 ] && [ -e {self.hold} ]; do sleep 0.05; done\n'
        for words, more in ("set -eu\n", "hostname\n"), ("  step=$((step + 1))\n", f"  sleep 0.05\n{hold}"):
            self.assertIn(words, text)
            text = text.replace(words, words + more)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def tune(self, *arguments):
        command = ["env", f"--chdir={self.directory}", str(BIN / "cadre"), "tune", *map(str, arguments)]
        return self.start(command, PATH=f"{BIN}:{rig.PATH}")

    def finish(self, process, code=0):
        output, errors = process.communicate(timeout=nodes_test.DEADLINE_S)
        self.assertEqual(process.returncode, code, errors + output)
        return output + errors

    def outcome(self, experiment):
        """Returns configs, results and lineage, without times and places."""
        trials = json.loads(self.cluster.run("ctl", [BIN / "cadre", "show", experiment, "--json"]).stdout)["trials"]
        rows = self.rows(experiment)
        return [(trial["config"], trial["status"], [exploit["donor"] for exploit in trial["exploits"]],
                 rows[trial["trial_id"]]) for trial in trials]

    def rows(self, experiment):
        return {file.parent.name[:5]: [json.loads(line)["loss"] for line in file.read_text().splitlines()]
                for file in experiment.glob("*/result.json")}

    def hosts(self, experiment):
        return {line for file in experiment.glob("*/stdout") for line in file.read_text().split()}

    def agents(self):
        """Returns the ids of agents, without their fork servers and workers, which have the same environment."""
        def is_agent(pid):
            with contextlib.suppress(OSError):
                return b"\0CADRE_AGENT=" in b"\0" + pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            return False
        found = [pid for pid in self.cluster.processes("cadre") if is_agent(pid)]
        return [pid for pid in found if restart_test.parent(pid) not in found]

    def test_a_killed_experiment_goes_on_on_the_same_nodes_and_comes_to_what_one_machine_comes_to(self):
        self.finish(self.tune("tune.toml", "--set", "name=here", "--cpus=8", "--", "./sgd.sh", "{lr}"))
        here = self.outcome(self.directory / "here")
        self.assertEqual(self.hosts(self.directory / "here"), {"ctl"})

        experiment = self.directory / "sgd"
        self.hold.touch()
        process = self.tune("tune.toml", "--cluster", "two.json", "--", "./sgd.sh", "{lr}")
        rig.wait_until(lambda: sum(map(len, self.rows(experiment).values())) >= 40 and len(self.agents()) == 2,
                       "it has come to its middle, on two nodes", nodes_test.DEADLINE_S)
        agents = self.agents()
        self.cluster.kill("cadre", node="ctl")
        process.wait(nodes_test.DEADLINE_S)
        self.assertLess(sum(map(len, self.rows(experiment).values())), 160)

        second = self.tune("--restore", "sgd", "--cluster", "two.json")
        rig.wait_until(lambda: "Continuing experiment" in second.stdout.readline(), "it goes on", nodes_test.DEADLINE_S)
        self.assertEqual(self.agents(), agents)
        self.hold.unlink()
        self.finish(second)
        self.assertEqual(self.outcome(experiment), here)
        self.assertTrue(any(exploits for _, _, exploits, _ in here))
        self.assertEqual(self.hosts(experiment), {"n1", "n2"})
        self.expect_nothing_left()

    def test_a_script_that_nodes_do_not_see_is_named(self):
        folder = pathlib.Path("/mnt") / self.directory.name
        folder.mkdir()
        self.addCleanup(shutil.rmtree, folder)
        script = self.script(folder / "sgd.sh")
        errors = self.finish(self.tune("tune.toml", "--cluster", "two.json", "--", script, "{lr}"), code=1)
        self.assertRegex(errors, f"cannot start {script} in {self.directory}: No such file or directory. That is "
                                 "on n[12]: a program and its directory must be there under the same path on each node")
        self.expect_nothing_left()

    def expect_nothing_left(self):
        rig.wait_until(lambda: not self.agents(), "all agents have ended", nodes_test.DEADLINE_S)
        rig.wait_until(lambda: not self.cluster.run("ctl", ["squeue", "--noheader"]).stdout.strip(), "no job is left",
                       nodes_test.DEADLINE_S)


if __name__ == "__main__":
    rig.skip_unless_there()
    unittest.main()
