#!/usr/bin/env python3
"""The counterpart of cadre_augment_images with PyTorch's DataLoader: the same files, batches, workers and transforms.

Decodes with Pillow, and does what torchvision's transforms do with Pillow's images, with fewer calls in between. Measures
epochs after a first one, which starts the workers.
"""

import argparse
import json
import math
import pathlib
import random
import time

import numpy
import PIL.Image
import torch

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
SIZE = 224


def draw_area(width, height, rng, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3)):
    """The part that torchvision's RandomResizedCrop cuts out: left, upper, right, lower."""
    for _ in range(10):
        area = width * height * rng.uniform(*scale)
        proportion = math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w = round(math.sqrt(area * proportion))
        h = round(math.sqrt(area / proportion))
        if 0 < w <= width and 0 < h <= height:
            top = rng.randint(0, height - h)
            left = rng.randint(0, width - w)
            return left, top, left + w, top + h
    return 0, 0, width, height


class Images(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.files = sorted(pathlib.Path(folder).iterdir())
        self.epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        rng = random.Random(int(self.epoch) * len(self.files) + index)
        image = PIL.Image.open(self.files[index]).convert("RGB")
        area = draw_area(*image.size, rng)
        image = image.crop(area).resize((SIZE, SIZE), PIL.Image.BILINEAR)
        if rng.random() < 0.5:
            image = image.transpose(PIL.Image.FLIP_LEFT_RIGHT)
        tensor = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).contiguous().to(torch.float32).div_(255)
        return tensor.sub_(MEAN).div_(STD)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--threads", type=int, default=2, help="worker processes")
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    images = Images(arguments.folder)
    loader = torch.utils.data.DataLoader(images, batch_size=64, num_workers=arguments.threads, persistent_workers=True)
    for epoch in range(-1, arguments.epochs):
        images.epoch.fill_(epoch + 1)
        began = time.time()
        count, total = 0, 0.0
        for batch in loader:
            count += len(batch)
            total += float(batch.sum())
        seconds = time.time() - began
        if epoch >= 0:
            print(json.dumps({"way": "torch", "epoch": epoch, "images": count, "mean": total / count / (3 * SIZE * SIZE),
                              "seconds": seconds, "images_per_s": count / seconds}), flush=True)


if __name__ == "__main__":
    main()
