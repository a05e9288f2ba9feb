"""Cadre as other projects use it: installed trees, and projects that are configured, built and run against them."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["CADRE_SOURCE"])
BUILD = pathlib.Path(os.environ["CADRE_BUILD"])
FOLDER = SOURCE / "tests" / "package"
CMAKE = os.environ["CADRE_CMAKE"]
VERSION = os.environ["CADRE_VERSION"]
TORCH_ROOT = os.environ["CADRE_TORCH_ROOT"]  # empty: Cadre is built without torch
ARROW_ROOT = os.environ.pop("CADRE_ARROW_ROOT")  # empty: Cadre is built without Arrow; programs shall find theirs alone

# The compiler of the archives, and the other one of g++ and clang if it is installed.
COMPILERS = [os.environ["CADRE_CXX"]]
for other in "g++", "clang++-19":
    if shutil.which(other) and os.path.basename(COMPILERS[0]) != other:
        COMPILERS.append(other)

# Warnings in Cadre's headers count, although the package is installed.
WITH_WARNINGS = ["-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror", "-DCMAKE_NO_SYSTEM_FROM_IMPORTED=ON"]


def run(*command, **options):
    """Runs a command; if it fails, its output is in the failure."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                          **{"timeout": 900, **options})
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def readme_lines(target):
    """Returns the CMakeLists.txt that README.md shows for a target."""
    readme = (SOURCE / "README.md").read_text(encoding="utf-8")
    pages = [block for block in re.findall(r"^```cmake\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL) if target in block]
    assert len(pages) == 1, (target, pages)
    return pages[0]


@contextlib.contextmanager
def object_server():
    """Runs an S3 server with the bucket `bucket`; yields the environment for programs that use it."""
    with subprocess.Popen([sys.executable, SOURCE / "tests" / "storage" / "object_server.py"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        port = server.stdout.readline().strip()
        print("bucket bucket", file=server.stdin, flush=True)
        server.stdout.readline()
        yield os.environ | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_DEFAULT_REGION": "us-east-1",
                            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
                            "AWS_EC2_METADATA_DISABLED": "true"}
        server.stdin.close()


class InstallationTest(unittest.TestCase):
    """Has an installed tree, `prefix`, in `directory`, which is empty otherwise."""

    components = ("program", "tune")

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.directory = pathlib.Path(cls.temporary.name)
        cls.prefix = cls.install(cls.directory)

    @classmethod
    def install(cls, directory):
        """Installs in one place and moves the tree to another, as a package is; returns the new place."""
        installed, moved = directory / "installed", directory / "moved"
        for component in cls.components:
            run(CMAKE, "--install", BUILD, "--prefix", installed, "--component", component)
        return installed.rename(moved)

    def configure(self, project, *definitions, build=None, compiler=COMPILERS[0], generator="Ninja", **environment):
        """Configures project/ in project/build or another folder; returns the process that has ended."""
        return subprocess.run(
            [CMAKE, "-G", generator, "-S", project, "-B", build or project / "build",
             f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={self.prefix}", *definitions],
            capture_output=True, text=True, timeout=600, check=False, env=os.environ | environment)

    def build(self, project, *definitions, compiler=COMPILERS[0]):
        """Configures and builds project/; returns its program `train`."""
        done = self.configure(project, *definitions, compiler=compiler)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        run(CMAKE, "--build", project / "build")
        return project / "build" / "train"

    def project(self, name, cmake, source):
        """Makes a folder with a CMakeLists.txt and a train.cc."""
        project = self.directory / name
        project.mkdir()
        (project / "CMakeLists.txt").write_text(cmake, encoding="utf-8")
        (project / "train.cc").write_text((FOLDER / source / "train.cc").read_text(encoding="utf-8"), encoding="utf-8")
        return project

    def check_climb(self, train):
        """Runs the program of consumer/ and checks the population that it trains; returns the experiment."""
        storage = self.directory / f"{train.parent.parent.name}-results"
        found = dict(line.split() for line in run(train, storage).splitlines())
        self.assertEqual((found["trials"], found["errors"]), ("4", "0"))
        self.assertGreater(int(found["exploits"]), 0)
        # No trial alone gets this far: 0.9 shrinks by at most 0.02 * 0.2 a step without exploring.
        without_exploring = 1.2 - 2 * (0.9 * (1 - 0.02 * 0.2) ** 50) ** 2
        self.assertGreater(float(found["best"]), without_exploring)
        return storage / "climb"
