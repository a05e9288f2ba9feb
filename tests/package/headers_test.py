"""The installed headers: they are few, and each compiles alone, without a warning and without libtorch.

cadre/torch.h and cadre/train_torch.h take as long as all others together: consumer_torch/train.cc includes them first,
with the same warnings.
"""

import shutil
import unittest

from installation import CMAKE, FOLDER, WITH_WARNINGS, InstallationTest, run

MOST_TUNE_HEADERS = 25  # including cadre/torch.h
MOST_TRAIN_HEADERS = 12
TRAIN_HEADERS_WITH_TORCH = 9  # cadre/train_torch.h and the folder of that name


class HeadersTest(InstallationTest):
    components = ("tune",)

    def test_headers_are_few(self):
        headers = list((self.prefix / "include").rglob("*.h"))
        self.assertGreater(len(headers), 10)
        of_train = [path for path in headers if path.name in ("train.h", "train_callback.h", "validation.h")]
        self.assertLessEqual(len(headers) - len(of_train) + 1, MOST_TUNE_HEADERS)
        self.assertLessEqual(len(of_train) + TRAIN_HEADERS_WITH_TORCH, MOST_TRAIN_HEADERS)

    def test_each_header_compiles_alone_and_without_warnings(self):
        project = self.directory / "headers"
        shutil.copytree(FOLDER / "headers", project)
        done = self.configure(project, f"-DINCLUDE={self.prefix / 'include'}", *WITH_WARNINGS)
        self.assertEqual(done.returncode, 0, done.stderr)
        run(CMAKE, "--build", project / "build", "--", "-j", "2", "-k", "0")


if __name__ == "__main__":
    unittest.main()
