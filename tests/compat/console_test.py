"""The console output of a running experiment: the program runs on a pseudo-terminal, whose output goes to a terminal
emulator (pyte); its screen is checked after every drawing."""

import fcntl
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import tempfile
import termios
import unittest

import pyte
import pyte.modes

TOOL = os.path.join(os.environ["CADRE_BIN"], "console_tool")
END_OF_DRAWING = b"\r\n\x1b[J"
ESCAPE_CODES = re.compile(rb"\x1b\[\d*[AHJKm]")
BOX = "╭╮╰╯├┤─│"


class Terminal:
    """A terminal of a given size in which the tool runs. `check` is called with it after every drawing."""

    def __init__(self, arguments, lines, columns, check=None, **environment):
        self.check = check
        self.output = b""
        self.pending = b""
        self.drawings = 0
        self.screen = pyte.HistoryScreen(columns, lines, history=100000)
        self.stream = pyte.ByteStream(self.screen)
        self.process, self.fd = pty.fork()
        if self.process == 0:
            self.set_size(0, lines, columns)
            base = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}
            os.chdir(arguments[0])
            os.execve(TOOL, [TOOL, *arguments], base | environment)
        self.modes = termios.tcgetattr(self.fd)

    @staticmethod
    def set_size(fd, lines, columns):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, lines, columns):
        self.set_size(self.fd, lines, columns)
        self.screen.resize(lines, columns)

    def take(self):
        """Feeds new output to the screen, drawing by drawing. Returns False at the end of the output."""
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.output += data
        self.pending += data
        while END_OF_DRAWING in self.pending:
            drawing, self.pending = self.pending.split(END_OF_DRAWING, 1)
            self.stream.feed(drawing + END_OF_DRAWING)
            self.drawings += 1
            if self.check:
                self.check(self)
        return bool(data)

    def run_until(self, condition):
        while not condition(self):
            assert self.take(), "the program ended before:\n" + "\n".join(self.lines())

    def finish(self):
        """Runs to the end and returns the exit code, or minus the signal."""
        while self.take():
            pass
        self.stream.feed(self.pending)
        status = os.waitpid(self.process, 0)[1]
        self.modes_after = termios.tcgetattr(self.fd)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def scrolled_away(self):
        return ["".join(line[x].data for x in range(self.screen.columns)).rstrip() for line in self.screen.history.top]


class ConsoleTest(unittest.TestCase):
    def setUp(self):
        self.storage = tempfile.TemporaryDirectory()
        self.addCleanup(self.storage.cleanup)
        self.gate = os.path.join(self.storage.name, "gate")

    def arguments(self, **numbers):
        return [self.storage.name, *(f"{name}={number}" for name, number in numbers.items())]

    def start(self, lines=24, columns=80, check=True, environment=None, **numbers):
        os.makedirs(self.storage.name, exist_ok=True)
        return Terminal(self.arguments(**numbers), lines, columns, self.check_screen if check else None,
                        **(environment or {}))

    def make_gates(self, count):
        """Makes named pipes at which the trials wait before iterations 3, 6, ..."""
        os.makedirs(self.storage.name, exist_ok=True)
        for number in range(1, count + 1):
            os.mkfifo(self.gate + str(number))

    def open_gate(self, number):
        """Waits until a trial is at the gate, then lets all four trials pass as they arrive."""
        gate = os.open(self.gate + str(number), os.O_WRONLY)
        self.addCleanup(os.close, gate)
        os.write(gate, b"....")

    def check_screen(self, terminal):
        """Expects one complete block, at the lower end of the screen, and no part of an earlier block anywhere."""
        lines = terminal.lines()
        text = "\n".join(lines)
        heads = [number for number, line in enumerate(lines) if line.startswith("Trial status:")]
        self.assertEqual(len(heads), 1, text)
        self.assertLessEqual(sum("─ Trials ─" in line for line in lines), 1, text)
        cursor = terminal.screen.cursor
        self.assertEqual((cursor.x, cursor.hidden), (0, False), text)
        self.assertFalse(any(lines[cursor.y:]), text)
        for number, line in enumerate(lines):
            if line and line[0] in BOX:
                self.assertGreater(number, heads[0], text)
                self.assertIn(line[0] + line[-1], ["╭╮", "├┤", "╰╯", "││"], text)
                self.assertLess(len(line), terminal.screen.columns, text)
        if " RUNNING" in lines[heads[0]]:  # the very last block is wrapped if it is wide
            boxes = [number for number, line in enumerate(lines) if line and line[0] in BOX] or [cursor.y]
            self.assertLessEqual(boxes[0] - heads[0], 5, text)
        for line in terminal.scrolled_away():
            self.assertFalse(line.startswith("Trial status:") or set(line) & set(BOX), line)

    def check_left_as_it_was(self, terminal):
        self.assertEqual(terminal.modes_after, terminal.modes)
        self.assertFalse(terminal.screen.cursor.hidden)
        self.assertEqual(terminal.screen.cursor.x, 0)
        self.assertEqual(terminal.screen.mode, pyte.Screen(80, 24).mode)
        self.assertEqual(terminal.screen.margins, None)
        self.assertFalse(terminal.screen.cursor.attrs.bold)

    def check_final(self, terminal, status):
        everything = terminal.scrolled_away() + terminal.lines()
        self.assertEqual([line for line in everything if line.startswith("Trial status:")], [f"Trial status: {status}"])
        self.assertEqual(sum("─ Trials ─" in line for line in everything), 1)
        self.check_left_as_it_was(terminal)

    def test_a_population_is_drawn_in_place_in_windows_of_many_sizes(self):
        for lines, columns in [(24, 80), (50, 132), (12, 40), (6, 20), (3, 9), (30, 300)]:
            with self.subTest(lines=lines, columns=columns):
                self.storage.cleanup()
                terminal = self.start(lines, columns, check=columns >= 20, iterations=40, speak=1)
                self.assertEqual(terminal.finish(), 0)
                self.assertGreater(terminal.drawings, 5)
                if columns >= 20:
                    everything = terminal.scrolled_away() + terminal.lines()
                    self.assertLess(everything.index("before"), everything.index("after 0"))
                if columns >= 80:
                    self.check_final(terminal, "4 TERMINATED")

    def test_the_log_scrolls_above_the_block(self):
        terminal = self.start(40, 100, iterations=24)
        self.assertEqual(terminal.finish(), 0)
        log = "\n".join(terminal.scrolled_away() + terminal.lines())
        for expected in [r"^Running experiment experiment: 4 trials$", r"^Results in /.*/experiment$",
                         r"^Trial 00000 started with configuration \{\"lr\": 0\.",
                         r"\[Exploit\] Cloning trial 0000\d \(score = ", r"\[Explore\] Perturbed the hyper",
                         r"^Trial 0000\d restored from 0000\d_lr=0\.\d{4}/checkpoint_0000\d\d at training_iteration \d+$",
                         r"^Trial 00003 completed after 24 iterations: score="]:
            self.assertRegex(log, re.compile(expected, re.MULTILINE))

    def test_more_trials_than_lines(self):
        seen = []

        def check(terminal):
            self.check_screen(terminal)
            seen.append("\n".join(terminal.lines()))

        terminal = Terminal(self.arguments(trials=60, iterations=8), 24, 80, check)
        self.assertEqual(terminal.finish(), 0)
        self.assertTrue(any(re.search(r"^\.\.\. .*\d+ more PENDING", text, re.MULTILINE) for text in seen))
        everything = terminal.scrolled_away() + terminal.lines()
        # The last table has the best trials first, and is cut to what fits the window.
        last = max(i for i, line in enumerate(everything) if line.startswith("│ Trial  status"))
        rows = [line for line in everything[last + 2:] if line.startswith("│ 000")]
        end = everything[last].index(" score") + len(" score")
        scores = [float(line[:end].split()[-1]) for line in rows]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertTrue(5 <= len(rows) < 24, everything[last:])
        self.assertIn(f"... {60 - len(rows)} more TERMINATED", everything)
        best = [line for line in everything if line.startswith("Current best trial: ")][-1]
        self.assertEqual(rows[0].split()[1], best.split()[3])

    def test_a_window_that_changes_its_size_shows_one_block_again(self):
        for lines, columns in [(20, 50), (40, 120), (16, 80), (24, 50)]:
            with self.subTest(lines=lines, columns=columns):
                self.storage.cleanup()
                self.make_gates(2)
                terminal = self.start(24, 80, iterations=20, gates=2, fifo=1)
                terminal.run_until(lambda terminal: self.at_iteration(terminal, 2) == 4)
                terminal.check = None
                terminal.resize(lines, columns)
                self.open_gate(1)
                drawn = terminal.drawings
                terminal.run_until(lambda terminal: terminal.drawings > drawn)
                # The content of the screen, including the old block, has scrolled away.
                terminal.screen.history.top.clear()
                self.check_screen(terminal)
                terminal.check = self.check_screen
                terminal.run_until(lambda terminal: self.at_iteration(terminal, 5) == 4)
                self.open_gate(2)
                self.assertEqual(terminal.finish(), 0)
                self.check_left_as_it_was(terminal)

    @staticmethod
    def at_iteration(terminal, iteration):
        """Returns the number of trials that the table shows at the iteration."""
        return sum(bool(re.match(rf"│ 0000\d  RUNNING .* {iteration} ", line)) for line in terminal.lines())

    def test_a_terminal_that_is_stopped_does_not_stop_the_experiment(self):
        self.make_gates(2)
        terminal = self.start(iterations=8, gates=2, fifo=1, verbose=2)
        terminal.run_until(lambda terminal: self.at_iteration(terminal, 2) == 4)
        os.write(terminal.fd, b"\x13")
        self.open_gate(1)
        self.open_gate(2)  # a trial reaches it only if its reports are answered
        os.write(terminal.fd, b"\x11")
        self.assertEqual(terminal.finish(), 0)
        self.check_final(terminal, "4 TERMINATED")
        log = "\n".join(terminal.scrolled_away() + terminal.lines())
        for trial in range(4):
            for iteration in range(1, 9):
                self.assertEqual(log.count(f"Trial 0000{trial} finished iteration {iteration}:"), 1)

    def test_ctrl_c_leaves_the_terminal_as_it_was(self):
        terminal = self.start(iterations=1000000, fifo=1)
        terminal.run_until(lambda terminal: terminal.drawings > 5)
        os.write(terminal.fd, b"\x03")
        terminal.check = None
        self.assertEqual(terminal.finish(), 130)
        self.check_final(terminal, "4 PENDING")
        text = "\n".join(terminal.scrolled_away() + terminal.lines())
        self.assertIn("Interrupted by SIGINT", text)
        self.assertEqual([line for line in terminal.lines() if line][-1], "interrupted")

    def test_being_killed_leaves_the_terminal_as_it_was_and_the_last_block(self):
        self.make_gates(1)
        terminal = self.start(iterations=8, gates=1, fifo=1)
        terminal.run_until(lambda terminal: self.at_iteration(terminal, 2) == 4)  # then they wait
        os.kill(terminal.process, signal.SIGKILL)
        self.assertEqual(terminal.finish(), -signal.SIGKILL)
        self.check_left_as_it_was(terminal)
        self.assertEqual(sum(line.startswith("Trial status: 4 RUNNING") for line in terminal.lines()), 1)

    def test_nothing_of_hostile_names_reaches_the_terminal(self):
        terminal = self.start(30, 120, iterations=12, hostile=1, fail=1, verbose=2)
        self.assertEqual(terminal.finish(), 0)
        self.check_final(terminal, "3 TERMINATED | 1 ERROR")
        rest = ESCAPE_CODES.sub(b"", terminal.output)
        self.assertEqual(re.findall(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]", rest), [])
        self.assertNotRegex(rest.decode(), "[\x80-\x9f\u202e]")

    def test_a_failure_names_its_file(self):
        terminal = self.start(30, 200, iterations=5, fail=1)
        self.assertEqual(terminal.finish(), 0)
        lines = [line for line in terminal.scrolled_away() + terminal.lines()]
        at = lines.index("Number of errored trials: 1")
        self.assertRegex(lines[at + 1], r"^Trial 00001 errored after 1 iteration: std::runtime_error: it broke: evil\\x1b")
        self.assertTrue(pathlib.Path(lines[at + 2].strip()).is_file())

    def test_a_restored_experiment_counts_the_time_of_all_sessions(self):
        terminal = self.start(iterations=1000000)
        terminal.run_until(lambda terminal: terminal.drawings > 5)
        os.write(terminal.fd, b"\x03")
        terminal.check = None
        self.assertEqual(terminal.finish(), 130)
        before = float(re.findall(rb"running time: ([\d.]+)s", terminal.output)[-1])
        again = self.start(restore=1)
        again.run_until(lambda terminal: terminal.drawings > 5)
        times = re.findall(rb"running time: ([\d.]+)s in 2 sessions", again.output)
        self.assertTrue(times, again.output)
        self.assertGreaterEqual(float(times[0]), before)
        os.write(again.fd, b"\x03")
        again.check = None
        self.assertEqual(again.finish(), 130)
        self.assertIn("Continuing experiment experiment: 4 trials", again.output.decode(errors="replace"))

    def test_colours_only_where_they_are_wanted(self):
        colours = re.compile(rb"\x1b\[\d*m")
        self.assertRegex(self.finished(fail=0).output, colours)
        self.assertNotRegex(self.finished(fail=0, environment={"NO_COLOR": "1"}).output, colours)

    def test_a_terminal_that_cannot_draw_gets_plain_lines(self):
        terminal = self.finished(environment={"TERM": "dumb"}, check=False)
        self.assertNotIn(b"\x1b", terminal.output)
        self.assertEqual(terminal.output.count(b"Trial status:"), 1)

    def test_without_utf8_everything_is_ascii(self):
        terminal = self.finished(environment={"LANG": "C"}, check=False, hostile=1)
        self.assertTrue(terminal.output.isascii())
        self.assertIn("+- Trials ---", "\n".join(terminal.scrolled_away() + terminal.lines()))

    def finished(self, **options):
        self.storage.cleanup()
        terminal = self.start(30, 120, iterations=8, **options)
        self.assertEqual(terminal.finish(), 0)
        return terminal

    def redirected(self, **numbers):
        os.makedirs(self.storage.name, exist_ok=True)
        done = subprocess.run([TOOL, *self.arguments(**numbers)], capture_output=True, timeout=120, check=True,
                              cwd=self.storage.name,
                              env={"LANG": "C.UTF-8", "TERM": "xterm"})
        return done.stdout.decode(), done.stderr.decode()

    def test_a_file_gets_plain_lines_and_the_last_block(self):
        out, err = self.redirected(iterations=20, fail=1)
        self.assertNotIn("\x1b", out)
        self.assertEqual(out.count("Trial status:"), 1)
        self.assertIn("\nTrial status: 3 TERMINATED | 1 ERROR\n", out)
        self.assertLess(out.index("Trial 00000 started"), out.index("Trial 00000 completed after 20 iterations"))
        self.assertEqual(err, "")

    def test_quiet_tells_final_failures_on_standard_error_only(self):
        out, err = self.redirected(iterations=5, fail=1, verbose=0)
        self.assertEqual(out, "")
        first, second, third = err.splitlines()
        self.assertRegex(first, "^Trial 00001 errored after 1 iteration: std::runtime_error: it broke: ")
        self.assertRegex(second, r"^  \\u\{202e\} ")
        self.assertTrue(pathlib.Path(third.strip()).is_file())

    def test_verbose_tells_every_result_and_checkpoint(self):
        out, _ = self.redirected(iterations=5, fifo=1, verbose=2)
        for trial in range(4):
            for iteration in range(1, 6):
                self.assertRegex(out, rf"\nTrial 0000{trial} finished iteration {iteration}: score=[\d.]+, loss=")
                self.assertRegex(out, rf"\nTrial 0000{trial} saved a checkpoint for iteration {iteration} at 0000{trial}_")

    def test_what_trials_and_their_children_print_has_their_names(self):
        out, err = self.redirected(iterations=3, fifo=1, print=1, driver=1)
        for trial in range(4):
            for step in range(1, 4):
                self.assertEqual(out.count(f"(trial 0000{trial}) step {step}evil\\x1b[2J\\x1b]0;title\\x07\n"), 1)
                self.assertEqual(err.count(f"(trial 0000{trial}) warning {step}\n"), 1)
            self.assertEqual(out.count(f"(trial 0000{trial}) from a child\n"), 1)
            self.assertLess(out.index(f"(trial 0000{trial}) step 3evil"), out.index(f"Trial 0000{trial} completed"))
        self.assertNotIn("\x1b", out)
        for quiet in {"driver": 0}, {"driver": 1, "verbose": 0}:
            self.storage.cleanup()
            out, err = self.redirected(iterations=3, fifo=1, print=1, **quiet)
            self.assertNotIn("warning", out + err)

    def test_what_trials_print_stands_above_the_block(self):
        terminal = self.start(40, 100, iterations=24, print=1, driver=1)
        self.assertEqual(terminal.finish(), 0)
        self.check_final(terminal, "4 TERMINATED")
        log = terminal.scrolled_away() + terminal.lines()
        self.assertEqual(len([line for line in log if re.match(r"\(trial 00002\) warning 24$", line)]), 1)
        self.assertEqual(re.findall(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]", ESCAPE_CODES.sub(b"", terminal.output)), [])

    def test_a_reason_that_all_trials_fail_of_is_said_once(self):
        out, _ = self.redirected(trials=12, fifo=1, no_data=1)
        self.assertEqual(out.count("cannot open /nowhere/data"), 2)  # when it happens and at the end
        self.assertNotIn("frame #0", out)
        self.assertEqual(out.count("for the same reason as trial 0000"), 11)
        summary = out[out.index("Number of errored trials: 12\n"):].splitlines()
        self.assertEqual(summary[1], "12 trials failed: std::runtime_error: cannot open /nowhere/data")
        self.assertEqual(len(summary), 3)
        path = pathlib.Path(summary[2].split(" of trial ")[0].strip())
        self.assertIn("frame #0", path.read_text())

    def test_a_crash_says_its_last_words_and_where_it_was(self):
        out, _ = self.redirected(iterations=3, fifo=1, crash=1)
        at = out.index("Trial 00001 errored after 1 iteration: the worker was ended by signal 11 (SIGSEGV) while its "
                       "training function ran\n  The last lines of its stderr:\n    last words\n")
        self.assertIn("write_through", out[at:])
        (error,) = pathlib.Path(self.storage.name).glob("experiment/00001*/error.txt")
        self.assertRegex(error.read_text(), r"\n  back trace after SIGSEGV at address 0x0:\n  #0 .*write_through.*\n")

    def test_trials_run_in_their_own_directories_by_choice(self):
        self.redirected(iterations=1, fifo=1, print=1, chdir=1)
        trials = [path for path in pathlib.Path(self.storage.name, "experiment").iterdir() if path.is_dir()]
        self.assertEqual(len(trials), 4)
        for trial in trials:
            self.assertEqual((trial / "where").read_text().strip(), str(trial.resolve()))

    def test_of_many_trials_the_starts_are_told_by_verbose_only(self):
        out, _ = self.redirected(trials=21, iterations=2, fifo=1)
        self.assertNotIn(" started ", out)
        self.assertEqual(out.count(" completed after 2 iterations"), 21)


if __name__ == "__main__":
    unittest.main()
