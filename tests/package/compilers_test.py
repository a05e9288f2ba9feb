"""Programs of g++ and of clang, in C++20 and in C++23, link with the installed archives, which one of the two made.

All programs of the tutorials are compiled and linked in three of the four ways. In the fourth, by the compiler of the
archives in C++20, Cadre's own build compiles them all: one of them is linked with what is installed. They have no
libtorch, whose header takes ten times as long as all else: torch_examples_test.py builds each program with libtorch in
some of the ways only.
"""

import os
import sys
import unittest

from installation import ARROW_ROOT, CMAKE, COMPILERS, FOLDER, SOURCE, WITH_WARNINGS, InstallationTest, run

sys.path.append(str(SOURCE / "tests" / "tutorials"))
from extract_program import program_of  # noqa: E402
from pages import PROGRAMS  # noqa: E402

TUTORIALS = [name for name in PROGRAMS if name != "datasets" or ARROW_ROOT]


class CompilersTest(InstallationTest):
    components = ("tune", "storage", "data") if ARROW_ROOT else ("tune",)

    def test_programs_of_the_tutorials_link_with_each_compiler_and_standard(self):
        project = self.directory / "tutorials"
        project.mkdir()
        for name in TUTORIALS:
            page = SOURCE / "docs" / "tutorials" / f"{name}.md"
            (project / f"{name}.cc").write_text(program_of(page), encoding="utf-8")
        targets = []
        if ARROW_ROOT:
            # Calls all functions of the headers that the archive has for each numeric type.
            (project / "numbers.cc").write_text((FOLDER / "numbers" / "train.cc").read_text("utf-8"), encoding="utf-8")
            targets.append("numbers")
        components = [component for component in self.components if component != "tune"]
        lines = ["cmake_minimum_required(VERSION 3.25)", "project(tutorials LANGUAGES CXX)",
                 f"find_package(cadre 0.1 REQUIRED COMPONENTS {' '.join(self.components)})"]
        for name in TUTORIALS + targets:
            libraries = " ".join(f"cadre::{component}" for component in components or ["tune"])
            lines += [f"add_executable({name} {name}.cc)", f"target_link_libraries({name} PRIVATE {libraries})"]
        (project / "CMakeLists.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for compiler in COMPILERS:
            for standard in "20", "23":
                with self.subTest(compiler=compiler, standard=standard):
                    build = project / f"build-{os.path.basename(compiler)}-{standard}"
                    done = self.configure(project, f"-DCMAKE_CXX_STANDARD={standard}", f"-DCADRE_ARROW_ROOT={ARROW_ROOT}",
                                          *WITH_WARNINGS, build=build, compiler=compiler)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    is_own_way = (compiler, standard) == (COMPILERS[0], "20")
                    wanted = [TUTORIALS[0], *targets] if is_own_way else []  # none: all
                    run(CMAKE, "--build", build, "--", "-j", "2", "-k", "0", *wanted)
                    for program in targets:
                        self.assertEqual(run(build / program), "all numbers came back\n")


if __name__ == "__main__":
    unittest.main()
