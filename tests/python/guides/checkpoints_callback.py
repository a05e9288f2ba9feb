"""Checkpoints that a callback asks for: after so many samples, and where the loss is much better."""

import json
import os
import sys

import cadre as ray
from cadre import tune
from cadre.tune import Callback
from cadre.tune.result import SHOULD_CHECKPOINT


class CheckpointBySamples(Callback):
    def __init__(self, samples_per_checkpoint, improvement=0.5):
        self.samples_per_checkpoint = samples_per_checkpoint
        self.improvement = improvement
        self.last_samples = {}
        self.best_losses = {}
        self.saved = []

    def on_trial_result(self, iteration, trials, trial, result, **info):
        samples = result["samples"]
        best_loss = self.best_losses.setdefault(trial.trial_id, result["mean_loss"])
        if result["mean_loss"] < best_loss * self.improvement:
            self.best_losses[trial.trial_id] = result["mean_loss"]
            result[SHOULD_CHECKPOINT] = True
        if samples - self.last_samples.get(trial.trial_id, 0) >= self.samples_per_checkpoint:
            self.last_samples[trial.trial_id] = samples
            result[SHOULD_CHECKPOINT] = True

    def on_checkpoint(self, iteration, trials, trial, checkpoint, **info):
        self.saved.append((trial.config["width"], os.path.basename(checkpoint.path)))


class OptimizationTrainable(tune.Trainable):
    def setup(self, config):
        self.current_step = 0
        self.width = config["width"]

    def step(self):
        self.current_step += 1
        loss = 1.0 if self.current_step < 5 else 0.25
        return {"iterations": self.current_step, "samples": self.current_step * self.width, "mean_loss": loss * self.width}

    def save_checkpoint(self, checkpoint_dir):
        with open(os.path.join(checkpoint_dir, "checkpoint.json"), "w") as file:
            json.dump({"step": self.current_step, "width": self.width}, file)

    def load_checkpoint(self, checkpoint_dir):
        with open(os.path.join(checkpoint_dir, "checkpoint.json")) as file:
            state = json.load(file)
        self.current_step, self.width = state["step"], state["width"]


def main(storage_path):
    if ray.is_initialized():
        ray.shutdown()
    ray.init(num_cpus=2)
    callback = CheckpointBySamples(samples_per_checkpoint=30)
    tuner = tune.Tuner(
        OptimizationTrainable,
        run_config=tune.RunConfig(
            name="checkpoints_callback", storage_path=storage_path, stop={"training_iteration": 8}, callbacks=[callback],
            # No periodic checkpoints: the callback says when, and there is one at the end.
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=True)),
        tune_config=tune.TuneConfig(metric="mean_loss", mode="min"),
        param_space={"width": tune.grid_search([10, 20])})
    results = tuner.fit()
    for result in results:
        print("WIDTH", result.config["width"], [metrics["iterations"] for _, metrics in result.best_checkpoints],
              len([name for width, name in callback.saved if width == result.config["width"]]))
    best_result = results.get_best_result()
    with best_result.checkpoint.as_directory() as checkpoint_dir:
        with open(os.path.join(checkpoint_dir, "checkpoint.json")) as file:
            print("BEST", best_result.config["width"], json.load(file))


if __name__ == "__main__":
    main(sys.argv[1])
