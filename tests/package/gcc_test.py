"""Cadre's own sources compile with g++: some of those that describe structs by their members, where compilers differ most.
All of them take minutes: cmake -B build/gcc -DCMAKE_CXX_COMPILER=g++."""

import os
import shutil
import subprocess
import tempfile
import unittest

from installation import BUILD, COMPILERS, FOLDER, SOURCE, run

FILES = ["tune/description.cc", "tune/searchers/repeater.cc", "tune/searchers/warm_start.cc", "tune/schedulers/asha.cc",
         "tune/schedulers/population_based_training.cc", "tune/schedulers/resource_changing_scheduler.cc", "train/options.cc"]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-maybe-uninitialized", "-Wno-restrict", "-Wno-subobject-linkage"]


@unittest.skipUnless(shutil.which("g++"), "g++ is not installed")
class GccTest(unittest.TestCase):
    def test_names_in_the_source_are_the_same_with_each_compiler(self):
        with tempfile.TemporaryDirectory() as folder:
            for compiler in COMPILERS:
                with self.subTest(compiler):
                    program = os.path.join(folder, "names")
                    run(compiler, "-std=c++20", "-O0", f"-I{SOURCE / 'include'}", FOLDER / "names" / "names.cc", "-o", program)
                    run(program)

    def test_it_compiles_what_describes_structs(self):
        if os.path.basename(COMPILERS[0]) == "g++":
            self.skipTest("everything was compiled by it")
        flags = ["-std=c++20", "-fsyntax-only", *WARNINGS, f"-I{SOURCE / 'include'}", f"-I{SOURCE / 'src'}",
                 f"-I{BUILD / 'include'}", f"-I{BUILD / 'generated'}", "-isystem", "/usr/include/eigen3"]
        for file in FILES:
            with self.subTest(file):
                done = subprocess.run(["g++", *flags, SOURCE / "src" / file], capture_output=True, text=True, timeout=300, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
