"""The Debian packages: their dependencies and contents, and an external project that trains with them."""

import pathlib
import subprocess
import unittest

from installation import ARROW_ROOT, BUILD, CMAKE, TORCH_ROOT, VERSION, InstallationTest, readme_lines, run

FILES = {  # a file that each package must have
    "cadre": "usr/bin/cadre",
    "cadre-doc": "usr/share/doc/cadre/docs/tutorials/pbt.md",
    "libcadre-dev": "usr/include/cadre/tune.h",
}
if TORCH_ROOT:
    FILES["libcadre-torch-dev"] = "usr/include/cadre/torch.h"
    FILES["libcadre-vision-dev"] = "usr/include/cadre/vision.h"
if ARROW_ROOT:
    FILES["libcadre-storage-dev"] = "usr/lib/cadre/libcadre_object_storage.so"
    FILES["libcadre-data-dev"] = "usr/include/cadre/data.h"
if TORCH_ROOT and ARROW_ROOT:
    FILES["libcadre-data-torch-dev"] = "usr/include/cadre/data_torch.h"
# Each package depends on the packages of the libraries that it is linked with.
DEPENDS = {
    "libcadre-dev": {"libcapnp-dev", "libfmt-dev", "libnlopt-dev", "libsqlite3-dev", "libxxhash-dev"},
    "libcadre-torch-dev": {"libcadre-dev", "zlib1g-dev"},
    "libcadre-vision-dev": {"libcadre-torch-dev"},
    "libcadre-storage-dev": {"libcadre-dev", "libcurl4", "libssl3"},
    "libcadre-data-dev": {"libcadre-dev", "libjpeg-dev", "libpng-dev"},
    "libcadre-data-torch-dev": {"libcadre-data-dev", "libcadre-torch-dev"},
    "cadre-doc": {""},
}


class DebianTest(InstallationTest):
    """Has the files of the packages, `packages`, by name, and the folder that they are unpacked to, `prefix`."""

    @classmethod
    def install(cls, directory):
        run(pathlib.Path(CMAKE).with_name("cpack"), "--config", BUILD / "CPackConfig.cmake", "-B", directory / "packages")
        files = (directory / "packages").glob("*.deb")
        cls.packages = {file.name.split("_")[0]: file for file in files}
        for file in cls.packages.values():
            run("dpkg-deb", "-x", file, directory / "root")
        return directory / "root" / "usr"

    def field(self, package, name):
        return run("dpkg-deb", "--field", self.packages[package], name).rstrip("\n")

    def test_packages_are_named_by_version_and_architecture(self):
        architecture = run("dpkg", "--print-architecture").strip()
        self.assertEqual({package: file.name for package, file in self.packages.items()},
                         {package: f"{package}_{VERSION}_{'all' if package == 'cadre-doc' else architecture}.deb"
                          for package in FILES})

    def test_each_package_describes_itself(self):
        summaries = set()
        for package in FILES:
            with self.subTest(package):
                summary, *description = self.field(package, "Description").splitlines()
                summaries.add(summary)
                self.assertLessEqual(len(summary), 80)
                self.assertTrue(description)
                self.assertLessEqual(max(map(len, description)), 80)
                self.assertRegex(self.field(package, "Maintainer"), r"^.+ <.+@.+>$")
                self.assertTrue((self.prefix / "share" / "doc" / package / "copyright").exists())
                self.assertTrue((self.prefix.parent / FILES[package]).exists())
        self.assertEqual(len(summaries), len(FILES))

    def test_the_program_brings_its_manual_page_and_what_completes_it(self):
        share = self.prefix / "share"
        self.assertIn(".TH CADRE 1", (share / "man/man1/cadre.1").read_text())
        for file in ("bash-completion/completions/cadre", "zsh/vendor-completions/_cadre", "zsh/site-functions/_cadre",
                     "fish/vendor_completions.d/cadre.fish"):
            self.assertIn("Completion of cadre", (share / file).read_text())
        self.assertEqual(self.field("cadre", "Recommends"), "librsvg2-2")

    def test_openssls_licence_is_beside_the_library_that_contains_it(self):
        self.assertTrue(list((self.prefix / "lib").rglob("libcadre_tls.so")))
        licence = (self.prefix / "share" / "doc" / "libcadre-dev" / "openssl.txt").read_text(encoding="utf-8")
        self.assertIn("Apache", licence)

    def test_licences_of_libraries_that_are_inside_are_in_the_packages(self):
        for package, libraries in {"libcadre-dev": {"rapidjson", "eigen"}, "libcadre-storage-dev": {"rapidjson"},
                                   "cadre": {"rapidjson", "eigen", "cli11", "tomlplusplus", "uplot"}}.items():
            if package in FILES:
                licences = self.prefix / "share" / "doc" / package / "licenses"
                self.assertEqual({file.stem for file in licences.iterdir()}, libraries)

    def test_dependencies_are_the_libraries_that_are_linked(self):
        depends = {package: {name.split(" ")[0] for name in self.field(package, "Depends").split(", ")} for package in FILES}
        self.assertLessEqual({"libc6", "libsqlite3-0", "libstdc++6"}, depends["cadre"])
        del depends["cadre"]
        self.assertEqual(depends, {package: DEPENDS[package] for package in depends})

    def test_nothing_in_them_names_where_it_was_built(self):
        found = subprocess.run(["grep", "-rl", BUILD, self.prefix], capture_output=True, text=True, check=False)
        self.assertEqual(found.stdout, "")

    def test_a_project_trains_with_what_they_unpack_to(self):
        lines = readme_lines("cadre::tune")
        experiment = self.check_climb(self.build(self.project("stranger", lines, "consumer")))
        self.assertIn("climb", run(self.prefix / "bin" / "cadre", "ls", experiment.parent))


if __name__ == "__main__":
    unittest.main()
