"""The Python wheel: installed alone, in an environment without torch and numpy, it tunes, shows experiments, and is what
programs in C++ are built against."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import venv
import zipfile

from installation import (ARROW_ROOT, BUILD, COMPILERS, SOURCE, VERSION, InstallationTest, object_server, readme_lines,
                          run)

LINES = readme_lines("cadre::tune")
LINES_WITH_STORAGE = LINES.replace("REQUIRED)", "REQUIRED COMPONENTS storage)").replace("cadre::tune)", "cadre::storage)")
# Each library beside those of the package, by its file's name, and the file of its licence in licenses/.
BUNDLED = {"libcapnp": "capnproto", "libfmt": "fmt", "libjpeg": "libjpeg-turbo", "libkj": "capnproto", "libkj-async": "capnproto",
           "libkj-http": "capnproto", "libnlopt": "nlopt", "libpng16": "libpng", "libsqlite3": "sqlite", "libxxhash": "xxhash"}
# What is compiled into those of the package.
COMPILED = {"cli11", "curl", "eigen", "nanobind", "rapidjson", "tomlplusplus", "uplot"}
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


IN_S3 = """
import pathlib, sys
from cadre import tune

def train(config):
    for step in range(1, 4):
        tune.report({"score": config["x"] * step},
                    checkpoint=lambda directory: (pathlib.Path(directory) / "step").write_text(str(step)))

tune.Tuner(train, param_space={"x": tune.grid_search([1, 2])}, tune_config=tune.TuneConfig(metric="score", mode="max"),
           run_config=tune.RunConfig(name="tuned", storage_path=sys.argv[1], verbose=0)).fit()
"""
CONTINUES = """
import pathlib, sys
from cadre import tune

best = tune.Tuner.restore(sys.argv[1] + "/tuned", extend=tune.Extension(num_samples=2)).fit().get_best_result()
with best.checkpoint.as_directory() as directory:
    print(best.metrics["score"], (pathlib.Path(directory) / "step").read_text())
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

    def environment_with_pyarrow(self):
        """Makes an environment with the wheel and pyarrow; returns the folder of its programs."""
        environment = self.directory / "with_pyarrow"
        if not environment.exists():
            venv.create(environment)
            run(self.program("pip"), "--python", environment / "bin" / "python", "install", "--quiet",
                "--disable-pip-version-check", self.wheel)
            packages = next(environment.glob("lib/python3*/site-packages"))
            for part in pathlib.Path(ARROW_ROOT).parent.glob("pyarrow*"):
                (packages / part.name).symlink_to(part)
        return environment / "bin"

    @unittest.skipUnless(ARROW_ROOT, "no pyarrow")
    def test_an_experiment_in_s3_goes_on_on_another_machine(self):
        programs = self.environment_with_pyarrow()
        (self.directory / "in_s3.py").write_text(IN_S3, encoding="utf-8")
        (self.directory / "continues.py").write_text(CONTINUES, encoding="utf-8")
        with object_server() as environment:
            environment.pop("LD_LIBRARY_PATH", None)
            environment.pop("PYTHONPATH", None)
            for name in "first", "second":
                (self.directory / name).mkdir()
            first = environment | {"HOME": str(self.directory / "first")}
            run(programs / "python", "in_s3.py", "s3://bucket/wheel", cwd=self.directory, env=first)
            shutil.rmtree(self.directory / "first")
            second = environment | {"HOME": str(self.directory / "second")}
            self.assertIn("tuned", run(programs / "cadre", "ls", "s3://bucket/wheel", env=second))
            best = json.loads(run(programs / "cadre", "best", "s3://bucket/wheel/tuned", "--json", env=second))
            self.assertEqual(best["value"], 6)
            run(programs / "cadre", "export", "s3://bucket/wheel/tuned", "--parquet", self.directory / "tuned.parquet", env=second)
            self.assertEqual((self.directory / "tuned.parquet").read_bytes()[:4], b"PAR1")
            said = run(programs / "python", "continues.py", "s3://bucket/wheel", cwd=self.directory, env=second)
            self.assertEqual(said, "6 3\n")
            # The program itself finds the pyarrow beside the package, too.
            program = next(programs.parent.glob("lib/python3*/site-packages/cadre/bin/cadre"))
            self.assertIn("tuned", run(program, "ls", "s3://bucket/wheel", env=second))
            train = self.build(self.project("into_s3", LINES_WITH_STORAGE, "consumer"),
                               f"-DCMAKE_PREFIX_PATH={program.parents[1]}")
            self.assertIn("errors 0", run(train, "s3://bucket/cpp", env=second))

    def test_object_storages_say_what_they_need_where_pyarrow_is_missing(self):
        (self.directory / "in_s3.py").write_text(IN_S3, encoding="utf-8")
        for command in ([self.program("python"), "in_s3.py", "s3://bucket/wheel"],
                        [self.program("cadre"), "show", "s3://bucket/wheel/tuned"]):
            done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("s3://bucket/wheel/tuned needs", done.stderr.splitlines()[-1])
            self.assertIn('pip install "cadre-tune[storage]"', done.stderr.splitlines()[-1])

    def test_licences_of_all_libraries_in_it_are_in_it(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
            licences = {pathlib.PurePath(name).stem for name in names if re.search(r"\.dist-info/licenses/.", name)}
            libraries = {pathlib.PurePath(name).name for name in names if re.match(r"cadre_tune\.libs/.*\.so", name)}
        bundled = {re.sub(r"(-[0-9])?-[0-9a-f]{8}\..*", "", library) for library in libraries}  # libkj-0-591b1313.9.2.so
        self.assertTrue(bundled)
        self.assertLessEqual(bundled, set(BUNDLED), "a library without a licence in licenses/")
        self.assertEqual(licences, {"LICENSE"} | COMPILED | {BUNDLED[library] for library in bundled})

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
