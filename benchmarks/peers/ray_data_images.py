#!/usr/bin/env python3
"""The Ray Data counterpart of cadre_read_images: the same files, batches and CPUs.

Measures a whole execution, after Ray was started and warmed up by a first one.
"""

import argparse
import json
import time

import numpy
import ray


def execute(arguments):
    """Returns the number of images and the sum of all their values."""
    options = {"size": (arguments.size, arguments.size), "mode": "RGB"} if arguments.size else {}
    images, total = 0, 0
    for batch in ray.data.read_images(arguments.folder, **options).iter_batches(batch_size=64):
        images += len(batch["image"])
        total += int(batch["image"].sum(dtype=numpy.int64))
    return images, total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--threads", type=int, default=2, help="CPUs that Ray may use")
    parser.add_argument("--size", type=int, default=0, help="height and width of the results; 0: the images' own")
    arguments = parser.parse_args()
    ray.init(num_cpus=arguments.threads, log_to_driver=False, include_dashboard=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    execute(arguments)
    began = time.time()
    images, total = execute(arguments)
    seconds = time.time() - began
    print(json.dumps({"way": "ray", "images": images, "sum": total, "seconds": seconds, "images_per_s": images / seconds}))


if __name__ == "__main__":
    main()
