"""Checkpoints of PyTorch Lightning's Trainer in trials, by a callback of its own."""

import os
import sys

import lightning.pytorch as pl
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import cadre as ray
from cadre import tune
from cadre.tune.examples.mnist_pytorch import read_images
from cadre.tune.integration.pytorch_lightning import TuneReportCheckpointCallback


class MNISTDataModule(pl.LightningDataModule):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.parts = {}
        for part, count in (("train", 1024), ("t10k", 256)):
            images, labels = read_images(part)
            self.parts[part] = TensorDataset(torch.from_numpy(images[:count]) / 255, torch.from_numpy(labels[:count]))

    def train_dataloader(self):
        return DataLoader(self.parts["train"], batch_size=self.batch_size)

    def val_dataloader(self):
        return DataLoader(self.parts["t10k"], batch_size=self.batch_size)


class LightningMNISTClassifier(pl.LightningModule):
    def __init__(self, config):
        super().__init__()
        self.save_hyperparameters()
        self.lr = config["lr"]
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, config["layer_1"]), nn.ReLU(),
                                    nn.Linear(config["layer_1"], 10))

    def forward(self, images):
        return self.layers(images)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)

    def training_step(self, batch, batch_idx):
        images, labels = batch
        return F.cross_entropy(self(images), labels)

    def validation_step(self, batch, batch_idx):
        images, labels = batch
        logits = self(images)
        self.log("ptl/val_loss", F.cross_entropy(logits, labels))
        self.log("ptl/val_accuracy", (logits.argmax(1) == labels).float().mean())


def train_mnist_tune(config, num_epochs):
    callback = TuneReportCheckpointCallback({"loss": "ptl/val_loss", "acc": "ptl/val_accuracy"}, filename="checkpoint.ckpt",
                                            on="validation_end")
    trainer = pl.Trainer(max_epochs=num_epochs, accelerator="cpu", callbacks=[callback], logger=False,
                         enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(LightningMNISTClassifier(config), MNISTDataModule(batch_size=config["batch_size"]))


def main(storage_path):
    if ray.is_initialized():
        ray.shutdown()
    ray.init(num_cpus=2)
    tuner = tune.Tuner(
        tune.with_resources(tune.with_parameters(train_mnist_tune, num_epochs=2), resources={"cpu": 1}),
        tune_config=tune.TuneConfig(metric="loss", mode="min"),
        run_config=tune.RunConfig(name="tune_mnist", storage_path=storage_path),
        param_space={"layer_1": 32, "lr": tune.grid_search([1e-5, 1e-2]), "batch_size": 64})
    results = tuner.fit()
    best_result = results.get_best_result()
    print("BEST", best_result.config["lr"], len(best_result.best_checkpoints), results.num_errors)

    with best_result.checkpoint.as_directory() as checkpoint_dir:
        model = LightningMNISTClassifier.load_from_checkpoint(os.path.join(checkpoint_dir, "checkpoint.ckpt"))
    data = MNISTDataModule(batch_size=256)
    data.setup()
    (images, labels), = data.val_dataloader()
    accuracy = (model.eval()(images).argmax(1) == labels).float().mean().item()
    print("READ", accuracy == best_result.metrics["acc"], model.lr)


if __name__ == "__main__":
    main(sys.argv[1])
