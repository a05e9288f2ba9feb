"""Programs with one typical mistake each: the compiler names the mistake in the first three lines of its message.

Comments at the beginning of each program describe the mistake and list words that the compiler's message must have. A
line "// says: words" is for clang and g++, "// clang says: words" and "// g++ says: words" are for one of them. Lines of
the message that only say which file includes which do not count.

no_mistake.cc has no mistake: it compiles without a message, also as C++23.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).parent
INCLUDES = ["-I", os.environ["CADRE_INCLUDE"], "-I", os.environ["CADRE_BUILD_INCLUDE"]]
ONLY = os.environ.get("CADRE_MISTAKES", "")  # a pattern of names, to try a few programs
TORCH_ROOT = os.environ.get("CADRE_TORCH_ROOT", "")
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-fsyntax-only"]
PRECOMPILED = "#include <cadre/data.h>\n#include <cadre/train.h>\n#include <cadre/tune.h>\n"


def compilers():
    """Returns the build's compiler, and the other one if it is installed, by their names in the comments."""
    found = {}
    for path in [os.environ["CADRE_CXX"], "g++", "clang++-19", "clang++"]:
        if shutil.which(path) is None:
            continue
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        found.setdefault("clang" if "clang" in version else "g++", path)
    return found


def uses_torch(program):
    return re.search(r"#include <cadre/(train_)?torch\.h>", program.read_text()) is not None


def wanted_words(program, compiler):
    return [words for of, words in re.findall(r"^// (?:(\S+) )?says: (.*)$", program.read_text(), re.MULTILINE)
            if of in ("", compiler)]


def first_three_lines(message):
    lines = [line for line in message.splitlines() if not re.match(r"In file included from|  +from ", line)]
    return "\n".join(lines[:3])


class MistakesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.compilers = compilers()
        cls.headers = {}  # by compiler: a header that also exists in precompiled form
        for name, path in cls.compilers.items():
            folder = pathlib.Path(directory.name) / name
            folder.mkdir()
            cls.headers[name] = folder / "all.h"
            cls.headers[name].write_text(PRECOMPILED)
            suffix = "pch" if name == "clang" else "gch"
            subprocess.run([path, "-std=c++20", *FLAGS[:-1], *INCLUDES, "-x", "c++-header", cls.headers[name],
                            "-o", f"{cls.headers[name]}.{suffix}"], check=True)

    def compile(self, name, program, standard="c++20"):
        flags = []
        if uses_torch(program):
            include = pathlib.Path(TORCH_ROOT) / "include"
            flags = ["-isystem", include, "-isystem", include / "torch/csrc/api/include"]
        elif standard == "c++20":
            flags = ["-include", self.headers[name]]
        return subprocess.run([self.compilers[name], f"-std={standard}", *FLAGS, *INCLUDES, *flags, program],
                              capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)

    def test_a_program_without_a_mistake_compiles_without_a_message(self):
        for name in self.compilers:
            for standard in ("c++20", "c++23"):
                with self.subTest(compiler=name, standard=standard):
                    done = self.compile(name, FOLDER / "no_mistake.cc", standard)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_compiler_names_the_mistake_in_the_first_three_lines_of_its_message(self):
        programs = [path for path in sorted(FOLDER.glob("*.cc")) if path.stem != "no_mistake"]
        programs = [path for path in programs if TORCH_ROOT or not uses_torch(path)]
        if ONLY:
            programs = [path for path in programs if re.search(ONLY, path.stem)]
        else:
            self.assertGreaterEqual(len(programs), 20)
        pairs = [(name, program) for program in programs for name in self.compilers if wanted_words(program, name)]
        with concurrent.futures.ThreadPoolExecutor(2) as two_at_a_time:
            for (name, program), done in zip(pairs, two_at_a_time.map(lambda pair: self.compile(*pair), pairs)):
                with self.subTest(program=program.stem, compiler=name):
                    self.assertNotEqual(done.returncode, 0, "it compiles")
                    for words in wanted_words(program, name):
                        self.assertIn(words, first_three_lines(done.stderr), done.stderr[:3000])


if __name__ == "__main__":
    unittest.main()
