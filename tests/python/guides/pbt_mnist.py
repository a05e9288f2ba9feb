"""Population Based Training of a network for MNIST, and the replay of the schedule that it found."""

import os
import sys
import tempfile

import torch
import torch.optim as optim

import cadre as ray
from cadre import tune
from cadre.tune import Checkpoint
from cadre.tune.examples.mnist_pytorch import ConvNet, get_data_loaders, test_func, train_func
from cadre.tune.schedulers import PopulationBasedTraining, PopulationBasedTrainingReplay

perturbation_interval = 4


def train_convnet(config):
    step = 1
    train_loader, test_loader = get_data_loaders()
    model = ConvNet()
    optimizer = optim.SGD(model.parameters(), lr=config.get("lr", 0.01), momentum=config.get("momentum", 0.9))
    if tune.get_checkpoint():
        with tune.get_checkpoint().as_directory() as checkpoint_dir:
            checkpoint_dict = torch.load(os.path.join(checkpoint_dir, "checkpoint.pt"))
        model.load_state_dict(checkpoint_dict["model_state_dict"])
        optimizer.load_state_dict(checkpoint_dict["optimizer_state_dict"])
        # The scheduler's values, not those of the checkpoint.
        for param_group in optimizer.param_groups:
            if "lr" in config:
                param_group["lr"] = config["lr"]
            if "momentum" in config:
                param_group["momentum"] = config["momentum"]
        step = checkpoint_dict["step"] + 1
    while True:
        train_func(model, optimizer, train_loader)
        acc = test_func(model, test_loader)
        metrics = {"mean_accuracy": acc, "lr": config["lr"]}
        if step % config["checkpoint_interval"] == 0:
            with tempfile.TemporaryDirectory() as tmpdir:
                torch.save({"step": step, "model_state_dict": model.state_dict(),
                            "optimizer_state_dict": optimizer.state_dict()}, os.path.join(tmpdir, "checkpoint.pt"))
                tune.report(metrics, checkpoint=Checkpoint.from_directory(tmpdir))
        else:
            tune.report(metrics)
        step += 1


def main(storage_path):
    scheduler = PopulationBasedTraining(
        time_attr="training_iteration", perturbation_interval=perturbation_interval, metric="mean_accuracy", mode="max",
        hyperparam_mutations={"lr": tune.uniform(0.0001, 1), "momentum": [0.8, 0.9, 0.99]}, synch=True)
    if ray.is_initialized():
        ray.shutdown()
    ray.init(num_cpus=2)
    tuner = tune.Tuner(
        train_convnet,
        run_config=tune.RunConfig(
            name="pbt_test", stop={"mean_accuracy": 0.96, "training_iteration": 16}, storage_path=storage_path,
            checkpoint_config=tune.CheckpointConfig(checkpoint_score_attribute="mean_accuracy", num_to_keep=4)),
        tune_config=tune.TuneConfig(scheduler=scheduler, num_samples=4),
        param_space={"lr": tune.uniform(0.001, 1), "momentum": tune.uniform(0.1, 0.9),
                     "checkpoint_interval": perturbation_interval})
    results_grid = tuner.fit()
    best_result = results_grid.get_best_result(metric="mean_accuracy", mode="max")
    print("BEST", best_result.metrics["mean_accuracy"], best_result.metrics["config"]["lr"] == best_result.config["lr"])
    last = [result.metrics_dataframe["mean_accuracy"].iloc[-1] for result in results_grid]
    print("LAST", last == [result.metrics["mean_accuracy"] for result in results_grid])

    policies = sorted(name for name in os.listdir(results_grid.experiment_path) if name.startswith("pbt_policy_"))
    replay = PopulationBasedTrainingReplay(os.path.join(results_grid.experiment_path, policies[0]))
    tuner = tune.Tuner(
        train_convnet, tune_config=tune.TuneConfig(scheduler=replay),
        run_config=tune.RunConfig(name="replay", storage_path=storage_path, stop={"training_iteration": 16}))
    results_grid = tuner.fit()
    print("REPLAYED", results_grid[0].metrics["training_iteration"], len(results_grid.errors))


if __name__ == "__main__":
    main(sys.argv[1])
