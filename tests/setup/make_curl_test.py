"""tools/make_curl.sh is done when libcurl is built, and not before. apt-get and cmake are made up."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["CADRE_SOURCE"]) / "tools" / "make_curl.sh"

APT_GET = """#!/bin/sh
case "$*" in
  *" source curl") mkdir -p curl-1.2 && echo licence >curl-1.2/COPYING ;;
  *" update") [ -z "$NO_NETWORK" ] ;;
esac
"""
CMAKE = """#!/bin/sh
echo "cmake $*"
case "$*" in *"$FAILS"*) exit 1 ;; esac
"""


class MakeCurlTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="with space ")
        self.addCleanup(temporary.cleanup)
        self.bin = pathlib.Path(temporary.name) / "bin"
        self.bin.mkdir()
        for name, text in ("apt-get", APT_GET), ("dpkg-source", "#!/bin/sh\n"), ("cmake", CMAKE):
            (self.bin / name).write_text(text, encoding="utf-8")
            (self.bin / name).chmod(0o755)
        self.folder = pathlib.Path(temporary.name) / "curl"

    def make(self, **environment):
        return subprocess.run([SCRIPT, self.folder], capture_output=True, text=True, check=False, timeout=50,
                              env={"PATH": f"{self.bin}:/usr/bin:/bin", "FAILS": "nothing"} | environment)

    def test_a_step_that_fails_ends_it_and_the_next_time_it_begins_again(self):
        for fails in "-S ", "--build":
            done = self.make(FAILS=fails)
            self.assertEqual(done.returncode, 1, fails)
            self.assertIn("cannot build libcurl", done.stderr)
            self.assertFalse((self.folder / "version").exists(), fails)
        done = self.make(NO_NETWORK="yes")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot get Debian's sources", done.stderr)
        self.assertEqual(self.make().returncode, 0)
        self.assertEqual((self.folder / "version").read_text(encoding="utf-8"), "curl-1.2\n")
        self.assertEqual((self.folder / "share/licenses/curl.txt").read_text(encoding="utf-8"), "licence\n")

    def test_what_is_there_is_not_built_again(self):
        self.assertEqual(self.make().returncode, 0)
        done = self.make(FAILS="")  # any cmake would fail
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
