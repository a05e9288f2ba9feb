"""The installed headers: how many there are, and that each compiles alone without a warning."""

import shutil
import unittest

from installation import CMAKE, FOLDER, TORCH_ROOT, InstallationTest, run

MOST_HEADERS = 25


class HeadersTest(InstallationTest):
    components = ("tune", "torch") if TORCH_ROOT else ("tune",)

    def test_headers_are_few(self):
        headers = list((self.prefix / "include").rglob("*.h"))
        self.assertGreater(len(headers), 10)
        self.assertLessEqual(len(headers), MOST_HEADERS)

    def test_each_header_compiles_alone_and_without_warnings(self):
        project = self.directory / "headers"
        shutil.copytree(FOLDER / "headers", project)
        done = self.configure(project, f"-DCOMPONENTS={';'.join(self.components)}",
                              f"-DINCLUDE={self.prefix / 'include'}", f"-DCADRE_TORCH_ROOT={TORCH_ROOT}")
        self.assertEqual(done.returncode, 0, done.stderr)
        run(CMAKE, "--build", project / "build", "--", "-j", "2", "-k", "0")


if __name__ == "__main__":
    unittest.main()
