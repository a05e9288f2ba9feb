#!/usr/bin/env python3
"""The workloads of cadre_bench on Ray Tune: the same settings, and the same keys in the line that it prints.

    ray_bench.py WORKLOAD [settings] --storage-path FOLDER

wall_s is the time of Tuner.fit(). It does not include start_s, the time of ray.init().
"""

import argparse
import json
import math
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
os.environ.setdefault("RAY_DEDUP_LOGS", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # for a busy machine

import ray  # noqa: E402: after the environment is set
from ray import tune  # noqa: E402
from ray.tune.schedulers import PopulationBasedTraining  # noqa: E402


# ---- Trainables

def return_at_once(config):
    pass


def report_often(config):
    for i in range(1, config["reports"] + 1):
        tune.report({"loss": 1 / i, "accuracy": 1e-5 * i, "epoch": i})


def quantile(values, rank):
    return sorted(values)[max(0, math.ceil(rank * len(values)) - 1)]


def save_at_every_step(config):
    state = os.urandom(config["bytes"])
    reports, writes = [], []
    for step in range(1, config["steps"] + 1):
        time.sleep(config["step_ms"] / 1000)
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            pathlib.Path(folder, "state").write_bytes(state)
            written = time.perf_counter()
            tune.report({"loss": 1 / step}, checkpoint=tune.Checkpoint.from_directory(folder))
            reports.append(time.perf_counter() - began)
            writes.append(written - began)
    pathlib.Path(config["durations"]).write_text(json.dumps({"report": reports, "write": writes}))


def sleep_and_save(config):
    rest = os.urandom(config["bytes"])
    score, step = 0.0, 0
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as folder:
            score, step = json.loads(pathlib.Path(folder, "score").read_text())
    while True:
        time.sleep(config["step_ms"] / 1000)
        score, step = score + config["lr"], step + 1
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "state").write_bytes(rest)
            pathlib.Path(folder, "score").write_text(json.dumps([score, step]))
            tune.report({"score": score, "step": step}, checkpoint=tune.Checkpoint.from_directory(folder))


def train_in_steps(config):
    began, score, step = time.perf_counter(), 0.0, 0
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as folder:
            step = int(pathlib.Path(folder, "step").read_text())
    while True:
        end = time.thread_time() + config["step_ms"] / 1000
        while time.thread_time() < end:
            pass
        step += 1
        metrics = {"score": config["lr"] * step, "step": step, "own_code_s": time.perf_counter() - began}
        if step % config["interval"]:
            tune.report(metrics)
        else:
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "step").write_text(str(step))
                tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(folder))
        began = time.perf_counter()


# ---- Workloads

def fit(settings, name, trainable, slots, samples, space=None, scheduler=None, stop=None, keep=None):
    """Runs an experiment. Returns (the keys that all lines have, the results)."""
    began = time.perf_counter()
    ray.init(num_cpus=slots, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    start_s = time.perf_counter() - began
    run_config = tune.RunConfig(name=name, storage_path=str(settings.storage_path), stop=stop, verbose=0,
                                checkpoint_config=tune.CheckpointConfig(num_to_keep=keep))
    tuner = tune.Tuner(tune.with_resources(trainable, {"cpu": 1}), param_space=space or {}, run_config=run_config,
                       tune_config=tune.TuneConfig(num_samples=samples, scheduler=scheduler))
    began = time.perf_counter()
    results = tuner.fit()
    wall_s = time.perf_counter() - began
    ray.shutdown()
    lines = sum(len(file.read_text().splitlines()) for file in settings.storage_path.glob(f"{name}/*/result.json"))
    return {"wall_s": wall_s, "start_s": start_s, "trials": len(results), "errors": results.num_errors,
            "terminated": results.num_terminated, "results": lines}, results


def population_based_training(settings, lr):
    return PopulationBasedTraining(time_attr="training_iteration", metric="score", mode="max",
                                   perturbation_interval=settings.interval,
                                   hyperparam_mutations={"lr": tune.uniform(*lr)})


def empty_trial(settings):
    line, _ = fit(settings, "empty_trial", return_at_once, settings.slots, settings.trials)
    return line | {"slots": settings.slots, "wall_ms_per_trial": line["wall_s"] / settings.trials * 1e3}


def reports(settings):
    line, _ = fit(settings, "reports", report_often, settings.trials, settings.trials,
                  {"reports": settings.reports})
    return line | {"reports": settings.reports, "slots": settings.trials,
                   "reports_per_s": settings.trials * settings.reports / line["wall_s"]}


def checkpoints(settings):
    file = settings.storage_path / "durations.json"
    line, _ = fit(settings, "checkpoints", save_at_every_step, 1, 1,
                  {"bytes": settings.bytes, "steps": settings.steps, "step_ms": settings.step_ms,
                   "durations": str(file)}, keep=settings.keep)
    durations = json.loads(file.read_text())
    beyond = [report - write for report, write in zip(durations["report"], durations["write"])]
    return line | {"bytes": settings.bytes, "steps": settings.steps, "keep": settings.keep,
                   "step_ms": settings.step_ms, "report_p50_ms": quantile(durations["report"], 0.5) * 1e3,
                   "beyond_write_p50_ms": quantile(beyond, 0.5) * 1e3,
                   "beyond_write_p99_ms": quantile(beyond, 0.99) * 1e3}


def pbt(settings):
    line, _ = fit(settings, "pbt", sleep_and_save, settings.slots, settings.population,
                  {"lr": tune.uniform(0.001, 1), "step_ms": settings.step_ms, "bytes": settings.bytes},
                  population_based_training(settings, (0.001, 1)), {"training_iteration": settings.steps}, settings.keep)
    return line | {key: getattr(settings, key)
                   for key in ["population", "slots", "steps", "step_ms", "interval", "bytes", "keep"]}


def slot_share(settings):
    line, _ = fit(settings, "slot_share", train_in_steps, settings.slots, settings.trials,
                  {"lr": tune.uniform(0.0001, 0.1), "step_ms": settings.step_ms, "interval": settings.interval},
                  population_based_training(settings, (0.0001, 0.1)), {"training_iteration": settings.steps}, 4)
    rows = [json.loads(row) for file in settings.storage_path.glob("slot_share/*/result.json")
            for row in file.read_text().splitlines()]
    own_code_s = sum(row["own_code_s"] for row in rows)
    return line | {key: getattr(settings, key) for key in ["slots", "steps", "step_ms", "interval"]} | {
        "own_code_s": own_code_s, "share": own_code_s / (settings.slots * line["wall_s"])}


# The function of each workload, and its settings with the defaults of cadre_bench.
WORKLOADS = {
    "empty-trial": (empty_trial, {"trials": 200, "slots": 2}),
    "reports": (reports, {"trials": 1, "reports": 20_000}),
    "checkpoints": (checkpoints, {"bytes": 10_000_000, "steps": 100, "keep": 2, "step-ms": 0}),
    "pbt": (pbt, {"population": 8, "slots": 8, "steps": 60, "step-ms": 5, "interval": 5, "bytes": 1_000_000,
                  "keep": 4}),
    "slot-share": (slot_share, {"trials": 4, "slots": 2, "steps": 50, "step-ms": 16, "interval": 5}),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="workload", required=True)
    for name, (_, defaults) in WORKLOADS.items():
        command = commands.add_parser(name)
        command.add_argument("--storage-path", type=pathlib.Path, required=True)
        for setting, default in defaults.items():
            command.add_argument(f"--{setting}", type=int, default=default)
    settings = parser.parse_args()
    settings.storage_path = settings.storage_path.resolve()
    settings.storage_path.mkdir(parents=True, exist_ok=True)
    line = WORKLOADS[settings.workload][0](settings)
    print(json.dumps({"workload": settings.workload, "peer": f"ray {ray.__version__}"} | line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
