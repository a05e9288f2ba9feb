"""The installed headers: each compiles alone, without a warning and without libtorch.

cadre/torch.h and cadre/train_torch.h take as long as all others together: consumer_torch/train.cc includes them first,
with the same warnings.
"""

import shutil
import unittest

from installation import CMAKE, FOLDER, WITH_WARNINGS, InstallationTest, run


class HeadersTest(InstallationTest):
    components = ("tune",)

    def test_each_header_compiles_alone_and_without_warnings(self):
        self.assertGreater(len(list((self.prefix / "include").rglob("*.h"))), 20)
        project = self.directory / "headers"
        shutil.copytree(FOLDER / "headers", project)
        done = self.configure(project, f"-DINCLUDE={self.prefix / 'include'}", *WITH_WARNINGS)
        self.assertEqual(done.returncode, 0, done.stderr)
        run(CMAKE, "--build", project / "build", "--", "-j", "2", "-k", "0")


if __name__ == "__main__":
    unittest.main()
