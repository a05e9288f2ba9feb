"""Cadre as a part of another project, by add_subdirectory or FetchContent, does not affect that project."""

import json
import unittest

from installation import CMAKE, FOLDER, SOURCE, InstallationTest, run


class SubdirectoryTest(InstallationTest):
    components = ()

    @classmethod
    def install(cls, directory):
        return directory  # installs nothing: the sources are enough

    def test_the_project_compiles_with_its_own_flags(self):
        cmake = (FOLDER / "subdirectory" / "CMakeLists.txt").read_text(encoding="utf-8")
        project = self.project("stranger", cmake, "consumer")
        done = self.configure(project, f"-DCADRE_SOURCE={SOURCE}", "-DCMAKE_BUILD_TYPE=Debug", "-DCADRE_UNITY=OFF")
        self.assertEqual(done.returncode, 0, done.stderr)
        # Builds only the project's own file: the flags of Cadre's files do not matter here.
        run(CMAKE, "--build", project / "build", "--target", "CMakeFiles/train.dir/train.cc.o")

        commands = json.loads((project / "build" / "compile_commands.json").read_text(encoding="utf-8"))
        own = [command["command"] for command in commands if command["file"] == str(project / "train.cc")]
        self.assertEqual(len(own), 1)
        self.assertIn("++20", own[0])
        for flag in "-W", "-fPIC", "ccache", "-DNDEBUG":
            self.assertNotIn(flag, own[0])

        folders = {command["file"].removeprefix(f"{SOURCE}/").split("/")[0] for command in commands
                   if command["file"].startswith(f"{SOURCE}/")}
        self.assertEqual(folders, {"src"})  # no tests, no examples
        self.assertFalse([command for command in commands if "/src/cli/" in command["file"]])

    def test_the_project_may_have_all_of_it(self):
        cmake = (FOLDER / "subdirectory" / "CMakeLists.txt").read_text(encoding="utf-8")
        project = self.project("whole", cmake, "consumer")
        done = self.configure(project, f"-DCADRE_SOURCE={SOURCE}", "-DCADRE_TESTS=ON", "-DCADRE_EXAMPLES=ON",
                              "-DCADRE_CLI=ON", "-DCADRE_INSTALL=ON", generator="Unix Makefiles")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
