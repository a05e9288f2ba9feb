"""Lightning, Transformers, MLflow and Weights & Biases: the real packages, in training runs and in experiments."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.update({"WANDB_MODE": "offline", "WANDB_SILENT": "true", "MLFLOW_ALLOW_FILE_STORE": "true",
                   "HF_HUB_OFFLINE": "1"})

import lightning.pytorch as lightning
import mlflow
import pytest
import torch
import transformers
from torch.utils.data import DataLoader, TensorDataset
from wandb.proto.wandb_internal_pb2 import Record

from cadre import train, tune
from cadre.air.integrations.mlflow import MLflowLoggerCallback, setup_mlflow
from cadre.air.integrations.wandb import WandbLoggerCallback, setup_wandb
from cadre.train.huggingface import transformers as huggingface
from cadre.train.lightning import RayDDPStrategy, RayLightningEnvironment, RayTrainReportCallback, prepare_trainer
from cadre.train.torch import TorchTrainer
from cadre.tune.integration.pytorch_lightning import TuneReportCallback, TuneReportCheckpointCallback
from cadre.tune.integration.ray_train import TuneReportCallback as ReportsOfRun
from cadre.tune.logger import CSVLoggerCallback, JsonLoggerCallback, TBXLoggerCallback, pretty_print
from cadre.tune.schedulers import PopulationBasedTraining

QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False, "logger": False}


def run(function, folder, *, name="run", num_workers=2, config=None, callbacks=None, max_failures=0, validation=None):
    return TorchTrainer(
        function, train_loop_config=config or {}, scaling_config=train.ScalingConfig(num_workers=num_workers),
        validation_config=validation and train.ValidationConfig(fn=validation),
        run_config=train.RunConfig(name=name, storage_path=str(folder), verbose=0, callbacks=callbacks,
                                   failure_config=train.FailureConfig(max_failures=max_failures))).fit()


# ---- Lightning


class Line(lightning.LightningModule):
    """Learns the sum of four numbers."""

    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        self.layer = torch.nn.Linear(4, 1)

    def loss(self, batch):
        inputs, targets = batch
        return (self.layer(inputs) - targets).square().mean()

    def training_step(self, batch, index):
        return self.loss(batch)

    def validation_step(self, batch, index):
        self.log("val_loss", self.loss(batch), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


def lines():
    inputs = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=8)


def train_lines(config):
    torch.manual_seed(0)
    trainer = prepare_trainer(lightning.Trainer(
        max_epochs=4, accelerator="cpu", strategy=RayDDPStrategy(), plugins=[RayLightningEnvironment()],
        callbacks=[RayTrainReportCallback(validation=config.get("validation", False))], **QUIET))
    checkpoint = train.get_checkpoint()
    if checkpoint is None and "fails" in config:
        trainer.callbacks.append(FailsAfterTwoEpochs())
    path = None if checkpoint is None else os.path.join(checkpoint.path, "checkpoint.ckpt")
    trainer.fit(Line(0.1), lines(), lines(), ckpt_path=path)


class FailsAfterTwoEpochs(lightning.Callback):
    def on_train_epoch_start(self, trainer, pl_module):
        if trainer.current_epoch == 2:
            raise RuntimeError("two epochs")


def test_a_lightning_module_trains_in_two_workers_and_goes_on_from_its_checkpoint(tmp_path):
    result = run(train_lines, tmp_path, name="whole")
    history = result.metrics_dataframe
    assert list(history["epoch"]) == [0, 1, 2, 3]
    assert list(history["step"]) == [4, 8, 12, 16]  # half of the batches for each of two workers
    assert history["val_loss"].iloc[-1] < history["val_loss"].iloc[0] / 5
    continued = run(train_lines, tmp_path, name="fails", config={"fails": True}, max_failures=1)
    assert list(continued.metrics_dataframe["epoch"]) == [0, 1, 2, 3]
    assert continued.metrics["val_loss"] == pytest.approx(result.metrics["val_loss"])
    state = torch.load(os.path.join(result.checkpoint.path, "checkpoint.ckpt"), weights_only=True)
    assert set(state["state_dict"]) == {"layer.weight", "layer.bias"}


def test_a_checkpoint_of_lightning_that_cannot_be_written_leaves_no_folder(tmp_path, monkeypatch):
    class Fails:
        callback_metrics: dict = {}
        current_epoch = global_step = 0

        def save_checkpoint(self, path, weights_only):
            pathlib.Path(path).write_text("a part")
            raise OSError("the disk is full")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(OSError, match="the disk is full"):
        RayTrainReportCallback().on_train_epoch_end(Fails(), None)
    assert not list(tmp_path.iterdir())


def test_checkpoints_of_lightning_are_validated(tmp_path):
    def validate(checkpoint):
        return {"seen": os.listdir(checkpoint.path).count("checkpoint.ckpt")}

    result = run(train_lines, tmp_path, config={"validation": True}, num_workers=1, validation=validate)
    assert [metrics["seen"] for _, metrics in result.best_checkpoints] == [1, 1, 1, 1]


def test_a_trainer_of_lightning_that_would_start_processes_is_refused():
    with pytest.raises(RuntimeError, match="it must be RayDDPStrategy"):
        prepare_trainer(lightning.Trainer(accelerator="cpu", **QUIET))
    with pytest.raises(RuntimeError, match="it must be plugins="):
        prepare_trainer(lightning.Trainer(accelerator="cpu", strategy=RayDDPStrategy(), **QUIET))


def trial_of_lines(config):
    torch.manual_seed(0)
    report = TuneReportCheckpointCallback({"loss": "val_loss"}, filename="line.ckpt")
    trainer = lightning.Trainer(max_epochs=6, accelerator="cpu", callbacks=[report], **QUIET)
    checkpoint = tune.get_checkpoint()
    model = Line(config["lr"])
    path = None if checkpoint is None else os.path.join(checkpoint.path, "line.ckpt")
    if path:  # the explored rate, not that of the checkpoint
        model.on_load_checkpoint = lambda state: [group.update(lr=config["lr"]) for optimizer in state["optimizer_states"]
                                                  for group in optimizer["param_groups"]]
    trainer.fit(model, lines(), lines(), ckpt_path=path)


def test_population_based_training_of_a_lightning_module(fit):
    scheduler = PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=2, synch=True,
                                        hyperparam_mutations={"lr": [0.0001, 0.05, 0.1]})
    results = fit(trial_of_lines, param_space={"lr": tune.grid_search([0.0001, 0.0002, 0.05, 0.1])}, metric="loss", mode="min",
                  scheduler=scheduler)
    assert results.num_errors == 0
    assert [result.metrics["training_iteration"] for result in results] == [6, 6, 6, 6]
    assert max(result.metrics["loss"] for result in results) < 0.5  # the slow ones have taken over the fast ones
    assert list(pathlib.Path(results.experiment_path).glob("pbt_policy_*.txt"))
    assert "line.ckpt" in os.listdir(results[0].checkpoint.path)


def test_metrics_of_lightning_without_checkpoints(fit):
    def trains(config):
        trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", callbacks=[
            TuneReportCallback(["val_loss"], on="train_epoch_end")], **QUIET)
        trainer.fit(Line(0.1), lines(), lines())

    result = fit(trains)[0]
    assert result.metrics["training_iteration"] == 2 and result.metrics["val_loss"] > 0 and result.checkpoint is None
    with pytest.raises(ValueError, match="there is no hook on_noon"):
        TuneReportCallback(on="noon")


# ---- Transformers


class Counting(torch.utils.data.Dataset):
    """Sequences in which each token is the one before and one more."""

    def __len__(self):
        return 32

    def __getitem__(self, index):
        tokens = torch.arange(index, index + 8) % 16
        return {"input_ids": tokens, "labels": tokens}


def small_model():
    """A GPT-2 of one layer, with random weights."""
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=16, n_positions=8, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0))


def arguments(folder, **others):
    return transformers.TrainingArguments(
        output_dir=os.path.join(folder, "output"), num_train_epochs=3, per_device_train_batch_size=4, learning_rate=1e-2,
        eval_strategy="epoch", save_strategy="epoch", logging_strategy="epoch", report_to=[], use_cpu=True,
        disable_tqdm=True, dataloader_pin_memory=False, **others)


class FailsInTheSecondEpoch(transformers.TrainerCallback):
    def on_epoch_end(self, args, state, control, **others):
        if state.epoch >= 2:
            raise RuntimeError("second epoch")


def train_to_count(config):
    trainer = transformers.Trainer(model=small_model(), args=arguments(config["folder"]), train_dataset=Counting(),
                                   eval_dataset=Counting(), callbacks=[huggingface.RayTrainReportCallback()])
    trainer = huggingface.prepare_trainer(trainer)
    checkpoint = train.get_checkpoint()
    if checkpoint is None and config["fails"]:
        trainer.add_callback(FailsInTheSecondEpoch())
    trainer.train(resume_from_checkpoint=checkpoint and os.path.join(checkpoint.path, "checkpoint"))
    return trainer.state.global_step


def test_a_model_of_transformers_trains_in_two_workers_and_goes_on_from_its_checkpoint(tmp_path):
    whole = run(train_to_count, tmp_path, name="whole", config={"folder": str(tmp_path / "whole"), "fails": False})
    history = whole.metrics_dataframe
    assert list(history["step"]) == [4, 8, 12] and whole.return_value == 12
    assert history["eval_loss"].iloc[-1] < history["eval_loss"].iloc[0]
    continued = run(train_to_count, tmp_path, name="fails", config={"folder": str(tmp_path / "fails"), "fails": True},
                    max_failures=1)
    assert list(continued.metrics_dataframe["step"]) == [4, 8, 12]
    assert continued.metrics["eval_loss"] == pytest.approx(whole.metrics["eval_loss"])
    model = transformers.GPT2LMHeadModel.from_pretrained(os.path.join(whole.checkpoint.path, "checkpoint"))
    assert model.config.n_embd == 16


def test_a_checkpoint_of_transformers_has_what_each_rank_has_saved(tmp_path):
    def trains(config):
        trainer = transformers.Trainer(model=small_model(), args=arguments(str(tmp_path), max_steps=4),
                                       train_dataset=Counting(), eval_dataset=Counting())
        saves = trainer.save_model

        def saves_slowly(folder, **others):
            if train.get_context().get_world_rank() == 0:
                unfinished = pathlib.Path(folder) / "unfinished"
                unfinished.parent.mkdir(parents=True, exist_ok=True)
                unfinished.touch()
                time.sleep(0.5)
                unfinished.unlink()
            saves(folder, **others)

        trainer.save_model = saves_slowly
        trainer.add_callback(huggingface.RayTrainReportCallback())
        trainer.train()

    saved = os.listdir(os.path.join(run(trains, tmp_path).checkpoint.path, "checkpoint"))
    assert {"rng_state_0.pth", "rng_state_1.pth"} <= set(saved) and "unfinished" not in saved


def test_a_prepared_trainer_takes_iterables_of_batches(tmp_path):
    def trains(config):
        class Batches:
            def __iter__(self):
                for _ in range(5):
                    tokens = (torch.arange(8) + torch.arange(4)[:, None]) % 16
                    yield {"input_ids": tokens, "labels": tokens}

        trainer = huggingface.prepare_trainer(transformers.Trainer(
            model=small_model(), args=arguments(str(tmp_path), max_steps=5), train_dataset=Batches(),
            eval_dataset=Counting()))
        trainer.train()
        train.report({"steps": trainer.state.global_step})

    assert run(trains, tmp_path, num_workers=1).metrics["steps"] == 5


SEARCHES = """
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from ray import tune
from ray.tune.schedulers import ASHAScheduler

data = [{"input_ids": (torch.arange(8) + index) % 16, "labels": (torch.arange(8) + index) % 16} for index in range(32)]
trainer = Trainer(
    model_init=lambda: GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=8, n_embd=16, n_layer=1, n_head=2)),
    args=TrainingArguments(output_dir=sys.argv[1], num_train_epochs=3, eval_strategy="epoch", save_strategy="epoch",
                           report_to=[], use_cpu=True, disable_tqdm=True),
    train_dataset=data, eval_dataset=data)
best = trainer.hyperparameter_search(
    direction="minimize", backend="ray", n_trials=3, name="search", storage_path=sys.argv[1], verbose=0,
    hp_space=lambda trial: {"learning_rate": tune.loguniform(1e-4, 1e-1)},
    scheduler=ASHAScheduler(metric="objective", mode="min", max_t=3))
print("BEST", best.objective == min(result.metrics["objective"] for result in best.run_summary.trials),
      list(best.hyperparameters), len(best.run_summary.trials))
"""


def test_hyperparameter_search_of_transformers_with_the_backend_ray(programs, tmp_path):
    command = programs.write("program.py", SEARCHES)
    done = subprocess.run([sys.executable, "-m", "cadre.compat.ray", command[1], str(tmp_path)],
                          env=programs.environment, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "BEST True ['learning_rate'] 3" in done.stdout


# ---- A run in a trial


def test_reports_of_a_run_are_those_of_its_trial(fit):
    def loop(config):
        for step in range(3):
            train.report({"loss": config["x"] - step}, checkpoint=lambda folder: None)

    def trains(config):
        TorchTrainer(loop, train_loop_config=config, scaling_config=train.ScalingConfig(num_workers=1),
                     run_config=train.RunConfig(name="inner", callbacks=[ReportsOfRun()])).fit()

    group = tune.PlacementGroupFactory([{"CPU": 1}, {"CPU": 1}])
    result = fit(tune.with_resources(trains, group), param_space={"x": 5})[0]
    assert result.error is None
    assert list(result.metrics_dataframe["loss"]) == [5, 4, 3]
    assert result.checkpoint is not None
    with pytest.raises(RuntimeError, match="there is none"):
        ReportsOfRun()


# ---- MLflow


def learns(config):
    for step in range(3):
        tune.report({"loss": config["lr"] * (step + 1), "eval": {"accuracy": 0.5 + step / 10}, "note": "text"})
    if config["lr"] == 3:
        raise RuntimeError("three")


def mlflow_runs(uri, experiment):
    client = mlflow.MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    return client, sorted(client.search_runs([found.experiment_id]), key=lambda one: one.info.run_name)


def test_trials_are_runs_of_mlflow(fit, tmp_path):
    uri = f"file://{tmp_path}/mlruns"
    callback = MLflowLoggerCallback(uri, experiment_name="tuned", tags={"user": "me"}, save_artifact=True)
    results = fit(learns, param_space={"lr": tune.grid_search([1, 2, 3]), "net": {"width": 8}}, callbacks=[callback])
    client, runs = mlflow_runs(uri, "tuned")
    assert [one.data.params for one in runs] == [{"lr": str(lr), "net/width": "8"} for lr in (1, 2, 3)]
    assert [one.info.status for one in runs] == ["FINISHED", "FINISHED", "FAILED"]
    assert runs[1].data.tags["user"] == "me" and runs[1].data.tags["trial_name"] == runs[1].info.run_name
    losses = client.get_metric_history(runs[1].info.run_id, "loss")
    assert [(one.step, one.value) for one in losses] == [(1, 2), (2, 4), (3, 6)]
    assert runs[0].data.metrics["eval/accuracy"] == 0.7 and "note" not in runs[0].data.metrics
    assert "progress.csv" in [one.path for one in client.list_artifacts(runs[0].info.run_id)]
    assert len(results) == 3


def test_a_trial_that_fails_before_it_starts_has_no_run_and_disturbs_no_other(fit, tmp_path, capfd):
    def resources(config):
        if config["lr"] == 1:
            raise RuntimeError("not for this one")
        return {"cpu": 1}

    uri = f"file://{tmp_path}/mlruns"
    results = fit(tune.with_resources(lambda config: tune.report({"loss": config["lr"]}), resources),
                  param_space={"lr": tune.grid_search([1, 2, 4])}, max_concurrent_trials=1,
                  callbacks=[MLflowLoggerCallback(uri, experiment_name="some")])
    assert [result.status for result in results] == ["ERROR", "TERMINATED", "TERMINATED"]
    assert "switched off" not in capfd.readouterr().err
    _, runs = mlflow_runs(uri, "some")
    assert [(one.data.params["lr"], one.info.status) for one in runs] == [("2", "FINISHED"), ("4", "FINISHED")]


def test_a_training_function_logs_to_mlflow(fit, tmp_path):
    uri = f"file://{tmp_path}/mlruns"

    def trains(config):
        log = setup_mlflow(config, tracking_uri=uri, experiment_name="mine", create_experiment_if_not_exists=True)
        log.log_metric("loss", 0.25, step=1)
        tune.report({"loss": 0.25})

    assert fit(trains, param_space={"lr": 5})[0].error is None
    _, runs = mlflow_runs(uri, "mine")
    assert [(one.data.params, one.data.metrics, one.info.status) for one in runs] == [({"lr": "5"}, {"loss": 0.25}, "FINISHED")]
    with pytest.raises(ValueError, match="no experiment with the id None or the name missing"):
        setup_mlflow(tracking_uri=uri, experiment_name="missing")


def test_rank_zero_of_a_run_logs_to_mlflow(tmp_path):
    uri = f"file://{tmp_path}/mlruns"

    def trains():
        log = setup_mlflow({"x": 1}, tracking_uri=uri, experiment_name="run", create_experiment_if_not_exists=True)
        with log.start_run(nested=True) as inner:
            log.set_tag("rank", train.get_context().get_world_rank())
            log.log_params({"run": inner.info.run_id})
        log.log_metric("rank", train.get_context().get_world_rank())
        train.report({"x": 1})

    run(trains, tmp_path)
    _, runs = mlflow_runs(uri, "run")
    assert [(one.data.metrics, one.info.status) for one in runs if "rank" not in one.data.tags] == [({"rank": 0}, "FINISHED")]


# ---- Weights & Biases


def wandb_records(folder):
    """Reads the records of all runs in the directory of a trial or a run: a file has a header of 7 bytes and blocks of 32
    KiB, whose parts of records have a checksum, a size and a kind."""
    found = []
    for file in sorted(pathlib.Path(folder).glob("wandb/offline-run-*/run-*.wandb")):
        content, at, data = file.read_bytes(), 7, b""
        while at + 7 <= len(content):
            if 32768 - at % 32768 < 7:
                at += 32768 - at % 32768
                continue
            size, kind = int.from_bytes(content[at + 4:at + 6], "little"), content[at + 6]
            data += content[at + 7:at + 7 + size]
            at += 7 + size
            if kind in (1, 4):  # a whole record, or its last part
                found.append(Record.FromString(data))
                data = b""
    return found


def logged(records, key):
    """Returns the values of a metric in history records."""
    return [json.loads(item.value_json) for record in records if record.WhichOneof("record_type") == "history"
            for item in record.history.item if (item.key or "/".join(item.nested_key)) == key]


def test_trials_are_runs_of_wandb(fit):
    callback = WandbLoggerCallback(project="tuned", excludes=["time_total_s"])
    results = fit(learns, param_space={"lr": tune.grid_search([1, 2])}, callbacks=[callback])
    ids = set()
    for result in results:
        records = wandb_records(result.path)
        begun = [record.run for record in records if record.WhichOneof("record_type") == "run"][0]
        assert begun.project == "tuned" and begun.run_group == "experiment"
        assert {item.key: item.value_json for item in begun.config.update}["lr"] == str(result.config["lr"])
        assert logged(records, "loss") == [result.config["lr"] * step for step in (1, 2, 3)]
        assert logged(records, "eval/accuracy") == [0.5, 0.6, 0.7] and logged(records, "time_total_s") == []
        assert [record.exit.exit_code for record in records if record.WhichOneof("record_type") == "exit"] == [0]
        ids.add(begun.run_id)
    assert len(ids) == 2


def test_a_metric_with_the_name_of_a_parameter_is_logged_beside_the_config(fit):
    def trains(config):
        tune.report({"lr": config["lr"] / 2, "secret": 1})

    callback = WandbLoggerCallback(project="tuned", log_config=True, excludes=["secret"])
    result = fit(trains, param_space={"lr": 1.0, "secret": 5}, callbacks=[callback])[0]
    records = wandb_records(result.path)
    assert logged(records, "lr") == [0.5] and logged(records, "secret") == []
    updates = [item.key for record in records if record.WhichOneof("record_type") == "config" for item in record.config.update]
    assert "lr" in updates and "secret" not in updates


def test_training_functions_log_to_wandb(fit, tmp_path):
    def trial(config):
        log = setup_wandb(config, project="mine")
        log.log({"loss": 0.25})
        tune.report({"loss": 0.25, "name": log.name})

    result = fit(trial, param_space={"lr": 5})[0]
    assert result.error is None and result.metrics["name"].startswith("trial")
    assert logged(wandb_records(result.path), "loss") == [0.25]

    def ranks():
        log = setup_wandb({"x": 1}, project="mine")
        log.log({"rank": train.get_context().get_world_rank()})
        train.report({"x": 1})

    assert logged(wandb_records(run(ranks, tmp_path).path), "rank") == [0]


def test_wandb_needs_a_project():
    with pytest.raises(ValueError, match="there is no project; give it, or set WANDB_PROJECT_NAME"):
        WandbLoggerCallback().setup()


def test_a_trial_that_is_tried_again_or_restored_goes_on_with_its_runs(fit, tmp_path):
    def fails_twice(config):
        checkpoint = tune.get_checkpoint()
        step = 0 if checkpoint is None else 1 + int(pathlib.Path(checkpoint.path, "step").read_text())
        tune.report({"loss": step}, checkpoint=lambda folder: pathlib.Path(folder, "step").write_text(str(step)))
        if step < 2:
            raise RuntimeError("again")

    def callbacks():
        return [MLflowLoggerCallback(f"file://{tmp_path}/mlruns", experiment_name="tries"), WandbLoggerCallback(project="tries")]

    first = fit(fails_twice, callbacks=callbacks(), failure_config=tune.FailureConfig(max_failures=1))
    assert first.num_errors == 1
    results = tune.Tuner.restore(first.experiment_path, resume_errored=True, callbacks=callbacks()).fit()
    assert results.num_errors == 0
    client, runs = mlflow_runs(f"file://{tmp_path}/mlruns", "tries")
    assert [one.info.status for one in runs] == ["FINISHED"]
    assert [one.value for one in client.get_metric_history(runs[0].info.run_id, "loss")] == [0, 1, 2]
    records = wandb_records(results[0].path)
    assert len({record.run.run_id for record in records if record.WhichOneof("record_type") == "run"}) == 1
    assert logged(records, "loss") == [0, 1, 2]


# ---- The core's own files


def test_loggers_that_the_core_replaces_are_accepted(fit):
    results = fit(learns, param_space={"lr": 1}, callbacks=[CSVLoggerCallback(), JsonLoggerCallback(), TBXLoggerCallback()])
    assert {"progress.csv", "result.json", "params.json"} <= set(os.listdir(results[0].path))
    assert pretty_print({"loss": 1, "eval": {"accuracy": 0.5}, "config": {"x": 1}}) == "eval:\n  accuracy: 0.5\nloss: 1\n"
