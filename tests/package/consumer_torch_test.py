"""An external project with libtorch trains a model and continues it from its checkpoint, with the installed package."""

import pathlib
import unittest

from installation import TORCH_ROOT, WITH_WARNINGS, InstallationTest, readme_lines, run

LINES = readme_lines("cadre::torch")
TORCH_CONFIG = f"{TORCH_ROOT}/share/cmake/Torch"


class ConsumerTorchTest(InstallationTest):
    components = ("tune", "torch")

    def test_five_lines_and_one_file_train_a_model_of_libtorch(self):
        self.assertEqual(len(LINES.splitlines()), 5)
        self.check_models(self.build(self.project("stranger", LINES, "consumer_torch"), f"-DCADRE_TORCH_ROOT={TORCH_ROOT}",
                                     *WITH_WARNINGS))

    def test_the_torch_that_the_project_has_found_is_used(self):
        lines = LINES.replace("find_package(cadre", "find_package(Torch REQUIRED)\nfind_package(cadre")
        lines += "get_target_property(found cadre::libtorch_cpu_so IMPORTED_LOCATION)\nmessage(STATUS \"found=${found}.\")\n"
        alone = self.project("alone", "cmake_minimum_required(VERSION 3.25)\nproject(alone LANGUAGES CXX)\n"
                             "find_package(Torch REQUIRED)\n", "consumer_torch")
        done = self.configure(alone, f"-DTorch_DIR={TORCH_CONFIG}")
        if done.returncode != 0 and "CUDA cannot be found" in done.stderr:
            self.skipTest("find_package(Torch) asks for the CUDA toolkit, which is not here, because torch is a CUDA build")
        project = self.project("found", lines, "consumer_torch")
        done = self.configure(project, f"-DTorch_DIR={TORCH_CONFIG}", "-DCADRE_VENV=/nowhere", VIRTUAL_ENV="")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"found={TORCH_ROOT}/lib/libtorch_cpu.so.", done.stdout)

        other = self.directory / "another_torch"
        other.mkdir()
        done = self.configure(project, f"-DTorch_DIR={TORCH_CONFIG}", f"-DCADRE_TORCH_ROOT={other}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("The project uses two libtorches", " ".join(done.stderr.split()))

    def test_another_version_that_the_project_has_found_is_refused(self):
        config = self.directory / "found_older" / "share" / "cmake" / "Torch"
        config.mkdir(parents=True)
        root = config.parents[2]
        (root / "lib").mkdir()
        (root / "lib" / "libtorch_cpu.so").touch()
        (root / "build-version").write_text("2.5.1+cpu\n")
        (config / "TorchConfig.cmake").write_text(f'set(TORCH_FOUND TRUE)\nset(TORCH_INSTALL_PREFIX "{root}")\n')
        lines = LINES.replace("find_package(cadre", "find_package(Torch REQUIRED)\nfind_package(cadre")
        done = self.configure(self.project("older_found", lines, "consumer_torch"), f"-DTorch_DIR={config}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is torch 2.5.1", " ".join(done.stderr.split()))

    def check_models(self, train):
        """Runs the program of consumer_torch/ and checks the lines that it has fitted."""
        trials = run(train, train.parent / "results").splitlines()
        self.assertEqual(len(trials), 2)
        for line in trials:
            words = line.split()
            trial = dict(zip(words[::2], words[1::2]))
            # Every trial failed once half-way and continued from there; its line is y = 2x + 1.
            self.assertEqual((trial["attempts"], trial["iterations"], trial["step"]), ("2", "100", "100"), line)
            self.assertAlmostEqual(float(trial["weight"]), 2, delta=0.05)
            self.assertAlmostEqual(float(trial["bias"]), 1, delta=0.05)

    def test_torch_is_found_in_the_virtual_environment_that_is_named_or_active(self):
        site_packages = self.directory / "venv" / "lib" / "python3.11" / "site-packages"
        site_packages.mkdir(parents=True)
        (site_packages / "torch").symlink_to(TORCH_ROOT)
        (site_packages / "nvidia").symlink_to(pathlib.Path(TORCH_ROOT).parent / "nvidia")  # beside a CUDA build
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
