"""Data-parallel training of a network for Fashion-MNIST in two workers."""

import os
import sys
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import cadre as ray
import cadre.train.torch
from cadre import train
from cadre.train import Checkpoint, CheckpointConfig, Result, RunConfig, ScalingConfig
from cadre.train.torch import TorchTrainer
from cadre.tune.examples.mnist_pytorch import read_images

NUM_TRAIN = 2048
NUM_TEST = 512


def dataset_of(part, count):
    images, labels = read_images(part)
    return TensorDataset(torch.from_numpy(images[:count]).unsqueeze(1) / 255, torch.from_numpy(labels[:count]))


def get_dataloaders(batch_size):
    train_dataloader = DataLoader(dataset_of("train", NUM_TRAIN), batch_size=batch_size, shuffle=True)
    test_dataloader = DataLoader(dataset_of("t10k", NUM_TEST), batch_size=batch_size)
    return train_dataloader, test_dataloader


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(nn.Linear(28 * 28, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))

    def forward(self, inputs):
        return self.linear_relu_stack(self.flatten(inputs))


def train_func_per_worker(config):
    train_dataloader, test_dataloader = get_dataloaders(batch_size=config["batch_size_per_worker"])
    train_dataloader = ray.train.torch.prepare_data_loader(train_dataloader)
    test_dataloader = ray.train.torch.prepare_data_loader(test_dataloader)
    model = ray.train.torch.prepare_model(NeuralNetwork())
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)

    for epoch in range(config["epochs"]):
        if ray.train.get_context().get_world_size() > 1:
            train_dataloader.sampler.set_epoch(epoch)
        model.train()
        num_seen = 0
        for inputs, labels in train_dataloader:
            loss = loss_fn(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            num_seen += len(inputs)

        model.eval()
        test_loss, num_correct, num_total = 0, 0, 0
        with torch.no_grad():
            for inputs, labels in test_dataloader:
                outputs = model(inputs)
                test_loss += loss_fn(outputs, labels).item()
                num_total += len(labels)
                num_correct += (outputs.argmax(1) == labels).sum().item()
        metrics = {"loss": test_loss / len(test_dataloader), "accuracy": num_correct / num_total, "num_seen": num_seen}
        print(f"rank {ray.train.get_context().get_world_rank()} has finished epoch {epoch}")

        with tempfile.TemporaryDirectory() as temp_checkpoint_dir:
            checkpoint = None
            if ray.train.get_context().get_world_rank() == 0:
                torch.save(model.module.state_dict(), os.path.join(temp_checkpoint_dir, "model.pt"))
                checkpoint = Checkpoint.from_directory(temp_checkpoint_dir)
            train.report(metrics, checkpoint=checkpoint)


def main(storage_path):
    if ray.is_initialized():
        ray.shutdown()
    ray.init(num_cpus=2)
    num_workers, global_batch_size = 2, 64
    trainer = TorchTrainer(
        train_loop_per_worker=train_func_per_worker,
        train_loop_config={"lr": 0.05, "epochs": 3, "batch_size_per_worker": global_batch_size // num_workers},
        scaling_config=ScalingConfig(num_workers=num_workers, use_gpu=False),
        run_config=RunConfig(name="fashion_mnist", storage_path=storage_path,
                             checkpoint_config=CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="accuracy")))
    result = trainer.fit()
    print("TRAINED", result.metrics["accuracy"], result.metrics["num_seen"], result.error)

    again = Result.from_path(os.path.join(storage_path, "fashion_mnist"))
    best = again.get_best_checkpoint("accuracy", "max")
    model = NeuralNetwork()
    with best.as_directory() as checkpoint_dir:
        model.load_state_dict(torch.load(os.path.join(checkpoint_dir, "model.pt")))
    model.eval()
    images, labels = (tensor[::num_workers] for tensor in dataset_of("t10k", NUM_TEST).tensors)  # those of rank 0
    accuracies = list(result.metrics_dataframe["accuracy"])
    print("READ", again.metrics == result.metrics, (model(images).argmax(1) == labels).float().mean().item() == max(accuracies),
          len(accuracies))


if __name__ == "__main__":
    main(sys.argv[1])
