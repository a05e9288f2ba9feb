"""Runs that earlier versions wrote: the present program reads them and continues the interrupted ones."""

import csv
import io
import json
import math
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import unittest

BIN = pathlib.Path(os.environ["CADRE_BIN"])
GOLDEN = pathlib.Path(os.environ["CADRE_SOURCE"]) / "tests/golden"
ENDS = ("finished", "interrupted")
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # missing in Debian 12


def boot_of(store):
    """Returns the boot id of the machine at the time when a store was written."""
    with tempfile.TemporaryDirectory() as folder:  # reading the original would change its log
        for file in store.parent.glob("experiment.db*"):
            shutil.copy(file, folder)
        database = sqlite3.connect(pathlib.Path(folder) / store.name)
        (boot,) = database.execute("SELECT value FROM meta WHERE key = 'boot'").fetchone()
        database.close()
        return boot


def outcome_of(printed):
    """Returns the outcome that golden_tool has printed, below the lines of the run."""
    return float(printed.split()[-1])


class Golden:
    """The runs of one archive, in a folder of their own."""

    def __init__(self, archive):
        self.name = archive.name.removesuffix(".tar.gz")
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        with tarfile.open(archive) as files:
            files.extractall(self.folder, **SAFELY)
        self.outcomes = json.loads((self.folder / "outcomes.json").read_text())
        self.is_published = self.name.startswith("published")

    def storage(self, end):
        return f"file://{self.folder / end}" if self.is_published else str(self.folder / end)

    def run(self, end, program, *arguments):
        home = {"HOME": str(self.folder / "home" / end)}  # working directories of published runs
        # Pretends to be the machine that wrote it, not yet restarted: after a restart unsynced files are not trusted.
        store = self.folder / end / arguments[0] / "experiment.db"
        boot = {"CADRE_BOOT_ID": boot_of(store)} if program == "golden_tool" and store.exists() else {}
        done = subprocess.run([BIN / program, *arguments], capture_output=True, text=True, timeout=60,
                              env=os.environ | home | boot)
        assert done.returncode == 0, (self.name, arguments, done.stdout, done.stderr)
        return done.stdout

    def written_scores(self, end, kind):
        """Returns the scores in the result files, by the version that wrote the run."""
        return sorted(json.loads(line)["score"] for file in (self.folder / end / kind).glob("**/result.json")
                      for line in file.read_text().splitlines())

    def read_scores(self, end, kind):
        """Returns the scores that the present program exports, or writes when it restores a training run."""
        run = f"{self.storage(end)}/{kind}"
        if kind == "experiment":
            rows = csv.DictReader(io.StringIO(self.run(end, "cadre", "export", run, "--all")))
            return sorted(float(row["score"]) for row in rows)
        self.run(end, "golden_tool", kind, self.storage(end))
        return self.written_scores(end, kind)


class GoldenTest(unittest.TestCase):
    def check_all(self, check):
        """Calls check(golden, kind) for the experiment and the training run of each archive."""
        archives = sorted(GOLDEN.glob("*.tar.gz"))
        self.assertGreaterEqual(len(archives), 2)
        for archive in archives:
            golden = Golden(archive)
            with golden.temporary:
                for kind in golden.outcomes:
                    with self.subTest(archive=golden.name, kind=kind):
                        check(golden, kind)

    def test_every_row_is_read(self):
        def check(golden, kind):
            written = golden.written_scores("finished", kind)
            self.assertEqual(len(written), 3 * 24 if kind == "experiment" else 24)
            self.assertEqual(golden.read_scores("finished", kind), written)
            written = golden.written_scores("interrupted", kind)  # published runs upload them once a minute
            read = golden.read_scores("interrupted", kind)
            self.assertGreater(len(read), 11)
            if not golden.is_published:
                self.assertGreater(len(written), 11)
            self.assertLessEqual(set(written), set(read))
        self.check_all(check)

    def test_every_command_looks_at_it(self):
        def check(golden, kind):
            for end in ENDS:
                run = f"{golden.storage(end)}/{kind}"
                self.assertIn("score", golden.run(end, "cadre", "show", run))
                if kind == "experiment":
                    self.assertIn("lr", golden.run(end, "cadre", "best", run))
                self.assertIn(kind, golden.run(end, "cadre", "ls", golden.storage(end)))
        self.check_all(check)

    def test_what_was_interrupted_is_continued_and_comes_out_as_it_did_then(self):
        def check(golden, kind):
            printed = golden.run("interrupted", "golden_tool", kind, golden.storage("interrupted"))
            self.assertTrue(math.isclose(outcome_of(printed), golden.outcomes[kind], rel_tol=1e-12), printed)
        self.check_all(check)

    def test_what_has_ended_stays_as_it_is(self):
        def check(golden, kind):
            before = golden.read_scores("finished", kind)
            printed = golden.run("finished", "golden_tool", kind, golden.storage("finished"))
            self.assertNotIn("snapshot cannot be used", printed)
            self.assertTrue(math.isclose(outcome_of(printed), golden.outcomes[kind], rel_tol=1e-12), printed)
            self.assertEqual(golden.read_scores("finished", kind), before)
        self.check_all(check)


if __name__ == "__main__":
    unittest.main()
