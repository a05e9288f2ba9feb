"""Runs `cadre tune` in a folder of its own, and reads what it has left there."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import textwrap
import unittest

BIN = pathlib.Path(os.environ["CADRE_BIN"])
EXAMPLES = pathlib.Path(os.environ["CADRE_SOURCE"]) / "examples/programs"
ENVIRONMENT = os.environ | {"COLUMNS": "120", "LC_ALL": "C.UTF-8", "PATH": f"{BIN}:{os.environ['PATH']}"}

SPACE = """
    metric = "loss"
    mode = "min"
    name = "test"
    storage_path = "."
    [space]
    lr = "uniform(0, 1)"
"""


class TuneTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.experiment = self.folder / "test"

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.write_text(textwrap.dedent(text).lstrip())
        path.chmod(mode)
        return path

    def python(self, text):
        """Writes a program; returns the words that start it."""
        return ["python3", self.write("program.py", text)]

    def shell(self, text):
        return [self.write("program.sh", "#!/bin/sh\n" + textwrap.dedent(text), 0o755)]

    def start(self, *arguments, **environment):
        return subprocess.Popen([BIN / "cadre", "tune", *map(str, arguments)], cwd=self.folder,
                                env=ENVIRONMENT | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def tune(self, *arguments, code=0, **environment):
        """Runs it to its end. Returns its standard output, or its messages if it is to fail."""
        process = self.start(*arguments, **environment)
        output, errors = (text.decode() for text in process.communicate(timeout=120))
        self.assertEqual(process.returncode, code, output + errors)
        return output if code == 0 else errors

    def rows(self, trial=0):
        """Returns the results of a trial."""
        return [json.loads(line) for line in (self.directory(trial) / "result.json").read_text().splitlines()]

    def directory(self, trial=0):
        [directory] = self.experiment.glob(f"{trial:05}*")
        return directory

    def trials(self):
        shown = subprocess.run([BIN / "cadre", "show", self.experiment, "--json"], check=True, capture_output=True)
        return json.loads(shown.stdout)["trials"]

    def remove_experiment(self):
        shutil.rmtree(self.experiment)
