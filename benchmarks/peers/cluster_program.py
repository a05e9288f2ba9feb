#!/usr/bin/env python3
"""One program on Ray and on Cadre, for cluster.py, on the nodes of the cluster in which it runs:

    cluster_program.py ray|cadre WORKLOAD FOLDER BEGUN

Prints a JSON object with its times in seconds. FOLDER is one that all nodes see, BEGUN the time at which this process was
started, in seconds since 1970.
"""

import json
import os
import pathlib
import sys
import tempfile
import time

PEER, WORKLOAD, FOLDER, BEGUN = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), float(sys.argv[4])
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
os.environ.setdefault("RAY_DEDUP_LOGS", "0")

if PEER == "ray":
    import ray
    from ray import train, tune
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
    from ray.tune.schedulers import PopulationBasedTraining
else:
    import cadre
    from cadre import train, tune
    from cadre.train import DataParallelTrainer
    from cadre.tune.schedulers import PopulationBasedTraining

TRIALS, REPORTERS, REPORTS = 40, 4, 500
POPULATION, STEPS, INTERVAL, STATE_BYTES = 8, 20, 5, 1_000_000


# ---- Functions of workers

def note(config):
    """Writes when and where this is."""
    with open(os.path.join(config["folder"], "noted"), "a", encoding="utf-8") as file:
        file.write(json.dumps([time.time(), os.uname().nodename]) + "\n")


def return_at_once(config):
    note(config)


def report_often(config):
    for i in range(1, REPORTS + 1):
        tune.report({"loss": 1 / i})


def sleep_and_save(config):
    score, step = 0.0, 0
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as folder:
            score, step = json.loads(pathlib.Path(folder, "score").read_text())
    while True:
        time.sleep(0.005)
        score, step = score + config["lr"], step + 1
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "state").write_bytes(os.urandom(STATE_BYTES))
            pathlib.Path(folder, "score").write_text(json.dumps([score, step]))
            tune.report({"score": score}, checkpoint=tune.Checkpoint.from_directory(folder))


def count_until_moved(config):
    """Ends once it has gone on on another node."""
    begun_on, step = os.uname().nodename, 0
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as folder:
            begun_on, step = json.loads(pathlib.Path(folder, "state").read_text())
    while True:
        time.sleep(0.1)
        step += 1
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "state").write_text(json.dumps([begun_on, step]))
            tune.report({"step": step}, checkpoint=tune.Checkpoint.from_directory(folder))
        note(config)
        if os.uname().nodename != begun_on:
            return


def train_nothing(config):
    if train.get_context().get_world_rank() == 0:
        note(config)


# ---- Workloads

def noted():
    return [json.loads(line) for line in (FOLDER / "noted").read_text().splitlines()]


def tuner(trainable, samples, space=None, scheduler=None, stop=None, failures=0):
    run_config = tune.RunConfig(name=WORKLOAD, storage_path=str(FOLDER), stop=stop, verbose=0,
                                failure_config=tune.FailureConfig(max_failures=failures),
                                checkpoint_config=tune.CheckpointConfig(num_to_keep=2))
    return tune.Tuner(tune.with_resources(trainable, {"cpu": 1}), param_space={"folder": str(FOLDER)} | (space or {}),
                      run_config=run_config, tune_config=tune.TuneConfig(num_samples=samples, scheduler=scheduler))


def fit(fitted):
    begun = time.time()
    results = fitted.fit()
    return results, time.time() - begun


def first_trial():
    fit(tuner(return_at_once, 1))
    return {"program_to_first_trial_s": noted()[0][0] - BEGUN}


def empty_trials():
    results, took = fit(tuner(return_at_once, TRIALS))
    return {"empty_trial_s": took / TRIALS, "errors": results.num_errors}


def reports():
    results, took = fit(tuner(report_often, REPORTERS))
    return {"report_s": took / (REPORTERS * REPORTS), "errors": results.num_errors}


def pbt():
    scheduler = PopulationBasedTraining(time_attr="training_iteration", metric="score", mode="max", perturbation_interval=INTERVAL,
                                        hyperparam_mutations={"lr": tune.uniform(0.001, 1)})
    results, took = fit(tuner(sleep_and_save, POPULATION, {"lr": tune.uniform(0.001, 1)}, scheduler, {"training_iteration": STEPS}))
    return {"pbt_s": took, "errors": results.num_errors}


def train_start():
    nodes = int(os.environ["CADRE_BENCH_NODES"])
    trainer = DataParallelTrainer(train_nothing, train_loop_config={"folder": str(FOLDER)},
                                  scaling_config=train.ScalingConfig(num_workers=nodes, placement_strategy="STRICT_SPREAD"),
                                  run_config=train.RunConfig(name=WORKLOAD, storage_path=str(FOLDER)))
    begun = time.time()
    trainer.fit()
    return {"train_start_s": noted()[0][0] - begun}


def moved():
    results, _ = fit(tuner(count_until_moved, 1, failures=-1))
    return {"errors": results.num_errors}


def main():
    if PEER == "ray":
        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    else:
        cadre.init()
    done = {"first-trial": first_trial, "empty-trials": empty_trials, "reports": reports, "pbt": pbt, "train-start": train_start,
            "moved": moved}[WORKLOAD]()
    print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
