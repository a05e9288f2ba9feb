"""Checkpoints of a training function: saved every third epoch, loaded when a failed trial is resumed."""

import os
import sys
import tempfile

import torch
from torch import nn

import cadre as ray
from cadre import tune
from cadre.tune import Checkpoint

NUM_EPOCHS = 12
CHECKPOINT_FREQ = 3


class MyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, inputs):
        return self.layer(inputs)


def train_func(config):
    start = 1
    torch.manual_seed(0)
    my_model = MyModel()
    optimizer = torch.optim.SGD(my_model.parameters(), lr=config["lr"])
    inputs = torch.randn(64, 4)
    targets = inputs.sum(1, keepdim=True)

    checkpoint = tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as checkpoint_dir:
            checkpoint_dict = torch.load(os.path.join(checkpoint_dir, "checkpoint.pt"))
        start = checkpoint_dict["epoch"] + 1
        my_model.load_state_dict(checkpoint_dict["model_state"])

    for epoch in range(start, config["epochs"] + 1):
        if epoch == config["fail_at"] and not checkpoint:
            raise RuntimeError(f"epoch {epoch} fails")
        loss = (my_model(inputs) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics = {"loss": loss.item(), "epoch": epoch, "started_at": start}
        if epoch % CHECKPOINT_FREQ == 0:
            with tempfile.TemporaryDirectory() as tempdir:
                torch.save({"epoch": epoch, "model_state": my_model.state_dict()}, os.path.join(tempdir, "checkpoint.pt"))
                tune.report(metrics=metrics, checkpoint=Checkpoint.from_directory(tempdir))
        else:
            tune.report(metrics)


def epochs_of(result):
    return [metrics["epoch"] for _, metrics in result.best_checkpoints]


def main(storage_path):
    if ray.is_initialized():
        ray.shutdown()
    ray.init(num_cpus=2)
    tuner = tune.Tuner(
        train_func, param_space={"epochs": NUM_EPOCHS, "lr": tune.grid_search([0.02, 0.1]),
                                 "fail_at": tune.sample_from(lambda config: 8 if config["lr"] == 0.1 else None)},
        tune_config=tune.TuneConfig(metric="loss", mode="min"),
        run_config=tune.RunConfig(name="checkpoints_function", storage_path=storage_path))
    result_grid = tuner.fit()
    print("FAILED", result_grid.num_errors, "epoch 8 fails" in str(result_grid.errors[0]),
          [result.metrics["epoch"] for result in result_grid], [epochs_of(result) for result in result_grid])

    path = os.path.join(storage_path, "checkpoints_function")
    print("CAN RESTORE", tune.Tuner.can_restore(path))
    restored = tune.Tuner.restore(path, trainable=train_func, resume_errored=True).fit()
    print("RESUMED", restored.num_errors, [result.metrics["epoch"] for result in restored],
          [result.metrics["started_at"] for result in restored], [epochs_of(result) for result in restored])

    best = tune.Tuner.restore(path, trainable=train_func).get_results().get_best_result()
    with best.checkpoint.as_directory() as checkpoint_dir:
        checkpoint_dict = torch.load(os.path.join(checkpoint_dir, "checkpoint.pt"))
    MyModel().load_state_dict(checkpoint_dict["model_state"])
    print("BEST", best.config["lr"], checkpoint_dict["epoch"], os.path.basename(best.checkpoint.path))


if __name__ == "__main__":
    main(sys.argv[1])
