"""The charting library of the page is the one that its README names, byte for byte."""

import hashlib
import os
import pathlib
import re
import unittest

FOLDER = pathlib.Path(os.environ["CADRE_SOURCE"]) / "web" / "third_party" / "uplot"
README = (FOLDER / "README.md").read_text(encoding="utf-8")


class UplotTest(unittest.TestCase):
    def test_every_file_has_the_checksum_in_the_readme(self):
        told = {name: checksum for checksum, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", README, re.MULTILINE)}
        there = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.iterdir() if path.name != "README.md"}
        self.assertEqual(there, told)
        self.assertEqual(set(told), {"LICENSE", "uPlot.iife.min.js", "uPlot.min.css"})

    def test_it_is_the_version_in_the_readme(self):
        version = re.search(r"^\| version \| (\S+) \|$", README, re.MULTILINE).group(1)
        self.assertIn(f"(v{version})", (FOLDER / "uPlot.iife.min.js").read_text(encoding="utf-8")[:200])
        self.assertIn(f"uplot-{version}.tgz", README)


if __name__ == "__main__":
    unittest.main()
