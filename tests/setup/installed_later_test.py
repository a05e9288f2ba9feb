"""A build folder finds libFuzzer, which only tests need, if set-up installs it after the first configuration."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["CADRE_SOURCE"])
CXX = os.environ["CADRE_CXX"]

# A compiler that has no libFuzzer while there is a file of that name.
COMPILER = """#!/bin/sh
case "$*" in *-fsanitize=fuzzer*) [ ! -e "{hidden}" ] || exit 1 ;; esac
exec {compiler} "$@"
"""


def has_libfuzzer():
    program = 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }'
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([CXX, "-fsanitize=fuzzer", "-x", "c++", "-", "-o", f"{folder}/fuzzer"], input=program, text=True,
                              capture_output=True, check=False)
    return done.returncode == 0


@unittest.skipUnless(has_libfuzzer(), "the compiler has no libFuzzer")
class InstalledLaterTest(unittest.TestCase):
    def test_the_fuzz_tests_are_there_once_libfuzzer_is(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            hidden = folder / "hidden"
            hidden.touch()
            compiler = folder / "clang++"
            compiler.write_text(COMPILER.format(hidden=hidden, compiler=CXX), encoding="utf-8")
            compiler.chmod(0o755)
            build = folder / "build"
            subprocess.run(["cmake", "-G", "Ninja", "-S", SOURCE, "-B", build, f"-DCMAKE_CXX_COMPILER={compiler}",
                            "-DCADRE_TORCH=OFF", "-DCADRE_ARROW=OFF"], capture_output=True, check=True)
            self.assertEqual(self.fuzzers(build), 0)
            hidden.unlink()
            subprocess.run(["cmake", build], capture_output=True, check=True)
            self.assertGreater(self.fuzzers(build), 10)
            # Set-up touches this file, and the build configures again by itself.
            if (SOURCE / ".setup" / "installed").exists():
                self.assertIn(".setup/installed", (build / "build.ninja").read_text(encoding="utf-8"))

    def fuzzers(self, build):
        return build.joinpath("tests", "fuzz", "CTestTestfile.cmake").read_text(encoding="utf-8").count("add_test(")


if __name__ == "__main__":
    unittest.main()
