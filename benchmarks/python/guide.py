"""Ray's guide on Population Based Training, the same program with Ray and with Cadre, and its loop in plain processes.

    PYTHONPATH=build/release/python python benchmarks/python/guide.py [--rounds 1] [--without-ray]

Needs ray[tune]==2.60.0, and data/mnist (make setup).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ITERATIONS = 50
TRIALS = 4


def train_convnet(config):
    import torch

    if config["library"] == "ray":
        from ray import tune
    elif config["library"] == "cadre":
        from cadre import tune
    from cadre.tune.examples.mnist_pytorch import ConvNet, get_data_loaders, test_func, train_func

    step = 1
    train_loader, test_loader = get_data_loaders()
    model = ConvNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=config["momentum"])
    checkpoint = tune.get_checkpoint() if config["library"] else None
    if checkpoint:
        with checkpoint.as_directory() as directory:
            state = torch.load(os.path.join(directory, "checkpoint.pt"))
        model.load_state_dict(state["model_state_dict"])
        optimizer.load_state_dict(state["optimizer_state_dict"])
        for group in optimizer.param_groups:
            group.update(lr=config["lr"], momentum=config["momentum"])
        step = state["step"] + 1
    seconds = []
    while step <= ITERATIONS:
        begin = time.perf_counter()
        train_func(model, optimizer, train_loader)
        accuracy = test_func(model, test_loader)
        seconds.append(time.perf_counter() - begin)
        metrics = {"mean_accuracy": accuracy, "lr": config["lr"], "seconds": seconds[-1]}
        with tempfile.TemporaryDirectory() as directory:
            if step % 5 == 0:
                torch.save({"step": step, "model_state_dict": model.state_dict(),
                            "optimizer_state_dict": optimizer.state_dict()}, os.path.join(directory, "checkpoint.pt"))
            if config["library"]:
                tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(directory) if step % 5 == 0 else None)
        step += 1
    return None if config["library"] else seconds


def run(library):
    """Runs the experiment and prints its facts. In a process of its own."""
    if library == "ray":
        import ray
        from ray import tune
        from ray.tune.schedulers import PopulationBasedTraining
    else:
        import cadre as ray
        from cadre import tune
        from cadre.tune.schedulers import PopulationBasedTraining
    ray.init(num_cpus=2)
    with tempfile.TemporaryDirectory() as storage:
        grid = tune.Tuner(
            train_convnet,
            run_config=tune.RunConfig(name="pbt", storage_path=storage, verbose=0,
                                      checkpoint_config=tune.CheckpointConfig(
                                          checkpoint_score_attribute="mean_accuracy", num_to_keep=4)),
            tune_config=tune.TuneConfig(num_samples=TRIALS, scheduler=PopulationBasedTraining(
                time_attr="training_iteration", perturbation_interval=5, metric="mean_accuracy", mode="max",
                hyperparam_mutations={"lr": tune.uniform(0.0001, 0.1), "momentum": [0.8, 0.9, 0.99]})),
            param_space={"library": library, "lr": tune.uniform(0.001, 0.1), "momentum": tune.uniform(0.1, 0.9)}).fit()
        rows = [json.loads(line) for path in pathlib.Path(storage).glob("pbt/*/result.json")
                for line in path.read_text().splitlines()]
        print(json.dumps({"errors": len(grid.errors), "best": max(row["mean_accuracy"] for row in rows),
                          "iteration": statistics.median(row["seconds"] for row in rows)}))


def plain():
    import torch

    torch.set_num_threads(1)
    print(json.dumps({"iteration": statistics.median(
        train_convnet({"library": None, "lr": 0.01, "momentum": 0.9}))}))


def measure(kind, processes=1):
    """Runs this file for a kind; returns its facts and the seconds that it took."""
    begin = time.perf_counter()
    command = [sys.executable, __file__, "--only", kind]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(processes)]
    outputs = [process.communicate() for process in started]
    seconds = time.perf_counter() - begin
    for process, (_, errors) in zip(started, outputs):
        if process.returncode != 0:
            raise SystemExit(f"{kind}: {errors}")
    return json.loads(outputs[0][0].splitlines()[-1]), seconds


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument("--without-ray", action="store_true")
    arguments.add_argument("--only", choices=["plain", "cadre", "ray"], help=argparse.SUPPRESS)
    arguments = arguments.parse_args()
    os.environ.setdefault("CADRE_MNIST", str(pathlib.Path(__file__).resolve().parents[2] / "data" / "mnist"))
    os.environ["OMP_NUM_THREADS"] = "1"
    if arguments.only:
        plain() if arguments.only == "plain" else run(arguments.only)
        return
    kinds = ["plain", "cadre", *([] if arguments.without_ray else ["ray"])]
    for number in range(arguments.rounds):
        found = {}
        for kind in kinds if number % 2 == 0 else reversed(kinds):  # so that none always finds what another has left behind
            found[kind] = measure(kind, 2 if kind == "plain" else 1)  # two plain processes at a time, as the trials
        alone, _ = found["plain"]
        cadre, cadre_seconds = found["cadre"]
        print(f"round {number}: cadre {cadre_seconds:.1f} s, {cadre['errors']} errors, best {cadre['best']:.3f}, an iteration "
              f"{cadre['iteration'] * 1000:.1f} ms, {cadre['iteration'] / alone['iteration']:.2f} of a plain process's", flush=True)
        if not arguments.without_ray:
            ray, ray_seconds = found["ray"]
            print(f"round {number}: ray {ray_seconds:.1f} s, {ray['errors']} errors, best {ray['best']:.3f}, an iteration "
                  f"{ray['iteration'] * 1000:.1f} ms; cadre takes {cadre_seconds / ray_seconds:.2f} of ray's time", flush=True)


if __name__ == "__main__":
    main()
