#!/usr/bin/env python3
"""cadre_step_time with Python's DistributedDataParallel, ZeroRedundancyOptimizer and fully_shard: the same networks, batch,
threads and backend."""

import argparse
import json
import os
import socket
import time

import torch
from torch import distributed, multiprocessing, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer

WIDTH, LENGTH = 512, 32


class ConvNet(nn.Module):
    """The network of examples/models/convnet.h."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 7 * 7, 10)

    def forward(self, images):
        first = torch.max_pool2d(torch.relu(self.conv1(images)), 2)
        second = torch.max_pool2d(torch.relu(self.conv2(first)), 2)
        return self.fc(second.flatten(1))


class BasicBlock(nn.Module):
    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample = None
        if stride != 1 or in_channels != out_channels:
            self.downsample = nn.Sequential(nn.Conv2d(in_channels, out_channels, 1, stride, bias=False),
                                            nn.BatchNorm2d(out_channels))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(x)) + shortcut)


class ResNet18(nn.Module):
    """cadre::vision::resnet18 for grey images of 10 classes."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        channels = 64
        layers = []
        for index, out_channels in enumerate([64, 128, 256, 512]):
            layers.append(nn.Sequential(BasicBlock(channels, out_channels, 1 if index == 0 else 2),
                                        BasicBlock(out_channels, out_channels, 1)))
            channels = out_channels
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(512, 10)

    def forward(self, images):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(images))))
        return self.fc(self.layers(x).mean((2, 3)))


class Transformer(nn.Module):
    """That of cadre_step_time."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0) for _ in range(8))
        self.fc = nn.Linear(WIDTH, 10)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.fc(x.mean(0))


MODELS = {"convnet": ConvNet, "resnet18": ResNet18, "transformer": Transformer}


def memory_mib(name):
    """Returns a line of /proc/self/status, such as VmHWM, the most memory that this process had."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(name + ":"))


def prepare(arguments):
    """Returns the model and its optimizer."""
    model = MODELS[arguments.model]()
    if arguments.divided == "parameters":
        mesh = init_device_mesh("cpu", (arguments.workers,))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model, torch.optim.Adam(model.parameters(), lr=0.001)
    model = nn.parallel.DistributedDataParallel(model)
    if arguments.divided == "optimizer":
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.001)
    return model, torch.optim.Adam(model.parameters(), lr=0.001)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def time_steps(rank, arguments, port, results):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    distributed.init_process_group("gloo", rank=rank, world_size=arguments.workers)
    torch.manual_seed(0)
    memory_before = memory_mib("VmRSS")
    model, optimizer = prepare(arguments)
    images = torch.randn(arguments.batch_size, 1, 28, 28)
    if arguments.model == "transformer":
        images = torch.randn(LENGTH, arguments.batch_size, WIDTH)
    labels = torch.randint(10, (arguments.batch_size,))
    times = []
    for step in range(arguments.warm_up + arguments.steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        if step >= arguments.warm_up:
            times.append((time.perf_counter() - began) * 1e3)
    if rank == 0:
        results.put({"step_ms": times, "memory_mib": memory_mib("VmHWM") - memory_before})
    distributed.barrier()
    distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="convnet")
    parser.add_argument("--divided", choices=["nothing", "optimizer", "parameters"], default="nothing", help="among the ranks")
    parser.add_argument("--workers", type=int, default=2, help="ranks, of one thread each")
    parser.add_argument("--batch-size", type=int, default=128, help="of each rank")
    parser.add_argument("--warm-up", type=int, default=5, help="steps that do not count")
    parser.add_argument("--steps", type=int, default=50, help="that do")
    arguments = parser.parse_args()
    results = multiprocessing.get_context("spawn").SimpleQueue()
    multiprocessing.spawn(time_steps, (arguments, free_port(), results), nprocs=arguments.workers)
    print(json.dumps({"peer": "python"} | results.get()))


if __name__ == "__main__":
    main()
