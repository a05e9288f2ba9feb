"""An external project of one file, with the five lines of CMake in README.md, trains with the installed package."""

import json
import unittest

from installation import BUILD, SOURCE, VERSION, InstallationTest, readme_lines, run

LINES = readme_lines("cadre::tune")


class ConsumerTest(InstallationTest):
    def test_five_lines_and_one_file_train_a_population(self):
        self.assertEqual(len(LINES.splitlines()), 5)
        stranger = self.build(self.project("stranger", LINES, "consumer"))
        self.assertIn("BIND_NOW", run("readelf", "--dynamic", stranger), "each worker binds the program anew")
        experiment = self.check_climb(stranger)
        program = self.prefix / "bin" / "cadre"
        self.assertEqual(run(program, "--version"), f"cadre {VERSION}\n")
        trials = json.loads(run(program, "show", experiment, "--json"))["trials"]
        self.assertEqual({trial["status"] for trial in trials}, {"TERMINATED"})

    def test_nothing_that_is_installed_names_where_it_was_built_or_installed(self):
        texts = [path for path in self.prefix.rglob("*") if path.suffix in (".cmake", ".h")]
        self.assertGreater(len(texts), 20)
        for path in texts:
            text = path.read_text(encoding="utf-8")
            for place in SOURCE, BUILD, self.directory:
                self.assertNotIn(str(place), text, path)

    def test_other_minor_versions_are_refused(self):
        for version in "0.0", "0.2":
            with self.subTest(version):
                project = self.project(f"other-{version}", LINES.replace("cadre 0.1", f"cadre {version}"), "consumer")
                self.assertIn(f'requested version "{version}"', self.refusal(project))

    def test_a_missing_library_is_named_with_its_debian_package(self):
        project = self.project("poor", LINES, "consumer")
        message = self.refusal(project, "-DCMAKE_IGNORE_PATH=/usr/include")  # fmt has a CMake package, the others do not
        for package in "libsqlite3-dev", "libxxhash-dev", "libnlopt-dev", "libcapnp-dev":
            self.assertIn(package, message)
        self.assertNotIn("libfmt-dev", message)

    def test_torch_that_was_not_installed_is_asked_for(self):
        lines = readme_lines("cadre::torch")
        self.assertIn("libcadre-torch-dev", self.refusal(self.project("no_torch", lines, "consumer_torch")))

    def test_a_component_that_does_not_exist_is_named(self):
        lines = LINES.replace("REQUIRED", "REQUIRED COMPONENTS tune trian")
        self.assertIn('"trian"', self.refusal(self.project("misspelt", lines, "consumer")))

    def refusal(self, project, *definitions):
        """Returns the message for a project that cannot be configured, as one line."""
        done = self.configure(project, *definitions)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return " ".join(done.stderr.split())


if __name__ == "__main__":
    unittest.main()
