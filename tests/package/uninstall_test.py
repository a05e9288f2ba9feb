"""`make uninstall` removes what `make install` installed, and nothing else."""

import os
import subprocess
import unittest

from installation import BUILD, CMAKE, SOURCE, InstallationTest, run

SCRIPT = SOURCE / "cmake" / "InstallManifest.cmake"


class UninstallTest(InstallationTest):
    components = ()

    @classmethod
    def install(cls, directory):
        return directory / "prefix"

    def manifest(self, *options):
        """Runs the script as the Makefile does."""
        return subprocess.run([CMAKE, *options, "-P", str(SCRIPT)], capture_output=True, text=True, check=False,
                              env=os.environ | {"PREFIX": str(self.prefix)})

    def install_component(self, component):
        """Installs a component and records its files in a folder of its own: other tests install at the same time."""
        files_before = self.files()
        run(CMAKE, "--install", BUILD, "--prefix", self.prefix, "--component", component)
        new = sorted(self.files() - files_before)
        note = self.directory / f"{component}.txt"
        note.write_text("\n".join(map(str, new)) + "\n", encoding="utf-8")
        done = self.manifest(f"-DMANIFEST={note}")
        self.assertEqual(done.returncode, 0, done.stderr)

    def files(self):
        return {path for path in self.prefix.rglob("*") if not path.is_dir()}

    def test_all_that_was_installed_goes_and_nothing_else(self):
        for folder in "bin", "lib/cmake/cadre", "include/cadre", "include/other":
            (self.prefix / folder).mkdir(parents=True)
        strangers = [self.prefix / name for name in ("bin/other", "lib/cmake/cadre/mine.cmake", "include/other/cadre.h")]
        for path in strangers:
            path.write_text("mine\n", encoding="utf-8")
        self.install_component("tune")
        self.install_component("program")  # an installation over an older one; both are removed
        self.assertGreater(len(self.files()), 40)

        done = self.manifest()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.files(), set(strangers))
        folders = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if path.is_dir()}
        self.assertEqual(folders, {"bin", "lib", "lib/cmake", "lib/cmake/cadre", "include", "include/other"})
        self.assertIn(f"{self.prefix}/lib/cmake/cadre stays", done.stdout)

        again = self.manifest()
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("Nothing to remove", again.stderr)
        self.assertIn("make uninstall PREFIX=", " ".join(again.stderr.split()))


if __name__ == "__main__":
    unittest.main()
