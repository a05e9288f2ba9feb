"""What a trial, a report and a start cost in Python, beside the plain operation in the same run.

    PYTHONPATH=build/release/python python benchmarks/python/trials.py [--trials 200] [--reports 10000]

Exits with 1 if a limit is not met, or if trials have failed: what they did not do took no time.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

START = """
import time
begin = time.perf_counter()
{order}
from cadre import tune
results = tune.Tuner(lambda config: None, run_config=tune.RunConfig(storage_path={folder!r}, verbose=0)).fit()
assert results.num_errors == 0
print(time.perf_counter() - begin)
"""


class Limits:
    """Limits of figures, and what does not meet its own."""

    def __init__(self):
        self.missed = []

    def at_most(self, figure, value, limit):
        if not value <= limit:
            self.missed.append(f"{figure}: {value:.4g} is more than {limit:.4g}")

    def at_least(self, figure, value, limit):
        if not value >= limit:
            self.missed.append(f"{figure}: {value:.4g} is less than {limit:.4g}")


def without_errors(results):
    """Returns the results of an experiment; ends the program if trials have failed."""
    if results.num_errors:
        sys.exit(f"trials: {results.num_errors} trials have failed, such as {results.errors[0]}")
    return results


def cpu_seconds():
    return sum(usage.ru_utime + usage.ru_stime
               for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def plain_forks(count):
    """Returns the seconds of an os.fork of this process, which ends at once and is waited for."""
    begin = time.perf_counter()
    for _ in range(count):
        process = os.fork()
        if process == 0:
            os._exit(0)
        os.waitpid(process, 0)
    return (time.perf_counter() - begin) / count


def plain_lines(count, folder):
    """Returns how many lines with a result a second are written and flushed to a file."""
    begin = time.perf_counter()
    with open(folder / "lines", "w", encoding="utf-8") as file:
        for step in range(count):
            file.write(json.dumps({"loss": 1.0 / (step + 1), "step": step, "name": "plain"}) + "\n")
            file.flush()
    return count / (time.perf_counter() - begin)


def start_time(order, folder):
    done = subprocess.run([sys.executable, "-c", START.format(order=order, folder=str(folder))], capture_output=True, text=True,
                          check=True)
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--only-start", action="store_true")
    args = parser.parse_args()
    # In memory, where nothing may be left after an error either.
    limits = Limits()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        measure(args, pathlib.Path(folder), limits)
    for missed in limits.missed:
        print(f"trials: {missed}", file=sys.stderr)
    sys.exit(1 if limits.missed else 0)


def measure(args, folder, limits):
    import_time = float(subprocess.run(
        [sys.executable, "-c", "import time; t = time.perf_counter(); import torch; print(time.perf_counter() - t)"],
        capture_output=True, text=True, check=True).stdout)
    cadre_time = float(subprocess.run(
        [sys.executable, "-c", "import time; t = time.perf_counter(); import cadre; print(time.perf_counter() - t)"],
        capture_output=True, text=True, check=True).stdout)
    print(f"import torch                       {import_time:8.2f} s")
    print(f"import cadre                       {1e3 * cadre_time:8.1f} ms   (limit 50)")
    early = start_time("import cadre; cadre.init(num_cpus=2); import torch", folder)
    late = start_time("import torch", folder)
    print(f"start to the end of an empty trial, init() first {early:6.2f} s   (limit {import_time + 0.3:.2f})")
    print(f"the same, torch imported first     {late:8.2f} s   (limit {2 * import_time + 0.5:.2f})", flush=True)
    limits.at_most("import cadre, ms", 1e3 * cadre_time, 50)
    limits.at_most("start, init() first, s", early, import_time + 0.3)
    limits.at_most("start, torch imported first, s", late, 2 * import_time + 0.5)
    if args.only_start:
        return

    import torch  # noqa: F401  as a training program has it

    import cadre
    from cadre import tune

    def run(function, name, **tune_config):
        run_config = tune.RunConfig(name=name, storage_path=str(folder), verbose=0, callbacks=callbacks)
        return without_errors(tune.Tuner(function, tune_config=tune.TuneConfig(**tune_config),
                                         run_config=run_config).fit())

    callbacks = None
    fork = plain_forks(100)
    for slots, limit in ((1, 5), (2, 4)):
        used = []
        for count in (1, 1 + args.trials):  # the first has what the server takes to start
            cpu = cpu_seconds()
            cadre.init(num_cpus=slots)
            run(lambda config: None, f"warm_{slots}_{count}")
            begin = time.perf_counter()
            run(lambda config: None, f"empty_{slots}_{count}", num_samples=count)
            wall = (time.perf_counter() - begin) / count
            cadre.shutdown()
            used.append(cpu_seconds() - cpu)
        used = (used[1] - used[0]) / args.trials
        print(f"empty trial, {slots} slot{'s' if slots > 1 else ' '}              {1e3 * wall:8.2f} ms   (limit {limit}), {wall / fork:.2f} "
              f"of a plain fork ({1e3 * fork:.2f} ms; limit 1.6); CPU {1e3 * used:.2f} ms (limit 6)", flush=True)
        limits.at_most(f"empty trial, {slots} slots, ms", 1e3 * wall, limit)
        limits.at_most(f"empty trial, {slots} slots, of a plain fork", wall / fork, 1.6)
        limits.at_most(f"empty trial, {slots} slots, ms of CPU", 1e3 * used, 6)

    def reports(config):
        begin = time.perf_counter()
        for step in range(args.reports):
            tune.report({"loss": 1.0 / (step + 1), "step": step, "name": "mine"})
        with open("seconds", "w", encoding="utf-8") as file:
            file.write(str(time.perf_counter() - begin))

    def rate(results):
        seconds = max(float(pathlib.Path(result.path, "seconds").read_text()) for result in results)
        return len(results) * args.reports / seconds

    lines = plain_lines(args.reports, folder)
    cadre.init(num_cpus=16)
    one = rate(run(reports, "one"))
    many = rate(run(reports, "many", num_samples=16))

    class Counts(tune.Callback):
        count = 0

        def on_trial_result(self, iteration, trials, trial, result, **info):
            self.count += 1

    callbacks = [Counts()]
    seen = rate(run(reports, "seen"))
    print(f"reports a second, 1 trial          {one:8.0f}      (limit 10,000), {one / lines:.3f} of plain lines ({lines:.0f})")
    print(f"reports a second, 16 trials        {many:8.0f}      (limit 25,000)")
    print(f"a callback for each result         {1e6 * (1 / seen - 1 / one):8.1f} us   (limit 30)")
    limits.at_least("reports a second, 1 trial", one, 10_000)
    limits.at_least("reports a second, 16 trials", many, 25_000)
    limits.at_most("a callback for each result, us", 1e6 * (1 / seen - 1 / one), 30)
    cadre.shutdown()


if __name__ == "__main__":
    main()
