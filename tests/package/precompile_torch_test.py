"""cadre_precompile: external programs with libtorch share a precompiled header, with each compiler."""

import os
import unittest

from installation import CMAKE, COMPILERS, TORCH_ROOT, WITH_WARNINGS, InstallationTest, readme_lines, run

LINES = readme_lines("cadre::torch")


class PrecompileTorchTest(InstallationTest):
    components = ("tune", "torch")

    def test_precompiled_headers_are_shared_among_programs(self):
        lines = LINES + "add_executable(other train.cc)\ntarget_link_libraries(other PRIVATE cadre::torch)\n"
        project = self.project("precompiled", lines + "cadre_precompile(train other)\n", "consumer_torch")
        for compiler in COMPILERS:
            with self.subTest(compiler):
                build = project / os.path.basename(compiler)
                done = self.configure(project, f"-DCADRE_TORCH_ROOT={TORCH_ROOT}", *WITH_WARNINGS, "-DCMAKE_CXX_STANDARD=20",
                                      build=build, compiler=compiler)
                self.assertEqual(done.returncode, 0, done.stderr)
                run(CMAKE, "--build", build, "-j", "2")
                headers = [path.relative_to(build).parts[1] for path in build.rglob("*.[gp]ch")]
                self.assertEqual(headers, ["train.dir"])
                run(build / "other", build / "results")


if __name__ == "__main__":
    unittest.main()
