"""The commands of the tutorial pages, run one after the other, print what the pages say.

Each series of pages begins in an empty directory.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from pages import EXCERPTS, SERIES, blocks_of, commands_of, pattern_of

SOURCE = pathlib.Path(os.environ["CADRE_SOURCE"])
PAGES = SOURCE / "docs" / "tutorials"
BIN = pathlib.Path(os.environ["CADRE_BIN"])
PYTHON = pathlib.Path(sys.executable).parent


class TutorialsTest(unittest.TestCase):
    def run_program_and_page(self, name):
        program = pathlib.Path(name)
        program.unlink(missing_ok=True)
        program.symlink_to(BIN / f"tutorial_{name}")
        self.run_page(name)

    def run_page(self, name):
        commands = commands_of(PAGES / f"{name}.md")
        self.assertGreater(len(commands), 1)
        for command, expected in commands:
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=1500,
                                  env={**os.environ, "PATH": f"{BIN}:{PYTHON}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"})
            with self.subTest(page=name, command=command):
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                if not pattern_of(expected).fullmatch(done.stdout):
                    self.fail(f"$ {command}\nprinted:\n{done.stdout}\nand the page says:\n{expected}")

    def test_pages_in_their_order(self):
        for series in SERIES:
            if series == ("datasets",) and not (BIN / "tutorial_datasets").exists():  # built without Arrow
                continue
            if series == ("debugging",) and os.environ.get("CADRE_SANITIZER"):  # finds the bug that the page is about
                continue
            with tempfile.TemporaryDirectory() as directory:
                os.chdir(directory)
                try:
                    for name in series:
                        self.run_program_and_page(name)
                finally:
                    os.chdir("/")

    @unittest.skipUnless((BIN / "dcgan_mnist").exists(), "built without libtorch")
    def test_the_commands_of_pages_about_examples(self):
        for page in EXCERPTS:
            if page in ("validation", "real_training") and not (BIN / "async_validation").exists():  # built without Arrow
                continue
            with tempfile.TemporaryDirectory() as directory:
                os.chdir(directory)
                try:
                    for folder in ("data", "examples"):
                        pathlib.Path(folder).symlink_to(SOURCE / folder)
                    self.run_page(page)
                finally:
                    os.chdir("/")

    def test_the_clusters_that_pages_describe_can_be_used(self):
        clusters = [block for page in PAGES.glob("*.md") for block in blocks_of(page)
                    if block.language == "json" and '"engine"' in block.text]
        self.assertGreaterEqual(len(clusters), 6)
        for block in clusters:
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(block.text)
                file.flush()
                run = [BIN / "cadre", "run", "--cluster", file.name, "--", "true"]
                done = subprocess.run(run, env=os.environ | {"SLURM_JOB_ID": "1"}, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{block.place()}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
