"""tools/setup.sh and tools/make_venv.sh mend what an interruption has left. All that they call is made up: a package
manager that has everything, and a Python that writes down what it is asked for."""

import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(os.environ["CADRE_SOURCE"]) / "tools"

# An environment has pip once `-m venv` has ended; $INTERRUPTED lets it end before. `-m pip` fails where it lacks pip.
PYTHON = """#!/bin/sh
folder=$(dirname "$(dirname "$0")")
pip="$folder/lib/python3.$MINOR/site-packages/pip-1.dist-info"
case "$1 $2" in
  "-m venv")
    for venv; do :; done
    [ "$3" != --clear ] || rm -rf "$venv"
    mkdir -p "$venv/bin" "$venv/lib/python3.$MINOR/site-packages"
    cp "$0" "$venv/bin/python"
    [ -z "$INTERRUPTED" ] && mkdir -p "$venv/lib/python3.$MINOR/site-packages/pip-1.dist-info" ;;
  "-m pip") echo "$*" >>"$ASKED"; [ -d "$pip" ] && case "$*" in *"$FAILS"*) exit 1 ;; esac ;;
  "-c import"*) [ -d "$pip" ] ;;
esac
"""
# The first updates meet another program that reads the package lists.
APT_GET = """#!/bin/sh
echo "$*" >>"$APT"
case "$*" in
  *update*)
    [ "$(grep -c update "$APT")" -gt "$LOCKED" ] && exit
    echo "$SAID" >&2
    exit 100 ;;
esac
"""
# Everything is installed.
DPKG_QUERY = """#!/bin/sh
shift 3
for package; do printf 'ii %s ' "$package"; done
"""


class SetupTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="with space ")
        self.addCleanup(temporary.cleanup)
        self.checkout = pathlib.Path(temporary.name)
        self.venv = self.checkout / ".venv"
        (self.checkout / "data" / "mnist").mkdir(parents=True)
        for name in "setup.sh", "make_venv.sh":
            (self.checkout / "tools").mkdir(exist_ok=True)
            shutil.copy(TOOLS / name, self.checkout / "tools")
        for name, text in (("tools/install_torch.sh", "#!/bin/sh\n"), ("bin/apt-get", "#!/bin/sh\nexit 1\n"),
                           ("bin/dpkg-query", DPKG_QUERY), ("bin/python3", PYTHON)):
            path = self.checkout / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        self.asked = self.checkout / "asked"

    def environment(self, **environment):
        return {"PATH": f"{self.checkout}/bin:/usr/bin:/bin", "PYTHON": str(self.checkout / "bin" / "python3"),
                "MINOR": "11", "ASKED": str(self.asked), "FAILS": "nothing"} | environment

    def set_up(self, **environment):
        """Returns what pip was asked for, and what was said."""
        self.asked.write_text("", encoding="utf-8")
        done = subprocess.run([self.checkout / "tools" / "setup.sh"], capture_output=True, text=True, check=False,
                              timeout=50, env=self.environment(**environment))
        self.ended = done.returncode
        return self.asked.read_text(encoding="utf-8").splitlines(), done.stdout + done.stderr

    def test_a_second_time_nothing_is_done(self):
        asked, said = self.set_up()
        self.assertEqual(self.ended, 0, said)
        self.assertGreater(len(asked), 2)
        self.assertEqual((self.set_up(), self.ended), (([], ""), 0))

    def test_an_environment_without_pip_is_completed(self):
        _, said = self.set_up(INTERRUPTED="yes")
        self.assertNotEqual(self.ended, 0)
        self.assertIn("could not make the virtual environment", said)
        self.assertTrue((self.venv / "bin" / "python").exists())
        (self.venv / "mine").touch()
        self.set_up()
        self.assertEqual(self.ended, 0)
        self.assertTrue((self.venv / "mine").exists(), "nothing is lost that had not been made for another Python")

    def test_after_an_upgrade_of_python_everything_is_installed_again(self):
        first, _ = self.set_up()
        asked, said = self.set_up(MINOR="13")
        self.assertEqual((self.ended, asked), (0, first), said)
        self.assertEqual([path.name for path in (self.venv / "lib").iterdir()], ["python3.13"])

    def test_what_was_being_installed_is_installed_again(self):
        self.set_up()
        (self.venv / ".installed-arrow").write_text("pyarrow==1", encoding="utf-8")
        self.set_up(FAILS="pyarrow")
        self.assertEqual(self.ended, 1)
        self.assertFalse((self.venv / ".installed-arrow").exists(), "whatever was there before may be gone")
        asked, _ = self.set_up()
        self.assertEqual((self.ended, len(asked)), (0, 1))
        self.assertIn("pyarrow", asked[0])

    def install_packages(self, locked, said):
        """Returns what apt-get was asked for where no package is installed yet, and what was said."""
        for name, text in (("apt-get", APT_GET), ("dpkg-query", "#!/bin/sh\n"), ("sleep", "#!/bin/sh\n"),
                           ("sudo", '#!/bin/sh\n[ "$1" = -v ] || exec "$@"\n')):
            path = self.checkout / "bin" / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        asked = self.checkout / "apt"
        asked.unlink(missing_ok=True)
        _, said = self.set_up(APT=str(asked), LOCKED=str(locked), SAID=said)
        return [line.split() for line in asked.read_text(encoding="utf-8").splitlines()], said

    def test_another_program_that_installs_packages_is_waited_for(self):
        asked, said = self.install_packages(2, "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7")
        self.assertEqual(self.ended, 0, said)
        self.assertEqual([words[3] for words in asked], ["update"] * 3 + ["install"])
        self.assertTrue(all("DPkg::Lock::Timeout=600" in words for words in asked), asked)

    def test_package_lists_that_cannot_be_read_end_it_at_once(self):
        asked, said = self.install_packages(9, "E: Failed to fetch http://deb.debian.org")
        self.assertEqual((self.ended, len(asked)), (1, 1))
        self.assertIn("could not read the package lists", said)
        self.assertIn("Failed to fetch", said)

    def test_two_take_turns(self):
        (self.checkout / ".setup").mkdir()
        with (self.checkout / ".setup" / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with subprocess.Popen([self.checkout / "tools" / "setup.sh"], stdout=subprocess.PIPE, text=True,
                                  env=self.environment()) as other:
                self.assertIn("waiting for the set-up", other.stdout.readline())
                self.assertFalse(self.venv.exists())
                fcntl.flock(lock, fcntl.LOCK_UN)
                other.communicate(timeout=50)
                self.assertEqual(other.returncode, 0)
        self.assertTrue(self.venv.exists())


if __name__ == "__main__":
    unittest.main()
