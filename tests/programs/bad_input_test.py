"""`cadre tune`: everything that is refused, before anything has run."""

import unittest

from tuning import TuneTest

GOOD = {
    "metric": '"loss"',
    "mode": '"min"',
    "name": '"test"',
    "storage_path": '"."',
    "space": '{ lr = "uniform(0, 1)", act = "relu" }',
}


class BadInputTest(TuneTest):
    def refused(self, message, *words, command=("/bin/echo", "{lr}"), arguments=(), **entries):
        text = "\n".join(f"{key} = {value}" for key, value in (GOOD | entries).items())
        (self.folder / "tune.toml").write_text(text)
        errors = self.tune("tune.toml", *arguments, "--", *command, code=1)
        self.assertIn(message, errors)
        self.assertFalse(self.experiment.exists())

    def test_entries_of_the_file(self):
        for message, entries in [
            ("tune.toml, line 6: metrik: there is no such key; did you mean metric?", {"metrik": "1"}),
            ("tune.toml, line 6: num_samples: the value is \"six\", not an integer", {"num_samples": '"six"'}),
            ("tune.toml, line 2: mode: \"least\" is none of min, max", {"mode": '"least"'}),
            ("tune.toml, line 5: space: \"lr\": there is no domain unifrom", {"space": '{ lr = "unifrom(0, 1)" }'}),
            ("tune.toml, line 5: space: \"lr\": uniform takes 2 arguments", {"space": '{ lr = "uniform(1)" }'}),
            ("tune.toml, line 5: space: the arguments of \"lr\"", {"space": '{ lr = "choice([1)" }'}),
            ("tune.toml, line 6: Error while parsing", {"num_samples": "= 3"}),
            ("tune.toml, line 6: scheduler/max_tt", {"scheduler": '{ type = "ASHAScheduler", max_tt = 3 }'}),
            ("tune.toml, line 6: scheduler: it has no \"type\"", {"scheduler": '{ max_t = 3 }'}),
            ("this program has none of that name; it has: ASHAScheduler", {"scheduler": '"Nobody"'}),
            ("tune.toml, line 6: stop: loss: write a number", {"stop": '{ loss = "a" }'}),
            ("num_samples: it is 0", {"num_samples": "0"}),
            ("tune.toml, line 6: stop_patience: the value is \"a\"", {"stop_patience": '"a"'}),
            ("stop_patience: it must be a time of 0 or more", {"stop_patience": "-1"}),
            ("checkpoint_signal: \"SIGNOTHING\" is no signal", {"checkpoint_signal": '"SIGNOTHING"'}),
        ]:
            with self.subTest(message=message):
                self.refused(message, **entries)

    def test_programs_and_placeholders(self):
        self.write("script.py", "")
        for message, command, entries in [
            ("there is no program " + str(self.folder / "nothing"), ["./nothing"], {}),
            ("there is no program nothing_like_this in PATH", ["nothing_like_this"], {}),
            ("there is no program script.py in PATH; the one in this directory is ./script.py", ["script.py"], {}),
            ("script.py is not executable: make it so (chmod +x), or begin with its interpreter", ["./script.py"], {}),
            ("has the placeholder {rate}, and the search space has no such key: it has lr, act", ["/bin/echo", "{rate}"], {}),
            ("has the placeholder {lr/x}", ["/bin/echo", "{lr/x}"], {}),
            ("environment \"A\": \"{b}\" has the placeholder {b}", ["/bin/echo"], {"environment": '{ A = "{b}" }'}),
            ("environment: \"A=\" cannot be the name of a variable", ["/bin/echo"], {"environment": '{ "A=" = "1" }'}),
        ]:
            with self.subTest(message=message):
                self.refused(message, command=command, **entries)

    def test_ways_to_report(self):
        for message, entries in [
            ("metric_patterns \"loss\": \"([a\" is no regular expression", {"metric_patterns": '{ loss = "([a" }'}),
            ("metric_patterns: none is for \"loss\", the experiment's metric", {"metric_patterns": '{ acc = "a" }'}),
            ("log.txt is none of: a table (.csv)", {"metrics_file": '"{CADRE_TRIAL_DIR}/log.txt"'}),
            ("all trials would write log.csv: give each a file of its own, as {CADRE_TRIAL_DIR}/log.csv",
             {"metrics_file": '"log.csv"'}),
        ]:
            with self.subTest(message=message):
                self.refused(message, **entries)

    def test_the_command_line(self):
        for message, arguments in [
            ("--set num_samples: write key=value", ["--set", "num_samples"]),
            ("--set #lr=1: #lr is no key: write key=value", ["--set", "#lr=1"]),
            ("--set num_samples=many: num_samples: the value is \"many\", not an integer", ["--set", "num_samples=many"]),
            ("--check is for a new experiment", ["--check", "--restore", "x"]),
            ("name it, as in cadre tune --restore EXPERIMENT --resume-errored", ["--resume-errored"]),
            ("name it, as in cadre tune --restore EXPERIMENT --resume-errored", ["--restart-errored"]),
        ]:
            with self.subTest(message=message):
                (self.folder / "tune.toml").write_text("\n".join(f"{key} = {value}" for key, value in GOOD.items()))
                given = arguments if "--restore" in arguments else ["tune.toml", *arguments, "--", "/bin/echo"]
                self.assertIn(message, self.tune(*given, code=1))
        self.assertIn("there is no file nothing.toml", self.tune("nothing.toml", "--", "/bin/echo", code=1))
        self.assertIn("name a file", self.tune(code=1))
        self.assertIn("there is no program: write it after --", self.tune("tune.toml", code=1))

    def test_an_experiment_that_exists(self):
        (self.folder / "tune.toml").write_text('name = "test"\nstorage_path = "."')
        self.tune("tune.toml", "--", "true")
        self.assertIn("exists already. To continue it: cadre tune --restore ", self.tune("tune.toml", "--", "true", code=1))
        (self.folder / "tune.toml").write_text('name = "test"\nstorage_path = "."\nif_exists = "restore"')
        self.tune("tune.toml", "--", "true")
        self.assertEqual(len(self.trials()), 1)


if __name__ == "__main__":
    unittest.main()
