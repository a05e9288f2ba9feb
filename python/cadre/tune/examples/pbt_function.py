"""Population Based Training in seconds, without data: python -m cadre.tune.examples.pbt_function [--restore]

The toy problem of the paper (Jaderberg et al., 2017, figure 2): a trial climbs the surrogate 1.2 - h0 x^2 - h1 y^2, and what
counts is 1.2 - x^2 - y^2. The first h0 and h1 are too small for any trial to get to the top; a population whose trials take
over the best ones' places, and change h0 and h1, does. Ctrl-C it, or kill it with -9, and go on with --restore.
"""

import argparse
import json
import os
import time

from cadre import tune
from cadre.tune.schedulers import PopulationBasedTraining


def climb(config):
    """Climbs the surrogate of its config's h0 and h1, step by step, until it is stopped."""
    x, y, step = 0.9, 0.9, 0
    checkpoint = tune.get_checkpoint()
    if checkpoint:
        with open(os.path.join(checkpoint.path, "state.json")) as file:
            x, y, step = json.load(file)
    while True:
        step += 1
        x -= 0.02 * config["h0"] * x
        y -= 0.02 * config["h1"] * y
        time.sleep(0.02)  # stands for training

        def save(directory):
            with open(os.path.join(directory, "state.json"), "w") as file:
                json.dump([x, y, step], file)

        tune.report({"value": 1.2 - x ** 2 - y ** 2, "step": step}, checkpoint=save)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restore", action="store_true", help="go on with the experiment that was interrupted")
    parser.add_argument("--storage-path", default="results", help="the folder of the experiment (default: results)")
    arguments = parser.parse_args()
    path = os.path.join(arguments.storage_path, "pbt_function")
    if arguments.restore:
        tuner = tune.Tuner.restore(path)
    else:
        tuner = tune.Tuner(
            climb,
            param_space={"h0": tune.uniform(0, 0.2), "h1": tune.uniform(0, 0.2)},
            tune_config=tune.TuneConfig(
                metric="value", mode="max", num_samples=8,
                scheduler=PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=10,
                                                  hyperparam_mutations={"h0": tune.uniform(0, 1), "h1": tune.uniform(0, 1)})),
            run_config=tune.RunConfig(name="pbt_function", storage_path=arguments.storage_path,
                                      stop={"training_iteration": 200}))
    best = tuner.fit().get_best_result()
    print(f"The best trial reached {best.metrics['value']:.4f} of 1.2; alone, no trial gets beyond 0.88.\n"
          f"Look at it: cadre show {path}")


if __name__ == "__main__":
    main()
