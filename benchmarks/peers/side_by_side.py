#!/usr/bin/env python3
"""Runs the same work on Ray Tune and on Cadre, in turns. Prints the lines of both, and the ratios of Ray to Cadre.

    side_by_side.py <folder of cadre_bench> [--results FOLDER] [--runs N] [--only REGEX]

Needs ray[tune], which tools/setup.sh installs. Experiments and lines (lines.jsonl) stay in the results folder.
"""

import argparse
import ctypes
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

RAY_BENCH = pathlib.Path(__file__).with_name("ray_bench.py")
# For each workload: its arguments, and the figures to compare besides wall_s and cpu_s. The sizes are smaller than for
# the budget, because Ray takes longer.
WORKLOADS = [
    ("empty-trial --trials 20 --slots 2", ["wall_ms_per_trial"]),
    ("reports --trials 1 --reports 2000", []),
    ("checkpoints --bytes 10000000 --steps 30 --keep 2 --step-ms 10", ["report_p50_ms", "beyond_write_p50_ms"]),
    ("checkpoints --bytes 1000 --steps 100 --keep 2", ["report_p50_ms", "beyond_write_p50_ms"]),
    ("pbt --population 8 --slots 8 --steps 60 --step-ms 5 --interval 5 --bytes 1000000 --keep 4", []),
    ("slot-share --trials 4 --slots 2 --steps 50 --step-ms 16 --interval 5", []),
]


class CpuTimes:
    """CPU time of this process's descendants, by polling: Ray's raylet ignores SIGCHLD, so the kernel does not add up
    the time of its workers. The time that a process uses after its last poll is not included."""

    INTERVAL_S = 0.05

    def __init__(self):
        self.ticks = {}  # by process id and start time, because ids are reused
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.look_again_and_again)

    def look_again_and_again(self):
        while not self.stopped.wait(self.INTERVAL_S):
            self.look()

    def look(self):
        fields = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    # Skips the name of the program, which may contain any characters.
                    fields[int(entry.name)] = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    pass  # the process has ended
        descendants = {os.getpid()}
        grown = True
        while grown:
            more = {process for process, field in fields.items() if int(field[1]) in descendants} - descendants
            descendants |= more
            grown = bool(more)
        for process in descendants - {os.getpid()}:
            field = fields[process]
            self.ticks[process, field[19]] = int(field[11]) + int(field[12])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def seconds(self):
        return sum(self.ticks.values()) / os.sysconf("SC_CLK_TCK")


def adopt_orphans():
    """Makes this process the parent of descendants whose own parent ends, so that it can wait for them."""
    set_child_subreaper = 36
    if ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def run(command, storage):
    """Runs a command and returns the first JSON line that it prints. Waits for all its descendants, so that they do not
    disturb the next measurement."""
    storage.mkdir(parents=True)
    messages = storage / "messages.txt"
    # Files, not pipes: descendants may hold pipes open.
    with tempfile.TemporaryFile("w+") as output, messages.open("w") as errors:
        child = subprocess.Popen([*command, "--storage-path", storage], stdout=output, stderr=errors)
        while True:
            try:
                process, status = os.wait()
            except ChildProcessError:
                break
            if process == child.pid:
                child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"side_by_side: {' '.join(map(str, command))} failed with {child.returncode}; see {messages}")
        output.seek(0)
        return next(json.loads(line) for line in output if line.startswith("{"))


def run_ray(words, storage):
    """Runs a workload on Ray Tune. cpu_s covers the whole run: Ray's processes are started and ended with it."""
    with CpuTimes() as cpu_times:
        line = run([sys.executable, RAY_BENCH, *words], storage)
    return line | {"cpu_s": cpu_times.seconds()}


def run_cadre(bin_folder, words, storage):
    line = run([bin_folder / "cadre_bench", *words], storage)
    return {"workload": line["workload"], "peer": "cadre"} | line


def run_in_turns(attempt, sides):
    """Calls the functions of both sides; each begins in every other attempt, so that neither always finds what the other
    has left behind."""
    for side in sides if attempt % 2 == 0 else reversed(sides):
        side()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path, help="folder of cadre_bench")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"),
                        help="where a new folder is made for this run")
    parser.add_argument("--runs", type=int, default=2, help="of each workload, of both in turns")
    parser.add_argument("--only", default="", help="regular expression for the arguments of the workloads to run")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    adopt_orphans()
    folder = arguments.results / time.strftime("peers_%Y-%m-%d_%H-%M-%S")
    folder.mkdir(parents=True)
    with (folder / "lines.jsonl").open("w", encoding="utf-8") as file:
        def tell(line):
            for to in (sys.stdout, file):
                print(json.dumps(line), file=to, flush=True)

        for index, (workload, figures) in enumerate(WORKLOADS):
            if not re.search(arguments.only, workload):
                continue
            ray_lines, cadre_lines = [], []
            for attempt in range(arguments.runs):
                storage = folder / f"{index:02}_{attempt}"

                def measure_ray():
                    ray_lines.append(run_ray(workload.split(), storage / "ray"))
                    tell(ray_lines[-1])

                def measure_cadre():
                    cadre_lines.append(run_cadre(arguments.bin_folder, workload.split(), storage / "cadre"))
                    tell(cadre_lines[-1])

                run_in_turns(attempt, [measure_ray, measure_cadre])
            for figure in ["wall_s", "cpu_s", *figures]:
                ray, cadre = (statistics.median(line[figure] for line in lines) for lines in (ray_lines, cadre_lines))
                tell({"workload": workload, "figure": figure, "ray": ray, "cadre": cadre, "ratio": ray / cadre,
                      "ray_errors": sum(line["errors"] for line in ray_lines),
                      "cadre_errors": sum(line["errors"] for line in cadre_lines)})


if __name__ == "__main__":
    main()
