"""The commands of the tutorial pages, run one after the other in an empty directory, print what the pages say.

In a ```sh block a line that begins with "$ " is a command, and the lines after it are its output. "…" stands for any
text, on a line of its own for any lines. A page about an example shows parts of it.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["CADRE_SOURCE"])
PAGES = SOURCE / "docs" / "tutorials"
BIN = pathlib.Path(os.environ["CADRE_BIN"])


def commands_of(page):
    """Pairs of a command and the text that it is to print."""
    commands = []
    for block in re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                commands.append([line[2:].strip(), ""])
            else:
                commands[-1][1] += line
    return commands


def pattern_of(expected):
    lines = []
    for line in expected.splitlines():
        lines.append("(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n")
    return re.compile("".join(lines))


class TutorialsTest(unittest.TestCase):
    def run_program_and_page(self, name):
        program = pathlib.Path(name)
        program.unlink(missing_ok=True)
        program.symlink_to(BIN / f"tutorial_{name}")
        self.run_page(name)

    def run_page(self, name):
        commands = commands_of((PAGES / f"{name}.md").read_text(encoding="utf-8"))
        self.assertGreater(len(commands), 1)
        for command, expected in commands:
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=1500,
                                  env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"})
            with self.subTest(page=name, command=command):
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                if not pattern_of(expected).fullmatch(done.stdout):
                    self.fail(f"$ {command}\nprinted:\n{done.stdout}\nand the page says:\n{expected}")

    def test_pages_in_their_order(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            try:
                for name in ("pbt", "replay", "reading", "storage"):
                    self.run_program_and_page(name)
            finally:
                os.chdir("/")

    @unittest.skipUnless((BIN / "tutorial_datasets").exists(), "built without Arrow")
    def test_the_page_about_datasets(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            try:
                self.run_program_and_page("datasets")
            finally:
                os.chdir("/")

    def test_pages_about_examples_show_them(self):
        for name, folders in (("dcgan", ("dcgan_mnist", "models")), ("checkpoints", ("checkpoint_mechanisms",)),
                              ("distributed", ("fashion_mnist_train",)), ("tune_and_train", ("pbt_distributed",)),
                              ("validation", ("async_validation",))):
            page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
            example = "".join(file.read_text(encoding="utf-8") for folder in folders
                              for file in (SOURCE / "examples" / folder).glob("*.cc"))
            excerpts = re.findall(r"^```cpp\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
            self.assertGreater(len(excerpts), 1)
            for excerpt in excerpts:
                self.assertIn(excerpt, example, name)

    @unittest.skipUnless((BIN / "dcgan_mnist").exists(), "built without libtorch")
    def test_the_commands_of_pages_about_examples(self):
        pages = ["checkpoints", "dcgan", "distributed", "tune_and_train"]
        if (BIN / "async_validation").exists():  # built with Arrow
            pages.append("validation")
        for page in pages:
            with tempfile.TemporaryDirectory() as directory:
                os.chdir(directory)
                try:
                    pathlib.Path("data").symlink_to(SOURCE / "data")
                    self.run_page(page)
                finally:
                    os.chdir("/")


if __name__ == "__main__":
    unittest.main()
