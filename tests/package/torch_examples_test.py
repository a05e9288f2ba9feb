"""The installed examples are a project of their own, which builds with g++ and clang, in C++20 and C++23.

The pages about them show parts of these programs. One compiler's C++20 is omitted: Cadre itself was built with it,
including the examples. Programs with libtorch build slowly, so all of them are built in one of the other three ways,
the one in which most differs, and one program in each of the others.
"""

import os
import shutil
import unittest

from installation import ARROW_ROOT, CMAKE, COMPILERS, SOURCE, TORCH_ROOT, InstallationTest, run

PROGRAMS = ["checkpoint_mechanisms", "dcgan_mnist", "fashion_mnist_train", "pbt_distributed", "pbt_mnist"]
if ARROW_ROOT:
    PROGRAMS += ["async_validation", "resnet_fashion"]


class TorchExamplesTest(InstallationTest):
    components = ("tune", "torch", "vision", "doc") + (("storage", "data", "data_torch") if ARROW_ROOT else ())

    def build_examples(self, compiler, standard, programs):
        """Builds the programs in a copy of the installed folder; returns the folder with the programs."""
        name = f"{os.path.basename(compiler)}-{standard}"
        project = self.directory / name
        shutil.copytree(self.prefix / "share" / "doc" / "cadre" / "examples", project)
        done = self.configure(project, f"-DCMAKE_CXX_STANDARD={standard}", f"-DCADRE_TORCH_ROOT={TORCH_ROOT}",
                              f"-DCADRE_ARROW_ROOT={ARROW_ROOT}", "-DCMAKE_BUILD_TYPE=None", compiler=compiler)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        run(CMAKE, "--build", project / "build", "-j", "2", "--target", *programs, timeout=1500)
        return project / "build"

    def test_all_build_with_another_compiler_in_cpp_23_and_train(self):
        build = self.build_examples(COMPILERS[-1], "23", PROGRAMS)
        for program in PROGRAMS:
            self.assertIn("--storage-path", run(build / program, "--help"))
        # The second one changes images at random: that must not depend on a compiler's order of evaluation.
        for program, words in ("pbt_mnist", "Best trial"), ("fashion_mnist_train", "accuracy on the test images"):
            said = run(build / program, "--smoke-test", "--data-dir", SOURCE / "data" / "mnist", cwd=self.directory,
                       env=os.environ | {"OMP_NUM_THREADS": "1"})
            self.assertIn(words, said)

    @unittest.skipIf(len(COMPILERS) < 2, "there is no other compiler")
    def test_one_builds_with_the_same_compiler_in_cpp_23(self):
        self.build_examples(COMPILERS[0], "23", ["pbt_mnist"])

    @unittest.skipIf(len(COMPILERS) < 2, "there is no other compiler")
    def test_one_builds_with_another_compiler_in_cpp_20(self):
        self.build_examples(COMPILERS[1], "20", ["pbt_mnist"])


if __name__ == "__main__":
    unittest.main()
