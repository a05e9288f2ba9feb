"""A stranger's project with libtorch trains a model, and continues it from its checkpoint, with the installed package."""

import unittest

from installation import TORCH_ROOT, WITH_WARNINGS, InstallationTest, readme_lines, run

LINES = readme_lines("cadre::torch")


class ConsumerTorchTest(InstallationTest):
    components = ("tune", "torch")

    def test_five_lines_and_one_file_train_a_model_of_libtorch(self):
        self.assertEqual(len(LINES.splitlines()), 5)
        train = self.build(self.project("stranger", LINES, "consumer_torch"), f"-DCADRE_TORCH_ROOT={TORCH_ROOT}",
                           *WITH_WARNINGS)
        trials = run(train, self.directory / "results").splitlines()
        self.assertEqual(len(trials), 2)
        for line in trials:
            words = line.split()
            trial = dict(zip(words[::2], words[1::2]))
            # Every trial failed half-way once and went on from there, and its line is y = 2x + 1.
            self.assertEqual((trial["attempts"], trial["iterations"], trial["step"]), ("2", "100", "100"), line)
            self.assertAlmostEqual(float(trial["weight"]), 2, delta=0.05)
            self.assertAlmostEqual(float(trial["bias"]), 1, delta=0.05)

    def test_torch_is_found_in_the_virtual_environment_that_is_named_or_active(self):
        site_packages = self.directory / "venv" / "lib" / "python3.11" / "site-packages"
        site_packages.mkdir(parents=True)
        (site_packages / "torch").symlink_to(TORCH_ROOT)
        venv = str(self.directory / "venv")
        for name, definitions, environment in ("named", [f"-DCADRE_VENV={venv}"], {"VIRTUAL_ENV": ""}), (
                "active", [], {"VIRTUAL_ENV": venv}):
            with self.subTest(name):
                done = self.configure(self.project(name, LINES, "consumer_torch"), *definitions, **environment)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_without_torch_the_message_says_how_to_name_it(self):
        done = self.configure(self.project("lost", LINES, "consumer_torch"), VIRTUAL_ENV="")
        self.assertNotEqual(done.returncode, 0)
        message = " ".join(done.stderr.split())
        self.assertIn("-DCADRE_VENV=", message)
        self.assertIn("-DCADRE_TORCH_ROOT=", message)

    def test_another_version_of_torch_is_refused(self):
        other = self.directory / "torch"
        (other / "lib").mkdir(parents=True)
        (other / "lib" / "libtorch_cpu.so").touch()
        (other / "build-version").write_text("2.5.1+cpu\n")
        done = self.configure(self.project("older", LINES, "consumer_torch"), f"-DCADRE_TORCH_ROOT={other}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is torch 2.5.1", " ".join(done.stderr.split()))


if __name__ == "__main__":
    unittest.main()
