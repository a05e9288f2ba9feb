"""The installed headers: how many there are, and that each compiles alone without a warning, and without libtorch.

cadre/torch.h takes as long as all others together: consumer_torch/train.cc includes it first, with the same warnings.
"""

import shutil
import unittest

from installation import CMAKE, FOLDER, WITH_WARNINGS, InstallationTest, run

MOST_TUNE_HEADERS = 25  # with cadre/torch.h


class HeadersTest(InstallationTest):
    components = ("tune",)

    def test_headers_are_few(self):
        headers = [path for path in (self.prefix / "include").rglob("*.h") if path.name != "train.h"]
        self.assertGreater(len(headers), 10)
        self.assertLessEqual(len(headers) + 1, MOST_TUNE_HEADERS)

    def test_each_header_compiles_alone_and_without_warnings(self):
        project = self.directory / "headers"
        shutil.copytree(FOLDER / "headers", project)
        done = self.configure(project, f"-DINCLUDE={self.prefix / 'include'}", *WITH_WARNINGS)
        self.assertEqual(done.returncode, 0, done.stderr)
        run(CMAKE, "--build", project / "build", "--", "-j", "2", "-k", "0")


if __name__ == "__main__":
    unittest.main()
