"""Builds of torch, as CMake finds them: builds other than the package's own, and missing headers of CUDA."""

import re
import unittest

from installation import SOURCE, TORCH_ROOT, InstallationTest, readme_lines

LINES = readme_lines("cadre::torch")

# The part of Cadre's own build that looks for torch.
FROM_SOURCES = f"""cmake_minimum_required(VERSION 3.25)
project(training LANGUAGES CXX)
include("{SOURCE}/cmake/Torch.cmake")
message(STATUS "fault=${{cadre_torch_fault}} kind=${{cadre_torch_kind}} nccl=${{cadre_torch_nccl}}.")
"""
# The headers of CUDA and NCCL that cmake/Torch.cmake needs, of a version of CUDA that does not exist.
CUDA_HEADERS = {"cuda_runtime_api.h": "#define CUDART_VERSION 99000\n", "crt/host_config.h": "", "nv/target": "",
                "cublas_v2.h": "", "cusparse.h": "", "cusolverDn.h": ""}
NCCL_HEADER = "#define NCCL_MAJOR 2\n#define NCCL_MINOR 98\n#define NCCL_PATCH 7\n"


class TorchBuildsTest(InstallationTest):
    components = ("tune", "torch")

    def torch(self, name, local_version, version=None):
        """Makes a folder that looks like a build of torch; returns it."""
        root = self.directory / f"torch-{name}" / "torch"
        (root / "lib").mkdir(parents=True)
        (root / "include" / "torch" / "csrc" / "api" / "include").mkdir(parents=True)
        for library in ["libtorch_cpu.so"] + ["libtorch_cuda.so"] * local_version.startswith("cu"):
            (root / "lib" / library).touch()
        version = version or self.recorded("version")
        (root / "version.py").write_text(f"__version__ = '{version}+{local_version}'\n", encoding="utf-8")
        return root

    def record(self):
        return next(self.prefix.rglob("cadreTorchBuild.cmake"))

    def recorded(self, what):
        return re.search(rf"built_{what} ?(.*)\)", self.record().read_text(encoding="utf-8"))[1]

    def pretend_built_with(self, kind, nccl):
        """Changes the record of the installed package for this test."""
        before = self.record().read_text(encoding="utf-8")
        self.addCleanup(self.record().write_text, before, encoding="utf-8")
        self.record().write_text(f"set(cadre_torch_built_version {self.recorded('version')})\n"
                                 f"set(cadre_torch_built_kind {kind})\nset(cadre_torch_built_nccl {nccl})\n",
                                 encoding="utf-8")

    def configured_with(self, name, root):
        done = self.configure(self.project(name, LINES, "consumer_torch"), f"-DCADRE_TORCH_ROOT={root}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return " ".join(done.stderr.split())

    def test_the_same_build_says_nothing(self):
        self.assertNotIn("cadre::torch", self.configured_with("same", TORCH_ROOT))

    def test_a_cpu_build_of_torch_cannot_link_what_has_nccl(self):
        self.pretend_built_with("cu130", "2.29.7")
        said = self.configured_with("no_gpu", self.torch("no_gpu", "cpu"))
        self.assertIn("is a cpu build", said)
        self.assertIn("built with a cu130 build", said)
        self.assertIn("will not link", said)
        self.assertIn("-DCADRE_TORCH_ROOT", said)

    def test_a_cuda_build_of_torch_trains_without_nccl_where_the_package_has_none(self):
        self.pretend_built_with("cpu", "")
        self.assertIn("goes through Gloo", self.configured_with("no_nccl", self.torch("no_nccl", "cu130")))

    def test_another_cuda_is_warned_about(self):
        self.pretend_built_with("cu130", "2.29.7")
        self.assertIn("CUDA or NCCL is another one", self.configured_with("older", self.torch("older", "cu126")))

    def test_an_unpacked_libtorch_is_known_by_its_build_version(self):
        self.pretend_built_with("cu130", "2.29.7")
        root = self.torch("unpacked", "cpu")
        (root / "version.py").unlink()
        (root / "build-version").write_text(f"{self.recorded('version')}+cpu\n", encoding="utf-8")
        self.assertIn("is a cpu build", self.configured_with("unpacked", root))

    def test_for_another_version_that_the_sources_build_with_the_project_compiles_them(self):
        other = self.torch("other", "cpu", "2.12.9" if self.recorded("version").startswith("2.13") else "2.13.9")
        project = self.project("other", LINES, "consumer_torch")
        done = self.configure(project, f"-DCADRE_TORCH_ROOT={other}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cadre::torch is compiled in this project, for torch 2.1", done.stdout)
        self.assertIn(f"installed is for {self.recorded('version')}", done.stdout)
        self.assertIn("CMakeFiles/cadre_torch.dir/", (project / "build" / "build.ninja").read_text(encoding="utf-8"))

    def test_the_project_may_compile_it_for_another_build_of_the_same_version(self):
        self.pretend_built_with("cu130", "2.29.7")
        other = self.torch("own", "cpu")
        done = self.configure(self.project("own", LINES, "consumer_torch"), f"-DCADRE_TORCH_ROOT={other}",
                              "-DCADRE_TORCH_FROM_SOURCES=ON")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_another_build_in_the_same_place_is_seen_by_the_next_configuration(self):
        root = self.torch("switched", "cpu")
        project = self.project("switched", LINES, "consumer_torch")
        for kind, warned in ("cu999", True), ("cpu", False):
            if kind != "cpu":
                (root / "lib" / "libtorch_cuda.so").touch()
            else:
                (root / "lib" / "libtorch_cuda.so").unlink()
            (root / "version.py").write_text(f"__version__ = '{self.recorded('version')}+{kind}'\n", encoding="utf-8")
            done = self.configure(project, f"-DCADRE_TORCH_ROOT={root}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("cu999 build" in " ".join(done.stderr.split()), warned, done.stderr)
            self.assertEqual("libtorch_cuda" in (project / "build" / "build.ninja").read_text(encoding="utf-8"), warned)


class VirtualEnvironmentTest(InstallationTest):
    """Virtual environments that the tests make up."""

    @classmethod
    def install(cls, directory):
        return directory  # installs nothing: the sources are enough

    def test_of_two_pythons_the_latest_ones_torch_is_found(self):
        venv = self.directory / "venv"
        for python, version in ("python3.9", "1.0.0"), ("python3.11", "2.13.0"):
            torch = venv / "lib" / python / "site-packages" / "torch"
            (torch / "lib").mkdir(parents=True)
            (torch / "lib" / "libtorch_cpu.so").touch()
            (torch / "version.py").write_text(f"__version__ = '{version}+cpu'\n", encoding="utf-8")
        done = self.configure(self.project("of_two_pythons", FROM_SOURCES, "consumer_torch"), f"-DCADRE_VENV={venv}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("fault= kind=cpu", done.stdout)


class CudaHeadersTest(InstallationTest):
    """A build of torch for CUDA 99.0, with headers in places that the tests choose."""

    @classmethod
    def install(cls, directory):
        return directory  # installs nothing: the sources are enough

    def setUp(self):
        self.site_packages = self.directory / self.id().rpartition(".")[2] / "site-packages"
        self.torch = self.site_packages / "torch"
        c10d = self.torch / "include" / "torch" / "csrc" / "distributed" / "c10d"
        self.write(c10d, {"ProcessGroupNCCL.hpp": "#include <crt/host_config.h>\n#include <nv/target>\n#include <nccl.h>\n"})
        self.write(self.torch, {"version.py": "__version__ = '2.13.0+cu990'\n", "lib/libtorch_cpu.so": "",
                                "lib/libtorch_cuda.so": ""})

    def write(self, folder, files):
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        return folder

    def toolkit(self, name, **changed):
        folder = self.site_packages.parent / name
        self.write(folder / "include", CUDA_HEADERS | {"nccl.h": NCCL_HEADER} | changed)
        return folder

    def found(self, *definitions, **environment):
        """Configures anew; returns the version of NCCL that was found, and the messages."""
        self.configurations = getattr(self, "configurations", 0) + 1
        project = self.project(f"{self.torch.parent.parent.name}_{self.configurations}", FROM_SOURCES, "consumer_torch")
        done = self.configure(project, f"-DCADRE_TORCH_ROOT={self.torch}", *definitions, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("fault= kind=cu990", done.stdout)
        return re.search("nccl=(.*)\\.\n", done.stdout)[1], " ".join(done.stderr.split())

    def test_missing_headers_are_named_with_the_wheels_that_have_them_and_cadre_builds_without_nccl(self):
        headers = CUDA_HEADERS.copy()
        del headers["crt/host_config.h"], headers["nv/target"]
        self.write(self.site_packages / "nvidia" / "cu99" / "include", headers)
        self.write(self.site_packages / "nvidia" / "nccl" / "include", {"nccl.h": NCCL_HEADER})
        (self.site_packages / "cuda_toolkit-99.0.3.0.dist-info").mkdir()
        nccl, said = self.found()
        self.assertEqual(nccl, "")
        self.assertIn("built without NCCL", said)
        self.assertIn("incomplete: crt/host_config.h, nv/target.", said)
        self.assertIn("pip install 'cuda-toolkit[crt,cccl]==99.0.3'", said)
        self.assertIn("-DCUDAToolkit_ROOT=", said)

        self.write(self.site_packages / "nvidia" / "cu99" / "include", CUDA_HEADERS)
        self.assertEqual(self.found(), ("2.98.7", ""))

    def test_what_the_wheels_lack_comes_from_a_toolkit_wherever_it_is_named(self):
        toolkit = self.toolkit("toolkit")
        self.write(toolkit, {"bin/nvcc": "#!/bin/sh\n"})
        (toolkit / "bin" / "nvcc").chmod(0o755)
        named = str(toolkit)
        self.assertEqual(self.found(f"-DCUDAToolkit_ROOT={named}"), ("2.98.7", ""))
        for variable, value in (("CUDAToolkit_ROOT", named), ("CUDA_HOME", named), ("CUDA_PATH", named),
                                ("PATH", f"{toolkit}/bin:/usr/local/bin:/usr/bin:/bin")):
            with self.subTest(variable):
                self.assertEqual(self.found(**{variable: value}), ("2.98.7", ""))

    def test_a_toolkit_of_another_major_version_is_no_help(self):
        toolkit = self.toolkit("older", **{"cuda_runtime_api.h": "#define CUDART_VERSION 12060\n"})
        nccl, said = self.found(CUDA_HOME=str(toolkit))
        self.assertEqual(nccl, "")
        self.assertIn("nccl.h", said)

    def test_headers_that_are_there_and_do_not_compile_are_not_taken(self):
        toolkit = self.toolkit("broken", **{"nv/target": "#error this compiler is too new\n"})
        nccl, said = self.found(CUDA_HOME=str(toolkit))
        self.assertEqual(nccl, "")
        self.assertIn("this compiler is too new", said)


if __name__ == "__main__":
    unittest.main()
