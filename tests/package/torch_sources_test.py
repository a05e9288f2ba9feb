"""A project compiles cadre::torch, cadre::vision and cadre::data_torch from the installed sources, for another libtorch."""

import os
import unittest

from installation import ARROW_ROOT, COMPILERS, TORCH_ROOT, InstallationTest, readme_lines, run

LINES = readme_lines("cadre::torch")


class TorchSourcesTest(InstallationTest):
    components = ("tune", "torch", "vision") + (("data", "data_torch") if ARROW_ROOT else ())

    def test_a_program_trains_with_what_the_project_compiled_itself(self):
        lines = LINES.replace("COMPONENTS torch", "COMPONENTS torch vision")
        if ARROW_ROOT:
            lines = lines.replace("COMPONENTS torch vision", "COMPONENTS torch vision data data_torch")
            lines = lines.replace("cadre::torch)", "cadre::data_torch)")
        # Removes all archives but those of the core, so that they cannot be used.
        for archive in self.prefix.rglob("libcadre_*.a"):
            if archive.name.removeprefix("libcadre_") not in ("tune.a", "data.a"):
                archive.unlink()
        project = self.project("sources", lines, "consumer_torch")
        done = self.configure(project, "-DCADRE_TORCH_FROM_SOURCES=ON", f"-DCADRE_TORCH_ROOT={TORCH_ROOT}",
                              f"-DCADRE_ARROW_ROOT={ARROW_ROOT}", compiler=COMPILERS[-1])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        run("ninja", "-C", project / "build", "-j", "2", "train", "cadre_vision", *(["cadre_data_torch"] if ARROW_ROOT else []), timeout=1500)
        said = run(project / "build" / "train", self.directory / "results", env=os.environ | {"OMP_NUM_THREADS": "1"})
        self.assertEqual(len(said.splitlines()), 2, said)


if __name__ == "__main__":
    unittest.main()
