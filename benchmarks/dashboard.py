#!/usr/bin/env python3
"""Measures what a dashboard costs the experiment that it shows: reports per second of 16 trials with a dashboard that three pages
look at, and without, in turns.

    dashboard.py <folder of cadre_bench> [--results FOLDER] [--pairs N] [--reports N] [--pages N] [--quiet-s S]

Prints a line of JSON for each pair, and one with the median of the ratios, their quartiles, and whether the budget is met: at least
0.97. Exits with 1 if it is not. The first reading of an experiment, and that of its page when it is opened, take some 0.2 s of a CPU each here, whatever
the budget; of a run of 3 s that is 7 %, of one of 20 s it is 1 %. A page is a client that follows the stream of the experiment, and does not draw.
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

BUDGET = 0.97
TRIALS = 16


@contextlib.contextmanager
def dashboard(bin_folder, storage, pages):
    """Serves what is below a folder; opens pages of the experiment there once it is found. Yields a function that returns the
    CPU time of the dashboard, and the bytes that the pages have received."""
    server = subprocess.Popen([bin_folder / "cadre", "dashboard", storage], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    url = server.stdout.readline().strip()
    if not url:
        sys.exit(f"dashboard: {bin_folder / 'cadre'} dashboard has ended with {server.wait()}")
    clients = []

    def open_pages():
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}events") as events:
            for line in events:
                if line.startswith(b"data: {"):
                    found = json.loads(line[6:])
                    found = found.get("experiments") or found.get("set", {}).get("experiments", {}).get("set", {})
                    for id in found:
                        for page in range(pages):
                            file = open(storage / f"page{page}", "wb")
                            clients.append((subprocess.Popen(["curl", "-sN", f"{url}events?id={id}"], stdout=file), file))
                        return

    opener = threading.Thread(target=open_pages, daemon=True)
    opener.start()

    def cost():
        fields = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100, [(storage / f"page{page}").stat().st_size for page in range(len(clients))]
    try:
        yield cost
    finally:
        server.terminate()
        server.wait()
        opener.join()
        for client, file in clients:
            client.wait()
            file.close()


def reports_per_s(bin_folder, storage, reports):
    done = subprocess.run([bin_folder / "cadre_bench", "reports", "--trials", str(TRIALS), "--reports", str(reports), "--storage-path", storage],
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["reports_per_s"]


def wait_for_quiet(most_s):
    """Waits until the machine has done next to nothing for a second, at most so long. Returns the share of idle CPUs then."""
    def times():
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        return fields[3] + fields[4], sum(fields)
    end = time.monotonic() + most_s
    while True:
        before = times()
        time.sleep(1)
        after = times()
        idle = (after[0] - before[0]) / (after[1] - before[1])
        if idle > 0.95 or time.monotonic() > end:
            return idle


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"), help="where a new folder is made for this run")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--reports", type=int, default=60_000, help="of each trial: so many that the first reading, which has no budget, is a small part")
    parser.add_argument("--quiet-s", type=float, default=0, help="before each run, wait at most so long for a machine that does nothing else")
    parser.add_argument("--pages", type=int, default=3)
    arguments = parser.parse_args()
    if not shutil.which("curl"):
        sys.exit("dashboard: a page is the program curl, which is not there: apt-get install curl")
    folder = arguments.results / time.strftime("dashboard_%Y-%m-%d_%H-%M-%S")
    folder.mkdir(parents=True)
    ratios = []
    for pair in range(arguments.pairs):
        speeds, cost, idle = {}, None, []
        # They take turns at being first, so that a machine that grows slower favours none.
        for is_shown in (pair % 2 == 0, pair % 2 == 1):
            storage = folder / f"{pair:02}_{'shown' if is_shown else 'alone'}"
            storage.mkdir()
            idle.append(wait_for_quiet(arguments.quiet_s) if arguments.quiet_s else 1)
            if is_shown:
                with dashboard(arguments.bin_folder, storage, arguments.pages) as read_cost:
                    speeds[is_shown] = reports_per_s(arguments.bin_folder, storage, arguments.reports)
                    cost = read_cost()
                if len(cost[1]) != arguments.pages or not all(cost[1]):
                    sys.exit(f"dashboard: {arguments.pages} pages were to look at {storage}; "
                             f"they received {cost[1]} bytes")
            else:
                speeds[is_shown] = reports_per_s(arguments.bin_folder, storage, arguments.reports)
        ratios.append(speeds[True] / speeds[False])
        print(json.dumps({"workload": "dashboard", "pages": arguments.pages, "reports_per_s": round(speeds[True]), "alone_reports_per_s": round(speeds[False]),
                          "ratio": round(ratios[-1], 4), "dashboard_cpu_s": cost[0], "received_bytes": cost[1],
                          **({"idle_before": round(min(idle), 2)} if arguments.quiet_s else {})}), flush=True)
    quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    value = statistics.median(ratios)
    print(json.dumps({"workload": "dashboard", "pairs": len(ratios), "median": round(value, 4), "quartiles": [round(quartiles[0], 4), round(quartiles[2], 4)],
                      "figures": [{"figure": "reports of 16 trials with three dashboards, and without", "value": round(value, 4), "unit": "", "budget": BUDGET,
                                   "limit": "at least", "met": value >= BUDGET}]}))
    sys.exit(0 if value >= BUDGET else 1)


if __name__ == "__main__":
    main()
