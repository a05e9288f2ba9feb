"""An external program with datasets: the one of docs/tutorials/datasets.md, with the lines of CMake on that page."""

import unittest

from installation import ARROW_ROOT, CMAKE, SOURCE, InstallationTest, run

LINES = """cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES CXX)
find_package(cadre 0.1 REQUIRED COMPONENTS data)
add_executable(train train.cc)
target_link_libraries(train PRIVATE cadre::data)
"""


class ConsumerDataTest(InstallationTest):
    components = ("tune", "data")

    def stranger(self, name, program):
        project = self.directory / name
        project.mkdir()
        (project / "CMakeLists.txt").write_text(LINES, encoding="utf-8")
        (project / "train.cc").write_text(program, encoding="utf-8")
        return project

    def test_the_tutorials_program_runs(self):
        page = (SOURCE / "docs" / "tutorials" / "datasets.md").read_text(encoding="utf-8")
        program = page.split("```cpp\n")[1].split("```")[0]
        train = self.build(self.stranger("tutorial", program), f"-DCADRE_ARROW_ROOT={ARROW_ROOT}")
        self.assertIn("7800 rows in batches", run(train, cwd=self.directory))

    def test_each_header_compiles_alone(self):
        headers = sorted((self.prefix / "include" / "cadre" / "data").glob("*.h"))
        self.assertGreater(len(headers), 3)
        project = self.directory / "headers"
        project.mkdir()
        for header in headers:
            (project / f"{header.stem}.cc").write_text(f"#include <cadre/data/{header.name}>\n", encoding="utf-8")
        sources = " ".join(f"{header.stem}.cc" for header in headers)
        lines = LINES.replace("add_executable(train train.cc)", f"add_library(train OBJECT {sources})")
        (project / "CMakeLists.txt").write_text(lines, encoding="utf-8")
        done = self.configure(project, f"-DCADRE_ARROW_ROOT={ARROW_ROOT}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        run(CMAKE, "--build", project / "build", "--", "-j", "2", "-k", "0")

    def test_arrow_that_is_not_there_is_asked_for(self):
        project = self.stranger("no_arrow", "int main() {}\n")
        done = self.configure(project, "-DCADRE_ARROW_ROOT=/nowhere")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("No pyarrow", done.stderr)


if __name__ == "__main__":
    unittest.main()
