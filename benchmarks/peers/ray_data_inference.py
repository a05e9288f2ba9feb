#!/usr/bin/env python3
"""The Ray Data counterpart of cadre_batch_inference: the same images, network, batches and processes.

Measures two times: the whole execution, after Ray was started and warmed up by a first execution; and from the
beginning of the first batch to the end, without the start of the processes that hold the network.
"""

import argparse
import json
import pathlib
import time

import pyarrow
import ray
import torch
from ddp_step_time import ConvNet


class Predictor:
    def __init__(self, model):
        torch.set_num_threads(1)
        self.model = ConvNet()
        self.model.load_state_dict(dict(torch.jit.load(model).named_parameters()))
        self.model.eval()

    @torch.no_grad()
    def __call__(self, batch):
        began = time.time()
        pixels = batch["image"].combine_chunks().flatten().to_numpy().reshape(-1, 1, 28, 28)
        labels = torch.from_numpy(batch["label"].combine_chunks().to_numpy())
        images = torch.from_numpy(pixels).to(torch.float).div(127.5).sub(1)
        right = self.model(images).argmax(1).eq(labels).to(torch.long)
        return pyarrow.table({"right": right.numpy(), "began": [began] * len(labels)})


def execute(arguments):
    """Returns (right, seconds, seconds from the first batch on)."""
    began = time.time()
    results = ray.data.read_parquet(str(arguments.folder / "images")).map_batches(
        Predictor, batch_size=arguments.batch_size, batch_format="pyarrow", num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=arguments.workers),
        fn_constructor_args=(str(arguments.folder / "model.pt"),)).materialize()
    ended = time.time()
    return results.sum("right"), ended - began, ended - results.min("began")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="with images and network, by --way write")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--images", type=int, default=10000, help="that there are")
    arguments = parser.parse_args()
    # Each of Ray's reads takes a CPU; without one more CPU than workers they would wait for ever.
    ray.init(num_cpus=arguments.workers + 1, log_to_driver=False, include_dashboard=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    execute(arguments)
    right, seconds, from_first_batch = execute(arguments)
    print(json.dumps({"way": "ray", "rows": arguments.images, "right": right, "seconds": seconds,
                      "rows_per_s": arguments.images / seconds,
                      "rows_per_s_from_first_batch": arguments.images / from_first_batch}))


if __name__ == "__main__":
    main()
