"""A rank's share of a dataset, and its order, are the same as of Python's torch.utils.data.DistributedSampler."""

import itertools
import os
import pathlib
import subprocess
import unittest

from torch.utils.data import DistributedSampler

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "torch_distributed_sampler_tool"

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


class TorchDistributedSamplerTest(unittest.TestCase):
    def test_shares_are_those_of_python(self):
        lines = [f"{size} {world_size} {rank} {int(shuffle)} {seed} {epoch} {'drop' if drop else 'pad'}"
                 for size, world_size, rank, shuffle, seed, epoch, drop in cases()]
        run = subprocess.run([TOOL], input="\n".join(lines), capture_output=True, text=True, check=True)
        shares = [[int(word) for word in line.split()] for line in run.stdout.splitlines()]
        self.assertEqual(len(shares), len(lines))
        for case, share in zip(cases(), shares):
            self.assertEqual(share, pythons_share(*case), case)


if __name__ == "__main__":
    unittest.main()
