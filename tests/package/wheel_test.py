"""The Python wheel: installed alone, in an environment without torch and numpy, it tunes, shows experiments, and is what
programs in C++ are built against."""

import json
import os
import pathlib
import subprocess
import sys
import unittest
import venv

from installation import ARROW_ROOT, BUILD, COMPILERS, SOURCE, VERSION, InstallationTest, readme_lines, run

LINES = readme_lines("cadre::tune")
LARGEST = 8 << 20  # two thirds of it are libraries: SQLite, Cap'n Proto with kj, NLopt, libjpeg, libpng, and Cadre

PROGRAM = """
import cadre as ray
from cadre import tune

def train(config):
    for step in range(3):
        tune.report({"score": config["x"] * step})

results = tune.Tuner(train, param_space={"x": tune.grid_search([1, 2])},
                     run_config=tune.RunConfig(name="tuned", storage_path=".", verbose=0)).fit()
print(results.get_best_result("score", "max").config["x"])
"""


class WheelTest(InstallationTest):
    @classmethod
    def install(cls, directory):
        """Builds the wheel and installs it into a new environment; returns where a project finds it."""
        folder = BUILD / "wheels"
        run(SOURCE / "tools" / "make_wheels.sh", sys.executable, timeout=1500,
            env=os.environ | {"CXX": COMPILERS[0], "CADRE_WHEELS": str(folder)})
        tag = f"cp{sys.version_info[0]}{sys.version_info[1]}" if sys.version_info < (3, 12) else "cp312-abi3"
        cls.wheel = next(folder.glob(f"cadre_tune-{VERSION}-{tag}-*.whl"))
        cls.environment = directory / "environment"
        venv.create(cls.environment, with_pip=True)
        run(cls.program("pip"), "install", "--quiet", "--disable-pip-version-check", cls.wheel)
        return pathlib.Path(run(cls.program("cadre-config"), "--prefix").strip())

    @classmethod
    def program(cls, name):
        return cls.environment / "bin" / name

    def test_it_is_small_and_for_many_systems(self):
        self.assertIn("manylinux_2_35_x86_64", self.wheel.name)
        self.assertLessEqual(self.wheel.stat().st_size, LARGEST)

    def test_it_tunes_without_torch_and_numpy_and_its_program_shows_that(self):
        program = self.directory / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        self.assertEqual(run(self.program("python"), program, cwd=self.directory), "2\n")
        self.assertEqual(run(self.program("cadre"), "--version"), f"cadre {VERSION}\n")
        self.assertIn("TERMINATED", run(self.program("cadre"), "show", self.directory / "tuned"))
        done = subprocess.run([self.program("cadre-config"), "--nothing"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--prefix", done.stderr)

    def test_a_shell_script_is_tuned(self):
        script = self.directory / "climb.sh"
        script.write_text('for step in 1 2 3; do cadre-report height=$(($1 * step)) || exit 0; done\n', encoding="utf-8")
        file = self.directory / "climb.toml"
        file.write_text('metric = "height"\nmode = "max"\nname = "climb"\nstorage_path = "."\n[space]\nx = "grid_search([1, 2])"\n',
                        encoding="utf-8")
        path = f"{self.program('cadre').parent}:{os.environ['PATH']}"
        run(self.program("cadre"), "tune", file, "--", "sh", script, "{x}", cwd=self.directory, env=os.environ | {"PATH": path})
        best = json.loads(run(self.program("cadre"), "best", self.directory / "climb", "--json"))
        self.assertEqual((best["value"], best["trial"]["results"]), (6, 3))

    def test_datasets_are_there_where_pyarrow_of_the_right_version_is(self):
        without = subprocess.run([self.program("python"), "-c", "from cadre import data"], capture_output=True, text=True,
                                 check=False)
        self.assertIn('pip install "cadre-tune[data]"', without.stderr)
        packages = pathlib.Path(ARROW_ROOT).parent if ARROW_ROOT else None
        if packages is not None:
            said = run(self.program("python"), "-c", "from cadre import data; print(data.range(5).sum('id'))",
                       env=os.environ | {"PYTHONPATH": str(packages)})
            self.assertEqual(said, "10\n")

    def test_programs_in_cpp_are_built_against_it(self):
        for compiler in COMPILERS:
            with self.subTest(compiler):
                project = self.project(f"stranger-{os.path.basename(compiler)}", LINES, "consumer")
                # Nothing else of the machine is needed: no headers of libraries that are Debian packages.
                train = self.build(project, "-DCMAKE_IGNORE_PATH=/usr/include", compiler=compiler)
                self.check_climb(train)

    def test_it_has_the_pages_and_examples(self):
        examples = pathlib.Path(run(self.program("cadre-config"), "--examples").strip())
        self.assertTrue((examples / "pbt_mnist" / "pbt_mnist.cc").is_file())
        self.assertTrue((examples.parent / "docs" / "tutorials" / "first.md").is_file())


if __name__ == "__main__":
    unittest.main()
