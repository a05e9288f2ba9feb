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

    def manifest(self, *options, prefix=None, **environment):
        """Runs the script as the Makefile does."""
        return subprocess.run([CMAKE, *options, "-P", str(SCRIPT)], capture_output=True, text=True, check=False,
                              env=os.environ | {"PREFIX": str(prefix or self.prefix)} | environment)

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

    def made_up_installation(self, root):
        """Makes files below root/usr and a list of them, as `cmake --install` does: without the root."""
        names = ["usr/bin/cadre", "usr/include/cadre/tune.h"]
        for name in names:
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text("cadre\n", encoding="utf-8")
        note = self.directory / f"{root.name}.txt"
        note.write_text("".join(f"/{name}\n" for name in names), encoding="utf-8")
        return note

    def test_a_package_is_staged_below_destdir(self):
        root = self.directory / "staged"
        note = self.made_up_installation(root)
        done = self.manifest(f"-DMANIFEST={note}", prefix="/usr", DESTDIR=str(root))
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = (root / "usr/share/cadre/install_manifest.txt").read_text(encoding="utf-8")
        self.assertEqual(listed, "bin/cadre\ninclude/cadre/tune.h\n")
        done = self.manifest(prefix="/usr", DESTDIR=str(root))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path for path in root.rglob("*") if not path.is_dir()], [])

    def make(self, *arguments, **environment):
        done = subprocess.run(["make", "--no-print-directory", "-C", str(SOURCE), *arguments], capture_output=True,
                              text=True, check=False, env=os.environ | environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_folders_may_have_spaces_in_their_names_and_begin_with_a_tilde(self):
        for name, prefix in ("staged here", "{}/usr"), ("home", "~/usr"):
            root = self.directory / name
            note = self.made_up_installation(root)
            done = self.manifest(f"-DMANIFEST={note}", prefix="/usr", DESTDIR=str(root))
            self.assertEqual(done.returncode, 0, done.stderr)
            prefix = prefix.format(root)
            self.assertIn(f'--prefix "{root}/usr"', self.make("--dry-run", "install", f"PREFIX={prefix}", HOME=str(root)))
            self.make("uninstall", f"PREFIX={prefix}", HOME=str(root))
            self.assertEqual([path for path in root.rglob("*") if not path.is_dir()], [])

    def test_what_cannot_be_removed_is_said_and_stays_on_the_list(self):
        root = self.directory / "kept"
        note = self.made_up_installation(root)
        self.assertEqual(self.manifest(f"-DMANIFEST={note}", prefix="/usr", DESTDIR=str(root)).returncode, 0)
        program = root / "usr/bin/cadre"
        program.unlink()
        (program / "mine").mkdir(parents=True)  # a folder that is not empty: nobody can remove it as a file
        done = self.manifest(prefix="/usr", DESTDIR=str(root))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("1 of the 2 files could not be removed, such as", " ".join(done.stderr.split()))
        (program / "mine").rmdir()
        program.rmdir()
        self.assertEqual(self.manifest(prefix="/usr", DESTDIR=str(root)).returncode, 0)
        self.assertEqual([path for path in root.rglob("*") if not path.is_dir()], [])


if __name__ == "__main__":
    unittest.main()
