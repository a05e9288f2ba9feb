"""tools/install_torch.sh takes the right build of torch from where there is one. pip and uv are made up: they say what they
were asked for, and have what a test says."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["CADRE_SOURCE"]) / "tools" / "install_torch.sh"

# pip and uv: what is asked for is written down; a request that has one of the words of $HAS in it succeeds.
INSTALLER = """#!/bin/sh
case "$*" in *importlib*) [ -n "$CUDA_TOOLKIT" ] && echo "$CUDA_TOOLKIT"; exit; esac
echo "$(basename "$0") $*" | sed 's/^python -m pip .* install/pip install/' >>"$ASKED"
for word in $HAS; do
  case "$*" in *"$word"*)
    case "$*" in
      *torch*+cpu | *torch-backend=cpu*) echo "__version__ = '2.13.0+cpu'" >"$TORCH/version.py" ;;
      *torch=*) echo "__version__ = '2.13.0+cu130'" >"$TORCH/version.py" ;;
    esac
    exit 0 ;;
  esac
done
exit 1
"""
HAS_DRIVER = any(pathlib.Path(path).exists() for path in ("/proc/driver/nvidia/version", "/dev/nvidiactl"))


class InstallTorchTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.venv = pathlib.Path(temporary.name)
        self.torch = self.venv / "lib" / "python3.11" / "site-packages" / "torch"
        for folder in "include", "lib":
            (self.torch / folder).mkdir(parents=True)
        (self.venv / "bin").mkdir()
        for name in "python", "uv":
            self.program(name, INSTALLER)
        self.asked = self.venv / "asked"

    def program(self, name, text):
        path = self.venv / "bin" / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def install(self, has, **environment):
        """What was asked for, and what was said."""
        self.asked.write_text("", encoding="utf-8")
        done = subprocess.run(
            [SCRIPT, self.venv, "2.13.0"], capture_output=True, text=True, check=False, timeout=50,
            env={"PATH": f"{self.venv}/bin:/usr/bin:/bin", "HAS": has, "ASKED": str(self.asked), "TORCH": str(self.torch)}
            | environment)
        self.ended = done.returncode
        return self.asked.read_text(encoding="utf-8").splitlines(), done.stdout + done.stderr

    @unittest.skipIf(HAS_DRIVER, "there is an NVIDIA driver")
    def test_without_a_driver_the_cpu_build_is_what_pip_is_set_up_for(self):
        asked, said = self.install("torch==2.13.0+cpu")
        self.assertEqual((self.ended, asked), (0, ["pip install torch==2.13.0+cpu"]))
        self.assertIn("there is no NVIDIA driver", said)
        self.assertIn("torch is 2.13.0+cpu", said)

    def test_where_pip_has_none_uv_gets_the_cpu_build(self):
        asked, said = self.install("uv torch-backend=cpu", TORCH_BUILD="cpu")
        self.assertEqual(self.ended, 0, said)
        self.assertEqual([line.split()[0] for line in asked], ["pip", "pip", "uv"])
        self.assertIn("--torch-backend=cpu", asked[2])
        self.assertTrue(asked[2].endswith("torch==2.13.0"), asked)

    @unittest.skipIf(HAS_DRIVER, "there is an NVIDIA driver")
    def test_where_there_is_no_cpu_build_at_all_the_cuda_build_is_taken_and_it_is_said_why(self):
        asked, said = self.install("torch===2.13.0 cuda-toolkit", CUDA_TOOLKIT="13.0.3.0")
        self.assertEqual(self.ended, 0, said)
        self.assertEqual(asked[-2:], ["pip install torch===2.13.0", "pip install cuda-toolkit[crt,cccl]==13.0.3.0"])
        self.assertIn("found no CPU build", said)
        self.assertIn("about 5 GB, because there is no other", said)
        self.assertIn("TORCH_INDEX_URL", said)

    def test_who_asks_for_the_cpu_build_gets_no_other_one(self):
        _, said = self.install("torch===2.13.0", TORCH_BUILD="cpu")
        self.assertEqual(self.ended, 1)
        self.assertIn("found no CPU build", said)
        self.assertEqual(self.install("torch==2.13.0+cpu", TORCH_BUILD="cpu")[0], ["pip install torch==2.13.0+cpu"])

    def test_with_a_driver_or_on_request_it_is_the_cuda_build_with_the_headers_that_nccl_needs(self):
        self.program("nvidia-smi", "#!/bin/sh\n")
        for environment in {}, {"TORCH_BUILD": "cuda"}:
            with self.subTest(environment):
                (self.venv / ".installed-torch").unlink(missing_ok=True)
                asked, _ = self.install("torch===2.13.0 cuda-toolkit", CUDA_TOOLKIT="13.0.3.0", **environment)
                self.assertEqual(self.ended, 0)
                self.assertEqual(asked, ["pip install torch===2.13.0", "pip install cuda-toolkit[crt,cccl]==13.0.3.0"])

    def test_an_index_that_is_named_is_the_one_that_is_asked(self):
        asked, _ = self.install("torch==2.13.0", TORCH_INDEX_URL="http://index", TORCH_BUILD="cpu")
        self.assertEqual(self.ended, 0)
        self.assertTrue(asked and all("--index-url http://index" in line for line in asked), asked)

    def test_a_second_time_nothing_is_asked_for_until_another_build_is_wanted(self):
        self.install("torch==2.13.0+cpu", TORCH_BUILD="cpu")
        self.assertEqual(self.install("", TORCH_BUILD="cpu"), ([], ""))
        self.assertEqual(self.install("torch===2.13.0", TORCH_BUILD="cuda")[0], ["pip install torch===2.13.0"])
        self.assertEqual(self.install("torch==2.13.0+cpu", TORCH_BUILD="cpu")[0], ["pip install torch==2.13.0+cpu"])

    def test_headers_of_another_build_are_newer_than_what_was_built_with_the_former_one(self):
        header = self.torch / "include" / "torch.h"
        header.touch()
        for build, is_new in ("cpu", True), ("cpu", False), ("cuda", True):
            os.utime(header, (0, 0))
            (self.venv / ".installed-torch").unlink(missing_ok=True)
            self.install("torch==2.13.0+cpu torch===2.13.0", TORCH_BUILD=build)
            self.assertEqual(header.stat().st_mtime > 0, is_new, build)

    def test_headers_of_an_installation_that_was_interrupted_are_newer_than_what_was_built_before_it(self):
        header = self.torch / "include" / "torch.h"
        header.touch()
        self.install("torch==2.13.0+cpu", TORCH_BUILD="cpu")
        os.utime(header, (0, 0))
        self.install("--no-deps", TORCH_INDEX_URL="http://index")  # brings another build, and not all that it needs
        self.assertEqual((self.ended, header.stat().st_mtime), (1, 0))
        self.install("torch==2.13.0", TORCH_INDEX_URL="http://index")
        self.assertEqual(self.ended, 0)
        self.assertGreater(header.stat().st_mtime, 0)

    def test_an_installation_that_failed_is_tried_again(self):
        _, said = self.install("", TORCH_BUILD="cuda")
        self.assertEqual(self.ended, 1)
        self.assertIn("could not install the CUDA build", said)
        self.assertEqual(self.install("torch===2.13.0", TORCH_BUILD="cuda")[0], ["pip install torch===2.13.0"])

    def test_a_build_that_does_not_exist_is_refused(self):
        asked, said = self.install("torch", TORCH_BUILD="rocm")
        self.assertEqual((self.ended, asked), (2, []))
        self.assertIn("there are: cpu, cuda", said)


if __name__ == "__main__":
    unittest.main()
