"""Validation of checkpoints beside training, in three forms: in one task, in a trainer, and by batches of a dataset."""

import os
import sys
import tempfile

import torch
from torch import nn

import cadre as ray
import cadre.data
import cadre.train.torch
from cadre.train import ValidationConfig, ValidationTaskConfig
from cadre.tune.examples.mnist_pytorch import read_images


def load_dataset(part, count):
    images, labels = read_images(part)
    return ray.data.from_items([{"image": image.reshape(-1), "label": int(label)}
                                for image, label in zip(images[:count], labels[:count])])


if not ray.is_initialized():
    ray.init(num_cpus=5)  # two workers that train, a validation, and two workers of its own
validation_dataset = load_dataset("t10k", 256)


def make_model():
    return nn.Sequential(nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10))


def predict(model, images):
    return model(torch.as_tensor(images).float() / 255)


def load_model(checkpoint):
    model = make_model()
    with checkpoint.as_directory() as checkpoint_dir:
        model.load_state_dict(torch.load(os.path.join(checkpoint_dir, "model.pt")))
    return model.eval()


def count_correct(model, batches):
    with torch.no_grad():
        return sum((predict(model, batch["image"]).argmax(1) == batch["label"]).sum().item() for batch in batches)


def validate_in_task(checkpoint):
    correct = count_correct(load_model(checkpoint), validation_dataset.iter_torch_batches(batch_size=128))
    return {"score": correct / validation_dataset.count()}


def eval_only_train_fn(config_dict):
    model = load_model(config_dict["checkpoint"])
    shard = ray.train.get_dataset_shard("validation")
    correct = torch.tensor([count_correct(model, shard.iter_torch_batches(batch_size=128))])
    torch.distributed.all_reduce(correct)
    return {"score": correct.item() / config_dict["num_rows"]}


def validate_in_trainer(checkpoint, train_run_name, epoch):
    trainer = ray.train.torch.TorchTrainer(
        eval_only_train_fn,
        train_loop_config={"checkpoint": checkpoint, "num_rows": validation_dataset.count()},
        scaling_config=ray.train.ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(name=f"{train_run_name}_validation_epoch_{epoch}"),
        datasets={"validation": validation_dataset})
    return trainer.fit().return_value


class Predictor:
    def __init__(self, checkpoint):
        self.model = load_model(checkpoint)

    def __call__(self, batch):
        with torch.no_grad():
            predicted = predict(self.model, batch["image"]).argmax(1).numpy()
        return {"res": predicted == batch["label"]}


def validate_by_batches(checkpoint, config):
    dataset = config["dataset"]
    dataset.set_name("validation")
    eval_res = dataset.map_batches(Predictor, batch_size=128, fn_constructor_kwargs={"checkpoint": checkpoint}, concurrency=2)
    return {"score": eval_res.mean(["res"]), "epoch_of_config": config["epoch"]}


def train_func(config):
    torch.manual_seed(0)
    model = ray.train.torch.prepare_model(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rank = ray.train.get_context().get_world_rank()
    shard = ray.train.get_dataset_shard("train")
    for epoch in range(config["epochs"]):
        for batch in shard.iter_torch_batches(batch_size=64):
            loss = nn.functional.cross_entropy(predict(model, batch["image"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            local_checkpoint_dir = tempfile.mkdtemp()
            torch.save(model.module.state_dict(), os.path.join(local_checkpoint_dir, "model.pt"))
            ray.train.report(
                {"loss": loss.item(), "epoch": epoch},
                checkpoint=ray.train.Checkpoint.from_directory(local_checkpoint_dir),
                checkpoint_upload_mode=ray.train.CheckpointUploadMode.ASYNC,
                **validation_of(config, epoch))
        else:
            ray.train.report({}, None)


def validation_of(config, epoch):
    if config["form"] == "task":
        return {"validation": True}
    if config["form"] == "trainer":
        kwargs = {"train_run_name": ray.train.get_context().get_experiment_name(), "epoch": epoch}
        return {"validation": ValidationTaskConfig(fn_kwargs=kwargs, timeout_s=300)}
    # The older form.
    return {"validate_fn": validate_by_batches, "validate_config": {"dataset": validation_dataset, "epoch": epoch}}


def main(storage_path):
    for form, validation_config in (("task", ValidationConfig(fn=validate_in_task)),
                                    ("trainer", ValidationConfig(fn=validate_in_trainer)), ("batches", None)):
        trainer = ray.train.torch.TorchTrainer(
            train_func, train_loop_config={"form": form, "epochs": 2},
            validation_config=validation_config,
            datasets={"train": load_dataset("train", 1024)},
            scaling_config=ray.train.ScalingConfig(num_workers=2),
            run_config=ray.train.RunConfig(name=f"validation_by_{form}", storage_path=storage_path))
        result = trainer.fit()
        print("FORM", form, *(f"{metrics['epoch']}:{metrics['score']:.6f}" for _, metrics in result.best_checkpoints),
              "score" in result.metrics)


if __name__ == "__main__":
    main(sys.argv[1])
