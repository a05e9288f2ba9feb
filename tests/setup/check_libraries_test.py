"""tools/check_libraries.sh says which libraries and programs are missing, asking the system and not a package manager."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["CADRE_SOURCE"]) / "tools" / "check_libraries.sh"


class CheckLibrariesTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.prefix = pathlib.Path(temporary.name)

    def write(self, name, text):
        path = self.prefix / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def check(self, *packages, **environment):
        """Ends with 0 and without a word, or with 1 and a line for each that is missing; returns these."""
        done = subprocess.run([SCRIPT, *packages], capture_output=True, text=True, check=False, timeout=50,
                              env={"PATH": os.environ["PATH"]} | environment)
        lines = [line.split("  ") for line in done.stderr.splitlines() if line.startswith("  ")][1:]
        self.assertEqual(done.returncode, 1 if lines else 0, done.stderr)
        return [[word.strip() for word in line if word] for line in lines]

    def test_what_is_there_is_not_named(self):
        self.assertEqual(self.check("cmake", "libsqlite3-dev", "libfmt-dev", "libxxhash-dev", "libcapnp-dev", "libcurl4-openssl-dev", "libssl-dev", "libeigen3-dev", "libnlopt-dev", "libjpeg-dev", "libpng-dev", "libgtest-dev"), [])

    def test_a_missing_compiler_and_python_are_named_with_their_variable(self):
        missing = self.check("clang-19", "python3", CXX="no-such-compiler", PYTHON="no-such-python")
        self.assertEqual([[line[0], line[1], line[3]] for line in missing],
                         [["clang++ or g++", "19 or 12", "CXX=<compiler>"], ["Python", "3.11", "PYTHON=<interpreter>"]])

    def test_gcc_is_a_compiler_too_and_an_old_one_is_named(self):
        compiler = self.write("g++", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'g++ 9; Free Software' || echo 9.4.0\n")
        compiler.chmod(0o755)
        self.assertEqual([line[2] for line in self.check("clang-19", CXX=str(compiler))], ["is 9.4.0"])
        compiler.write_text(compiler.read_text().replace("9.4.0", "12.2.0"))
        self.assertEqual(self.check("clang-19", CXX=str(compiler)), [])

    def test_gcc_is_known_where_it_speaks_another_language(self):
        compiler = self.write("g++", """#!/bin/sh
[ "$1" = --version ] || { echo 12.2.0; exit; }
[ "$LC_ALL" = C ] && echo 'g++ 12; This is free software: Free Software' || echo 'g++ 12; Dies ist freie Software'
""")
        compiler.chmod(0o755)
        self.assertEqual(self.check("clang-19", CXX=str(compiler), LANG="de_DE.UTF-8", LC_ALL="de_DE.UTF-8"), [])

    def test_prefixes_that_are_named_come_before_the_usual_ones(self):
        self.write("include/sqlite3.h", '#define SQLITE_VERSION        "3.30.1"\n')
        self.write("lib/cmake/fmt/fmt-config-version.cmake", 'set(PACKAGE_VERSION "8.1.1")\n')
        old = [["SQLite", "3.40.1", "is 3.30.1", "SQLite3_ROOT=<prefix>", "libsqlite3-dev"],
               ["{fmt}", "9.1.0", "is 8.1.1", "fmt_ROOT=<prefix>", "libfmt-dev"]]
        self.assertEqual(self.check("libsqlite3-dev", "libfmt-dev", CMAKE_PREFIX_PATH=f"/nowhere:{self.prefix}"), old)
        self.assertEqual(self.check("libsqlite3-dev", "libfmt-dev", SQLite3_ROOT=str(self.prefix)), old[:1])
        self.write("include/sqlite3.h", '#define SQLITE_VERSION        "3.45.0"\n')
        self.assertEqual(self.check("libsqlite3-dev", SQLite3_ROOT=str(self.prefix)), [])

    def test_versions_are_compared_as_numbers(self):
        for version, is_old in ("0.9.2", False), ("0.10.3", False), ("0.9.1", True), ("1.0.1", False):
            numbers = zip(("MAJOR", "MINOR", "MICRO"), version.split("."))
            self.write("include/capnp/common.h", "".join(f"#define CAPNP_VERSION_{part} {n}\n" for part, n in numbers))
            self.assertEqual(bool(self.check("libcapnp-dev", CMAKE_PREFIX_PATH=str(self.prefix))), is_old, version)


if __name__ == "__main__":
    unittest.main()
