"""`cadre tune --extend`: an experiment of a program goes on with other options."""

import unittest

from tuning import TuneTest, SPACE

# Each step halves the value; the checkpoint has it.
PROGRAM = """
    value=64
    if [ -n "$CADRE_CHECKPOINT_IN" ]; then value=$(cat "$CADRE_CHECKPOINT_IN/value"); fi
    while true; do
      value=$((value * 2))
      answer=$(cadre-report --offer loss=$value lr="$1") || exit 0
      if [ "$answer" = checkpoint ]; then
        echo $value > "$CADRE_CHECKPOINT_OUT/value"
        cadre-report --saved > /dev/null || exit 0
      fi
    done
"""


class ExtendTest(TuneTest):
    def begin(self):
        self.write("tune.toml", "num_samples = 2\nstop = { training_iteration = 3, loss = { at_least = 1e6 } }" + SPACE)
        self.tune("tune.toml", "--", *self.shell(PROGRAM), "{lr}")

    def test_more_samples_and_a_longer_stop(self):
        self.begin()
        output = self.tune("--extend", "test", "--set", "num_samples=3", "--set", "stop.training_iteration=5")
        self.assertIn("2 trials that had ended go on", output)
        for trial in range(3):
            self.assertEqual([row["loss"] for row in self.rows(trial)], [128, 256, 512, 1024, 2048])
        # The other criterion is still there.
        self.tune("--extend", "test", "--set", "stop.training_iteration=50")
        self.assertEqual(self.rows()[-1]["loss"], 1 << 20)

    def test_a_longer_max_t_of_the_scheduler(self):
        scheduler = 'scheduler = {{ type = "ASHAScheduler", max_t = {}, grace_period = 2 }}\n'
        self.write("tune.toml", "num_samples = 1\n" + scheduler.format(2) + SPACE)
        self.tune("tune.toml", "--", *self.shell(PROGRAM), "{lr}")
        self.assertEqual(len(self.rows()), 2)
        self.assertIn("1 trial that had ended goes on", self.tune("--extend", "test", "--set", "scheduler.max_t=4"))
        self.assertEqual([row["loss"] for row in self.rows()], [128, 256, 512, 1024])
        self.tune("--extend", "test", "--set", "scheduler.grace_period=3")
        self.assertEqual(len(self.rows()), 4)  # max_t is still 4
        self.assertIn("grace_period: it is 5, and max_t is 4",
                      self.tune("--extend", "test", "--set", "scheduler.grace_period=5", code=1))
        self.write("more.toml", scheduler.format(5))
        self.tune("more.toml", "--extend", "test")
        self.assertEqual(len(self.rows()), 5)

    def test_a_file_with_a_narrower_space(self):
        self.begin()
        self.write("more.toml", """
            num_samples = 5
            [space]
            lr = "uniform(0.25, 0.26)"
        """)
        self.tune("more.toml", "--extend", "test")
        rates = [float(self.rows(trial)[0]["lr"]) for trial in range(5)]
        self.assertTrue(all(0.25 <= rate <= 0.26 for rate in rates[2:]), rates)
        self.assertEqual(len(set(rates)), 5)
        self.assertEqual(len(self.rows()), 3)

    def test_faults_are_named_and_change_nothing(self):
        self.begin()
        before = {path: path.read_bytes() for path in self.experiment.rglob("*.json")}
        for arguments, message in [
                (["--set", "metric=accuracy"], "--set metric=accuracy: metric stays as it is"),
                (["--set", "num_samples=1"], "num_samples is 1, and the experiment has 2 samples already"),
                (["--set", "num_sample=9"], "did you mean num_samples?"),
                (["--set", "space.lr=uniform(2)"], "--set space.lr=uniform(2)"),
                (["--set", "stop.training_iteration=soon"], "stop"),
                (["--set", "scheduler=NoSuch"], "NoSuch"),
                ([], "say what is new, as in --extend EXPERIMENT --set num_samples=40"),
                (["missing.toml"], "there is no file missing.toml"),
                (["--check", "--set", "num_samples=9"], "--check is for a new experiment"),
                (["--restore", "test", "--set", "num_samples=9"], "give one of them")]:
            with self.subTest(arguments=arguments):
                self.assertIn(message, self.tune("--extend", "test", *arguments, code=1))
        self.assertIn("--extend EXPERIMENT --set KEY=VALUE", self.tune("--restore", "test", "--set", "num_samples=9", code=1))
        self.assertIn("there is no experiment", self.tune("--extend", "nothing", "--set", "num_samples=9", code=1))
        self.assertEqual({path: path.read_bytes() for path in self.experiment.rglob("*.json")}, before)


if __name__ == "__main__":
    unittest.main()
