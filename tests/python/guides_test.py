"""Programs as Ray's guides have them, written anew, with nothing changed but the imports."""

import os
import pathlib
import re

import pytest

MNIST = pathlib.Path(__file__).parents[2] / "data" / "mnist"

PBT = """
import os, sys, tempfile
import torch
import torch.optim as optim
import cadre as ray
from cadre import tune
from cadre.tune import Checkpoint
from cadre.tune.examples.mnist_pytorch import ConvNet, get_data_loaders, test_func, train_func
from cadre.tune.schedulers import PopulationBasedTraining, PopulationBasedTrainingReplay


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


perturbation_interval = 4
scheduler = PopulationBasedTraining(
    time_attr="training_iteration", perturbation_interval=perturbation_interval, metric="mean_accuracy", mode="max",
    hyperparam_mutations={"lr": tune.uniform(0.0001, 1), "momentum": [0.8, 0.9, 0.99]}, synch=True)
if ray.is_initialized():
    ray.shutdown()
ray.init(num_cpus=2)
tuner = tune.Tuner(
    train_convnet,
    run_config=tune.RunConfig(
        name="pbt_test", stop={"mean_accuracy": 0.96, "training_iteration": 16}, storage_path=sys.argv[1], verbose=0,
        checkpoint_config=tune.CheckpointConfig(checkpoint_score_attribute="mean_accuracy", num_to_keep=4)),
    tune_config=tune.TuneConfig(scheduler=scheduler, num_samples=4),
    param_space={"lr": tune.uniform(0.001, 1), "momentum": tune.uniform(0.1, 0.9),
                 "checkpoint_interval": perturbation_interval})
results_grid = tuner.fit()
best_result = results_grid.get_best_result(metric="mean_accuracy", mode="max")
print("BEST", best_result.metrics["mean_accuracy"], len(results_grid.errors), os.path.isdir(best_result.path))
files = sorted(name for name in os.listdir(results_grid.experiment_path) if name.startswith("pbt_policy_"))
print("POLICIES", len(files))

replay = PopulationBasedTrainingReplay(os.path.join(results_grid.experiment_path, files[0]))
replayed = tune.Tuner(
    train_convnet, tune_config=tune.TuneConfig(scheduler=replay),
    run_config=tune.RunConfig(name="replay", storage_path=sys.argv[1], stop={"training_iteration": 16}, verbose=0)).fit()
print("REPLAYED", replayed[0].metrics["training_iteration"], len(replayed.errors))
"""


@pytest.mark.skipif(not MNIST.is_dir(), reason="data/mnist is not there: make setup")
def test_population_based_training_on_mnist_and_its_replay(programs, tmp_path):
    programs.environment["CADRE_MNIST"] = str(MNIST)
    for _ in range(2):  # with one name
        done = programs.run(PBT, str(tmp_path), timeout=200)
        best, errors, is_there = re.search(r"BEST (\S+) (\d+) (\w+)", done.stdout).groups()
        assert float(best) > 0.8 and errors == "0" and is_there == "True", done.stdout
        assert int(re.search(r"POLICIES (\d+)", done.stdout)[1]) >= 1
        assert "REPLAYED 16 0" in done.stdout
    assert len([name for name in os.listdir(tmp_path) if name.startswith("pbt_test")]) == 2


DCGAN = """
import os, sys
import numpy as np
import torch
import cadre as ray
from cadre import tune
from cadre.tune.examples.pbt_dcgan_mnist.common import MODEL_PATH, Net, demo_gan, get_data_loader, plot_images
from cadre.tune.examples.pbt_dcgan_mnist.pbt_dcgan_mnist_func import dcgan_train, download_mnist_cnn
from cadre.tune.schedulers import PopulationBasedTraining

os.makedirs(os.path.dirname(MODEL_PATH))
torch.save(Net().state_dict(), MODEL_PATH)  # so that none is trained here, which takes a minute
ray.init(num_cpus=2)
plot_images(get_data_loader())
mnist_cnn = Net()
mnist_cnn.load_state_dict(torch.load(download_mnist_cnn()))
mnist_cnn.eval()
mnist_model_ref = ray.put(mnist_cnn)
scheduler = PopulationBasedTraining(
    time_attr="training_iteration", perturbation_interval=2,
    hyperparam_mutations={"netG_lr": lambda: np.random.uniform(1e-2, 1e-5), "netD_lr": lambda: np.random.uniform(1e-2, 1e-5)})
tuner = tune.Tuner(
    dcgan_train,
    run_config=tune.RunConfig(name="pbt_dcgan_mnist_tutorial", storage_path=sys.argv[1], stop={"training_iteration": 6}, verbose=0),
    tune_config=tune.TuneConfig(metric="is_score", mode="max", num_samples=4, scheduler=scheduler),
    param_space={"netG_lr": tune.choice([0.0001, 0.0002, 0.0005]), "netD_lr": tune.choice([0.0001, 0.0002, 0.0005]),
                 "mnist_model_ref": mnist_model_ref, "checkpoint_interval": 2})
results_grid = tuner.fit()
demo_gan([result.checkpoint.path for result in results_grid])
print("SCORES", all(result.metrics["is_score"] >= 1 for result in results_grid), len(results_grid.errors))
"""


@pytest.mark.skipif(not MNIST.is_dir(), reason="data/mnist is not there: make setup")
def test_population_based_training_of_a_dcgan(programs, tmp_path):
    programs.environment.update(CADRE_MNIST=str(MNIST), HOME=str(tmp_path))
    done = programs.run(DCGAN, str(tmp_path), timeout=250)
    assert "SCORES True 0" in done.stdout
    assert list((tmp_path / "pbt_dcgan_mnist_tutorial").glob("pbt_policy_*.txt"))
    for name, height in (("real.png", 8 * 34), ("generated.png", 4 * 8 * 34)):
        data = (tmp_path / name).read_bytes()
        assert data.startswith(b"\x89PNG") and int.from_bytes(data[20:24], "big") == height
