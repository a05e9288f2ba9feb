"""A rank's share of a dataset, and its order, are the same as of Python's torch.utils.data.DistributedSampler, and what is
drawn by weights as of its WeightedRandomSampler."""

import itertools
import os
import pathlib
import subprocess
import unittest

import torch
from torch.utils.data import DistributedSampler, WeightedRandomSampler

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "torch_samplers_tool"

SIZES = [1, 2, 3, 5, 8, 100, 1001]
WORLD_SIZES = [1, 2, 3, 4, 7]
SEEDS_AND_EPOCHS = [(0, 0), (0, 1), (42, 0), (42, 3), (2**40, 7)]


def cases():
    for size, world_size, shuffle, (seed, epoch), drop in itertools.product(
            SIZES, WORLD_SIZES, (False, True), SEEDS_AND_EPOCHS, (False, True)):
        for rank in range(world_size):
            yield size, world_size, rank, shuffle, seed, epoch, drop


def pythons_share(size, world_size, rank, shuffle, seed, epoch, drop):
    sampler = DistributedSampler(range(size), world_size, rank, shuffle=shuffle, seed=seed, drop_last=drop)
    sampler.set_epoch(epoch)
    return list(sampler)


def weighted_cases():
    weights = [0.5, 3, 0, 1e-3, 7.25, 2, 2, 0.1]
    for replacement, count, seed, epoch in itertools.product((True, False), (1, 5, 7), (0, 42, 2**40), (0, 3)):
        yield weights, count, replacement, seed, epoch
    yield weights, 10_000, True, 1, 2


def indices_of_tool(lines):
    run = subprocess.run([TOOL], input="\n".join(lines), capture_output=True, text=True, check=True)
    found = [[int(word) for word in line.split()] for line in run.stdout.splitlines()]
    assert len(found) == len(lines), run
    return found


class TorchSamplersTest(unittest.TestCase):
    def test_shares_are_those_of_python(self):
        lines = [f"share {size} {world_size} {rank} {int(shuffle)} {seed} {epoch} {'drop' if drop else 'pad'}"
                 for size, world_size, rank, shuffle, seed, epoch, drop in cases()]
        for case, share in zip(cases(), indices_of_tool(lines)):
            self.assertEqual(share, pythons_share(*case), case)

    def test_what_is_drawn_by_weights_is_what_python_draws(self):
        lines = [f"weighted {count} {int(replacement)} {seed} {epoch} {len(weights)} {' '.join(map(str, weights))}"
                 for weights, count, replacement, seed, epoch in weighted_cases()]
        for case, drawn in zip(weighted_cases(), indices_of_tool(lines)):
            weights, count, replacement, seed, epoch = case
            generator = torch.Generator().manual_seed(seed + epoch)
            self.assertEqual(drawn, list(WeightedRandomSampler(weights, count, replacement, generator)), case)


if __name__ == "__main__":
    unittest.main()
