"""The output that users see when a program ends by an uncaught exception or Ctrl-C, and when it is started again."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

TOOL = os.path.join(os.environ["CADRE_BIN"], "program_end_tool")


def run(*arguments, **environment):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env=os.environ | environment)


class UncaughtErrors(unittest.TestCase):
    def test_an_error_of_cadres_is_said_and_the_program_returns_1(self):
        done = run("error")
        self.assertEqual((done.returncode, done.stderr), (1, f"{TOOL}: this does not work\n"))
        self.assertEqual(done.stdout, "before the end")

    def test_so_is_every_other_exception_also_of_a_thread(self):
        for way, what in ("other_exception", "beyond the end"), ("thread", "not in this thread"):
            with self.subTest(way):
                done = run(way)
                self.assertEqual((done.returncode, done.stderr), (1, f"{TOOL}: {what}\n"))

    def test_that_init_was_forgotten_is_said_in_the_same_way(self):
        with tempfile.TemporaryDirectory() as storage:
            done = run("without_init", storage)
            self.assertEqual((done.returncode, done.stderr),
                             (1, f"{TOOL}: cadre::init was not called; it must be at the beginning of main\n"))
            self.assertEqual(os.listdir(storage), [])

    def test_what_is_no_exception_ends_it_as_without_cadre(self):
        for way in "number", "abort":
            with self.subTest(way):
                self.assertEqual(run(way).returncode, -signal.SIGABRT)

    def test_a_handler_of_the_programs_own_counts_instead(self):
        for way in "handler_before", "handler_after":
            with self.subTest(way):
                done = run(way)
                self.assertEqual((done.returncode, done.stderr), (7, "my own handler\n"))

    def test_what_is_caught_is_not_said(self):
        done = run("caught")
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "before the end"))


class InStorage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.storage = pathlib.Path(folder.name)


class Interrupts(InStorage):
    def interrupted_by(self, number, way, sign):
        """Sends a signal to a program when its output has `sign`; returns its exit code and messages."""
        process = subprocess.Popen([TOOL, way, str(self.storage / way / str(number))], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while sign not in process.stdout.readline():
            self.assertIsNone(process.poll())
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
        return process.returncode, said

    def test_ctrl_c_returns_130_sigterm_143_sighup_129_and_all_say_how_to_continue(self):
        for number, code in (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129):
            for way, sign in ("endless_trials", "00000"), ("endless_training", "report"):
                with self.subTest(way, signal=number):
                    returned, said = self.interrupted_by(number, way, sign)
                    self.assertEqual(returned, code, said)
                    self.assertRegex(said, rf"^{re.escape(TOOL)}: the .* was interrupted, and everything that was reported "
                                     r"is saved")
                    self.assertIn("restore", said)


class SecondStarts(InStorage):
    ways = {"trials": "best", "training": "last"}

    def test_fail_is_the_default_and_says_what_else_there_is(self):
        for way in self.ways:
            with self.subTest(way):
                self.assertEqual(run(way, self.storage / way).returncode, 0)
                again = run(way, self.storage / way)
                self.assertEqual(again.returncode, 1)
                for word in "exists already", "IfExists::restore", "IfExists::new_name", "IfExists::fail":
                    self.assertIn(word, again.stderr)

    def test_restore_returns_the_results_of_one_that_has_finished(self):
        for way, word in self.ways.items():
            with self.subTest(way):
                for _ in range(2):
                    done = run(way, self.storage / way, "restore")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertTrue(done.stdout.endswith(f'{word} 5 in "mine"\n'), done.stdout)
                self.assertEqual(os.listdir(self.storage / way), ["mine"])

    def test_restore_with_other_options_is_refused_and_says_which(self):
        for way in self.ways:
            with self.subTest(way):
                self.assertEqual(run(way, self.storage / way, "restore").returncode, 0)
                other = run("other_" + way, self.storage / way, "restore")
                self.assertEqual(other.returncode, 1)
                self.assertIn("was begun with other options", other.stderr)
                self.assertRegex(other.stderr, r"steps.*: it was .*5.*, and now is .*6")

    def test_new_name_makes_another_one_and_says_so(self):
        for way, word in self.ways.items():
            with self.subTest(way):
                for name in "mine", "mine_2", "mine_3":
                    done = run(way, self.storage / way, "new_name")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertTrue(done.stdout.endswith(f'{word} 5 in "{name}"\n'), done.stdout)
                    self.assertEqual(f'already, so this one is "{name}"' in done.stdout, name != "mine", done.stdout)

    def test_what_is_published_exists_too_also_without_its_working_directory(self):
        for way, word in self.ways.items():
            uri = f"file://{self.storage}/bucket/{way}"
            home = self.storage / "home" / way

            def start(if_exists):
                return run(way, uri, if_exists, HOME=str(home))

            with self.subTest(way):
                self.assertEqual(start("fail").returncode, 0)
                shutil.rmtree(home)
                self.assertIn("IfExists::restore", start("fail").stderr)
                for _ in range(2):
                    done = start("restore")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertTrue(done.stdout.endswith(f'{word} 5 in "mine"\n'), done.stdout)
                shutil.rmtree(home)
                self.assertIn(f'{word} 5 in "mine_2"', start("new_name").stdout)
                self.assertEqual(sorted(os.listdir(self.storage / "bucket" / way)), ["mine", "mine_2"])

    def test_new_names_of_many_programs_at_a_time_are_all_different(self):
        programs = [subprocess.Popen([TOOL, "trials", str(self.storage), "new_name"], stdout=subprocess.PIPE, text=True)
                    for _ in range(6)]
        names = sorted(re.search(r'in "(mine\w*)"\n$', program.communicate(timeout=120)[0]).group(1)
                       for program in programs)
        self.assertEqual(names, ["mine"] + [f"mine_{i}" for i in range(2, 7)])


if __name__ == "__main__":
    unittest.main()
