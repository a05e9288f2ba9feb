"""Checkpoints of a trainable class: periodic, at the end, when the class asks for one, and after a failure."""

import os
import sys

import torch
from torch import nn

import cadre as ray
from cadre import tune
from cadre.tune import Checkpoint, Result


class MyTrainableClass(tune.Trainable):
    def setup(self, config):
        self.is_resumed = False
        self.model = nn.Sequential(nn.Linear(config.get("input_size", 32), 32), nn.ReLU(), nn.Linear(32, 10))
        self.steps = 0

    def step(self):
        self.steps += 1
        with torch.no_grad():
            self.model[0].bias.fill_(self.steps)
        if self.steps == 6 and not self.is_resumed:
            raise RuntimeError("step 6 fails once")
        result = {"steps": self.steps, "score": -abs(self.steps - 4)}
        if self.steps == 3:
            result.update(should_checkpoint=True)
        return result

    def save_checkpoint(self, tmp_checkpoint_dir):
        checkpoint_path = os.path.join(tmp_checkpoint_dir, "model.pth")
        torch.save({"model": self.model.state_dict(), "steps": self.steps}, checkpoint_path)
        return tmp_checkpoint_dir

    def load_checkpoint(self, tmp_checkpoint_dir):
        state = torch.load(os.path.join(tmp_checkpoint_dir, "model.pth"))
        self.model.load_state_dict(state["model"])
        self.steps = state["steps"]
        self.is_resumed = True


class DictTrainable(tune.Trainable):
    def setup(self, config):
        self.count = 0

    def step(self):
        self.count += 1
        return {"count": self.count, "score": [0, 3, 1, 2, 0][self.count - 1]}

    def save_checkpoint(self, checkpoint_dir):
        return {"count": self.count}

    def load_checkpoint(self, checkpoint):
        self.count = checkpoint["count"]


def steps_of(result, key):
    return [metrics[key] for _, metrics in result.best_checkpoints]


def main(storage_path):
    if ray.is_initialized():
        ray.shutdown()
    ray.init(num_cpus=2)
    tuner = tune.Tuner(
        MyTrainableClass, param_space={"input_size": 64},
        run_config=tune.RunConfig(
            name="checkpoints_class", storage_path=storage_path, stop={"training_iteration": 7},
            failure_config=tune.FailureConfig(max_failures=1),
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=2, checkpoint_at_end=True)))
    result = tuner.fit()[0]
    print("CLASS", result.metrics["training_iteration"], result.metrics["steps"], result.error, steps_of(result, "steps"))
    alone = MyTrainableClass({"input_size": 64})
    alone.restore(result.checkpoint)
    print("ALONE", alone.steps, alone.model[0].bias[0].item(), alone.train()["steps"])

    tuner = tune.Tuner(
        DictTrainable,
        run_config=tune.RunConfig(
            name="checkpoints_dict", storage_path=storage_path, stop={"training_iteration": 5},
            checkpoint_config=tune.CheckpointConfig(
                checkpoint_frequency=1, num_to_keep=2, checkpoint_score_attribute="score", checkpoint_score_order="max")))
    result = tuner.fit()[0]
    again = Result.from_path(result.path)
    best = again.get_best_checkpoint(metric="score", mode="max")
    another = DictTrainable()
    another.restore(best)
    print("DICT", another.count, again.metrics["count"], isinstance(best, Checkpoint))


if __name__ == "__main__":
    main(sys.argv[1])
