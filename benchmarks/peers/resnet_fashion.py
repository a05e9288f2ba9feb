#!/usr/bin/env python3
"""examples/resnet_fashion with Python's DistributedDataParallel: the same network, images, changes of them, rate, averages
and precision, in as many processes. Random numbers are other ones. Prints the accuracy of the averages."""

import argparse
import json
import pathlib
import time

import numpy
import torch
from ddp_step_time import ResNet18, free_port
from PIL import Image
from torch import distributed, multiprocessing, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

BATCH_SIZE = 32  # of each rank


class Jpegs(Dataset):
    """Images in folders that have the names of their classes."""

    def __init__(self, folder, augment=False):
        self.files = sorted(folder.glob("*/*.jpg"))
        self.augment = augment

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = torch.from_numpy(numpy.array(Image.open(self.files[index])))
        if self.augment:
            top, left = torch.randint(5, (2,)).tolist()
            image = nn.functional.pad(image, (2, 2, 2, 2))[top:top + 28, left:left + 28]
            if torch.rand(()) < 0.5:
                image = image.flip(-1)
        return (image[None].float() / 255 - 0.286) / 0.353, int(self.files[index].parent.name)


def make_model():
    """ResNet-18 with the first weights of torchvision's."""
    model = ResNet18()
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model


def accuracy(model, folder):
    model.eval()
    right = 0
    images = Jpegs(folder)
    with torch.no_grad():
        for pixels, labels in DataLoader(images, 256):
            right += int((model(pixels).argmax(1) == labels).sum())
    return right / len(images)


def train(rank, arguments, port):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                                   world_size=arguments.num_workers)
    torch.manual_seed(arguments.seed)
    model = nn.parallel.DistributedDataParallel(make_model())
    torch.manual_seed(arguments.seed * arguments.num_workers + rank)  # of the changes
    averages = AveragedModel(model.module, multi_avg_fn=get_ema_multi_avg_fn(0.99), use_buffers=True)
    images = Jpegs(arguments.data_dir / "train", augment=True)
    sampler = DistributedSampler(images, shuffle=True, seed=arguments.seed, drop_last=True)
    loader = DataLoader(images, BATCH_SIZE, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=arguments.epochs * len(loader))
    began = time.monotonic()
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for pixels, labels in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = nn.functional.cross_entropy(model(pixels), labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
            averages.update_parameters(model.module)
    training_s = time.monotonic() - began
    if rank == 0:
        print(json.dumps({"accuracy": accuracy(averages, arguments.data_dir / "test"),
                          "training_s": round(training_s, 1)}), flush=True)
    distributed.barrier()
    distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=pathlib.Path, default="data/fashion_mnist_jpegs")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--num-workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    multiprocessing.spawn(train, (arguments, free_port()), nprocs=arguments.num_workers)


if __name__ == "__main__":
    main()
