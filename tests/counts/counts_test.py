"""No tests have disappeared: there are at least as many of each kind as counts.txt says.

A kind is what stands before the first dot of a name. When tests go on purpose, counts.txt changes with them;
`python3 counts_test.py --write` counts anew.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COUNTS = pathlib.Path(__file__).with_name("counts.txt")
BUILD = pathlib.Path(os.environ.get("CADRE_BUILD", pathlib.Path(__file__).parents[2] / "build" / "release")).resolve()


def tests_by_kind():
    # In a folder of its own: in the build's it would write over the log of the ctest that runs this.
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "CTestTestfile.cmake").write_text(f'subdirs("{BUILD}")\n', encoding="utf-8")
        shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder, capture_output=True, text=True, timeout=300,
                               check=True)
    return collections.Counter(test["name"].partition(".")[0] for test in json.loads(shown.stdout)["tests"])


def recorded_counts():
    return {kind: int(count) for kind, count in map(str.split, COUNTS.read_text(encoding="utf-8").splitlines())}


class CountsTest(unittest.TestCase):
    def test_there_are_at_least_as_many_tests_of_each_kind_as_recorded(self):
        there = tests_by_kind()
        missing = {kind: f"{there[kind]} of {count}" for kind, count in recorded_counts().items() if there[kind] < count}
        self.assertEqual(missing, {}, f"tests are missing from {BUILD}; if they went on purpose, write {COUNTS.name} anew")

    def test_each_kind_is_recorded(self):
        self.assertEqual(sorted(set(tests_by_kind()) - set(recorded_counts())), [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        COUNTS.write_text("".join(f"{kind} {count}\n" for kind, count in sorted(tests_by_kind().items())), encoding="utf-8")
    else:
        unittest.main()
