"""Completion of the program `cadre` in real shells, and its manual page in real readers of such pages."""

import os
import pathlib
import pty
import select
import shutil
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["CADRE_BIN"])
ENVIRONMENT = {"PATH": f"{BIN}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": "dumb", "COLUMNS": "200"}
DEADLINE_S = 120


def run(*command, cwd=None, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd, timeout=DEADLINE_S,
                          env=ENVIRONMENT | environment)
    assert done.returncode == 0 and done.stderr == "", (command, done)
    return done.stdout


def cadre(*arguments):
    return run(BIN / "cadre", *arguments)


COMMANDS = ["ls", "show", "logs", "tail", "nodes", "best", "importance", "plot", "report", "dashboard", "replay", "export",
            "suggest", "observe", "run", "stop", "pause", "resume", "enqueue", "tune", "completion", "man"]


class CompletionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "results").mkdir()
        (self.folder / "results.txt").touch()
        (self.folder / "ramp.toml").touch()

    def bash(self, line):
        """Returns what bash completes at the end of a line."""
        (self.folder / "complete.sh").write_text(cadre("completion", "bash"))
        words = line.split(" ")
        script = (f"source complete.sh; COMP_WORDS=({' '.join(repr(word) for word in words)}); "
                  f"COMP_CWORD={len(words) - 1}; _cadre; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        return sorted(run("bash", "-uc", script, cwd=self.folder).split())

    def fish(self, line):
        (self.folder / "complete.fish").write_text(cadre("completion", "fish"))
        told = run("fish", "--no-config", "-c", f"source complete.fish; complete -C '{line}'", cwd=self.folder,
                   HOME=str(self.folder))
        return sorted(text.split("\t")[0] for text in told.splitlines())

    def zsh(self, line):
        """Returns what an interactive zsh shows after a tab at the end of a line."""
        (self.folder / "complete.zsh").write_text(cadre("completion", "zsh"))
        process, fd = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], ENVIRONMENT | {"HOME": str(self.folder)})
        self.addCleanup(os.waitpid, process, 0)
        self.addCleanup(os.close, fd)
        output = ""

        def until(text):
            nonlocal output
            deadline = time.monotonic() + DEADLINE_S
            while text not in output:
                assert select.select([fd], [], [], max(deadline - time.monotonic(), 0))[0], output
                output += os.read(fd, 65536).decode()
            before, output = output.split(text, 1)
            return before

        def send(text):
            os.write(fd, text.encode())

        send("PS1='R'EADY PROMPT_EOL_MARK= LISTMAX=10000; autoload -U compinit; compinit -D; zstyle ':completion:*' verbose no; "
             "source ./complete.zsh; stty cols 200\n")
        until("READY")
        send(line + "\t")
        send("#TAKEN")
        return until("#TAKEN")

    def test_bash(self):
        self.assertEqual(self.bash("cadre "), sorted(COMMANDS))
        self.assertEqual(self.bash("cadre ex"), ["export"])
        self.assertEqual(self.bash("cadre --ver"), ["--version"])
        self.assertEqual(self.bash("cadre export --pa"), ["--parquet"])
        self.assertEqual(self.bash("cadre export --format "), ["csv", "jsonl"])
        self.assertEqual(self.bash("cadre export --format = j"), ["jsonl"])
        self.assertEqual(self.bash("cadre completion "), ["bash", "fish", "zsh"])
        self.assertEqual(self.bash("cadre show res"), ["results"])
        self.assertEqual(self.bash("cadre show --json res"), ["results"])
        self.assertEqual(self.bash("cadre export --metric loss res"), ["results"])
        self.assertEqual(self.bash("cadre plot results -o res"), ["results", "results.txt"])
        self.assertEqual(self.bash("cadre tune ra"), ["ramp.toml"])
        self.assertEqual(self.bash("cadre run ra"), ["ramp.toml"])
        self.assertEqual(self.bash("cadre show results "), [])
        self.assertEqual(self.bash("cadre report results res"), ["results"])
        self.assertEqual(self.bash("cadre dashboard res"), ["results"])
        for line in "stop results ", "stop results 1 ", "enqueue results ", "observe results 1 ":
            self.assertEqual(self.bash("cadre " + line), [], line)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        self.assertEqual(self.fish("cadre "), sorted(COMMANDS))
        self.assertEqual(self.fish("cadre ex"), ["export"])
        self.assertEqual(self.fish("cadre export --pa"), ["--parquet"])
        self.assertEqual(self.fish("cadre export --format "), ["csv", "jsonl"])
        self.assertEqual(self.fish("cadre completion "), ["bash", "fish", "zsh"])
        self.assertEqual(self.fish("cadre show res"), ["results/"])
        self.assertEqual(self.fish("cadre plot results -o res"), ["results.txt", "results/"])
        self.assertEqual(self.fish("cadre tune ra"), ["ramp.toml"])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        for line, completed in [("cadre exp", "cadre export "), ("cadre export --pa", "cadre export --parquet="),
                                ("cadre export --format j", "cadre export --format jsonl "),
                                ("cadre completion f", "cadre completion fish "), ("cadre show res", "cadre show results/"),
                                ("cadre plot results -o results.", "cadre plot results -o results.txt"),
                                ("cadre tune ra", "cadre tune ramp.toml")]:
            with self.subTest(line=line):
                self.assertIn(completed.strip(), self.zsh(line))
        listed = self.zsh("cadre ")
        for command in COMMANDS:
            self.assertIn(command, listed)


class ManPageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = pathlib.Path(folder.name) / "cadre.1"
        self.page.write_text(cadre("man"))

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_finds_no_fault(self):
        done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", self.page], capture_output=True, text=True)
        faults = [line for line in done.stdout.splitlines() if "missing date" not in line]  # the same at every build
        self.assertEqual(faults, [])

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_man_shows_each_command_with_what_its_help_says(self):
        text = run("man", "--warnings", "-l", self.page, MANWIDTH="200", MAN_KEEP_FORMATTING="")
        words = " ".join(text.split())
        self.assertIn("cadre - tunes programs, and looks at experiments", words)
        for command in COMMANDS:
            self.assertIn(f"cadre {command}", words)
            for line in cadre(command, "--help").splitlines():
                option = line.split()[0].split(",")[-1] if line.startswith("  -") else ""
                if option and option != "--help":
                    self.assertIn(option, words, command)
        self.assertIn("cadre logs [options] experiment [worker] Show what workers have printed.", words)
        self.assertIn("Begin with so many results [10]", words)
        self.assertIn("Go on while the experiment runs, until it ends", words)
        self.assertIn("Exit code: 0; 1: something is not found or cannot be read; 2: wrong usage.", words)


if __name__ == "__main__":
    unittest.main()
