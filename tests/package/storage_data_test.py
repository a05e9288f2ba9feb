"""The installed library for object storages is complete: it needs no files of the checkout or of a Python wheel.

The file's name has "data" because its tests need Arrow.
"""

import os
import pathlib
import shutil
import subprocess
import unittest

from installation import ARROW_ROOT, BUILD, SOURCE, InstallationTest, object_server, readme_lines, run

LINES = readme_lines("cadre::tune").replace("REQUIRED)", "REQUIRED COMPONENTS storage)").replace(
    "PRIVATE cadre::tune", "PRIVATE cadre::tune cadre::storage")


class StorageTest(InstallationTest):
    components = ("program", "tune", "storage")

    @property
    def folder(self):
        return next(self.prefix.rglob("libcadre_object_storage.so")).parent

    def test_a_project_trains_into_s3_with_nothing_but_the_package(self):
        train = self.build(self.project("into_s3", LINES, "consumer"))
        with object_server() as environment:
            environment["HOME"] = str(self.directory)  # where the working directory is made
            environment["LD_DEBUG"] = "files"
            environment["LD_DEBUG_OUTPUT"] = str(self.directory / "loaded")
            said = run(train, "s3://bucket/experiments", cwd=self.directory, env=environment)
            self.assertIn("errors 0", said)
            listed = run(self.prefix / "bin" / "cadre", "ls", "s3://bucket/experiments", cwd=self.directory, env=environment)
            self.assertIn("climb", listed)
        loaded = "".join(path.read_text(encoding="utf-8") for path in self.directory.glob("loaded.*"))
        self.assertIn(f"calling init: {self.folder}/libarrow.so", loaded)
        self.assertIn(f"calling init: {self.folder}/libarrow_s3.so", loaded)
        for place in SOURCE, BUILD, ARROW_ROOT:
            self.assertNotIn(str(place), loaded)

    def test_results_are_exported_as_parquet(self):
        (self.directory / "tune.toml").write_text('name = "first"\nstorage_path = "."\n')
        run(self.prefix / "bin" / "cadre", "tune", "tune.toml", "--", self.prefix / "bin" / "cadre-report", "loss=1",
            cwd=self.directory)
        run(self.prefix / "bin" / "cadre", "export", "first", "--parquet", "first.parquet", cwd=self.directory)
        self.assertEqual((self.directory / "first.parquet").read_bytes()[:4], b"PAR1")

    def test_arrow_that_was_removed_is_named_with_what_to_do(self):
        broken = self.directory / "broken"
        shutil.copytree(self.prefix, broken)
        for library in broken.rglob("libarrow.so.*"):
            library.unlink()
        program = [str(broken / "bin" / "cadre"), "ls", "s3://bucket/experiments"]
        environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120, env=environment)
        self.assertEqual(done.returncode, 1)
        self.assertIn("s3://bucket/experiments needs Arrow", done.stderr)
        self.assertIn("CADRE_ARROW_ROOT", done.stderr)
        with object_server() as environment:
            environment["CADRE_ARROW_ROOT"] = ARROW_ROOT  # as the message says
            run(*program, env=environment)

    def test_arrows_licence_is_there(self):
        licences = list((self.prefix / "share" / "doc" / "libcadre-storage-dev" / "arrow").glob("*.txt"))
        self.assertEqual({path.name for path in licences}, {"LICENSE.txt", "NOTICE.txt"})
        self.assertTrue(pathlib.Path(ARROW_ROOT).is_dir())


if __name__ == "__main__":
    unittest.main()
