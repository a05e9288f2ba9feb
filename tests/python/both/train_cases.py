"""Training runs: what programs for Ray Train can observe."""

import os
import pathlib
import tempfile

from ray import train
from ray.train import (Checkpoint, CheckpointConfig, FailureConfig, RunConfig, ScalingConfig, ValidationConfig,
                       ValidationTaskConfig)
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model


def fit(function, folder, *, num_workers=1, name="run", checkpoint_config=None, failure_config=None, callbacks=None, **others):
    run_config = RunConfig(name=name, storage_path=folder, checkpoint_config=checkpoint_config or CheckpointConfig(),
                           failure_config=failure_config or FailureConfig(), callbacks=callbacks)
    return TorchTrainer(function, scaling_config=ScalingConfig(num_workers=num_workers), run_config=run_config, **others).fit()


def report(metrics):
    """Reports with a checkpoint: Ray's results have the metrics of such reports only."""
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "file").write_text("x")
        train.report(metrics, checkpoint=Checkpoint.from_directory(directory))


def report_step(step, **others):
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "step").write_text(str(step))
        train.report({"step": step, "score": -abs(step - 2)}, checkpoint=Checkpoint.from_directory(directory), **others)


def step_of(checkpoint):
    with checkpoint.as_directory() as directory:
        return int(pathlib.Path(directory, "step").read_text())


def case_metrics_of_the_last_report(folder):
    def trains(config):
        for step in range(3):
            report({"loss": config["x"] * step})

    return fit(trains, folder, train_loop_config={"x": 2}).metrics


def case_a_function_without_arguments(folder):
    def trains():
        report({"x": 1})

    return fit(trains, folder).metrics


def case_a_function_with_a_default(folder):
    def trains(config=None):
        report({"config": config})

    return fit(trains, folder, train_loop_config={"x": 1}).metrics


def case_two_arguments_are_refused(folder):
    fit(lambda a, b: None, folder)


def case_the_context_of_ranks(folder):
    def trains():
        context = train.get_context()
        here = [context.get_world_rank(), context.get_world_size(), context.get_local_rank(), context.get_local_world_size(),
                context.get_node_rank(), context.get_experiment_name()]
        pathlib.Path(folder, f"rank_{context.get_world_rank()}.txt").write_text(repr(here))
        report({"here": here})

    metrics = fit(trains, folder, num_workers=2, name="mine").metrics
    return [metrics, pathlib.Path(folder, "rank_1.txt").read_text()]


def case_metrics_are_those_of_rank_zero(folder):
    def trains():
        report({"rank": train.get_context().get_world_rank()})

    return fit(trains, folder, num_workers=2).metrics


def case_the_group_of_torch(folder):
    def trains():
        import torch
        import torch.distributed as group

        total = torch.tensor([group.get_rank() + 1.0])
        group.all_reduce(total)
        report({"sum": total.item(), "size": group.get_world_size(), "backend": group.get_backend()})

    return fit(trains, folder, num_workers=2).metrics


def case_a_prepared_model_and_loader(folder):
    def trains():
        import torch

        torch.manual_seed(0)
        model = prepare_model(torch.nn.Linear(2, 1))
        data = torch.utils.data.TensorDataset(torch.arange(16.0).reshape(8, 2), torch.ones(8, 1))
        loader = prepare_data_loader(torch.utils.data.DataLoader(data, batch_size=2))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for inputs, targets in loader:
            loss = (model(inputs) - targets).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        report({"batches": len(loader), "kind": type(model).__name__, "rows": len(loader.dataset),
                      "weight": round(next(iter(model.parameters())).sum().item(), 4)})

    return [fit(trains, folder, num_workers=2).metrics, fit(trains, folder, num_workers=1, name="alone").metrics]


def case_the_latest_checkpoint(folder):
    def trains():
        for step in range(1, 4):
            report_step(step)

    result = fit(trains, folder)
    return [step_of(result.checkpoint), result.metrics["step"], sorted(step_of(one) for one, _ in result.best_checkpoints)]


def case_checkpoints_that_are_kept(folder):
    def trains():
        for step in range(1, 6):
            report_step(step)

    result = fit(trains, folder, checkpoint_config=CheckpointConfig(num_to_keep=2))
    return sorted(step_of(one) for one, _ in result.best_checkpoints)


def case_names_of_checkpoints(folder):
    def trains():
        report_step(1, checkpoint_dir_name="first_one")

    return os.path.basename(fit(trains, folder).checkpoint.path)


def case_files_of_two_ranks_become_one_checkpoint(folder):
    def trains():
        rank = train.get_context().get_world_rank()
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, f"rank_{rank}").write_text("x")
            train.report({}, checkpoint=Checkpoint.from_directory(directory))

    with fit(trains, folder, num_workers=2).checkpoint.as_directory() as directory:
        return sorted(name for name in os.listdir(directory) if not name.startswith("."))


def case_a_failure_is_retried_from_the_checkpoint(folder):
    def trains():
        step = step_of(train.get_checkpoint()) if train.get_checkpoint() else 0
        with open(os.path.join(folder, "begun"), "a") as file:
            file.write(f"{step} ")
        while step < 4:
            step += 1
            report_step(step)
            marker = pathlib.Path(folder, "marker")
            if step == 2 and not marker.exists():
                marker.touch()
                raise RuntimeError("at two")

    result = fit(trains, folder, failure_config=FailureConfig(max_failures=1))
    return [result.metrics["step"], pathlib.Path(folder, "begun").read_text()]


def case_a_failure_raises_training_failed(folder):
    def trains():
        report_step(1)
        raise ValueError("no good")

    try:
        fit(trains, folder)
    except train.TrainingFailedError as error:
        return [0 in error.worker_failures, "no good" in str(error)]


def case_the_same_name_goes_on_after_a_failure(folder):
    def trains():
        step = step_of(train.get_checkpoint()) if train.get_checkpoint() else 0
        while step < 4:
            step += 1
            report_step(step)
            if step == 2 and not pathlib.Path(folder, "marker").exists():
                raise RuntimeError("at two")

    try:
        fit(trains, folder, name="same")
    except train.TrainingFailedError:
        pathlib.Path(folder, "marker").touch()
    result = fit(trains, folder, name="same")
    return [result.metrics["step"], step_of(result.checkpoint)]


def case_collectives(folder):
    def trains():
        from ray.train.collective import barrier, broadcast_from_rank_zero

        barrier()
        got = broadcast_from_rank_zero({"rank": train.get_context().get_world_rank()})
        pathlib.Path(folder, f"got_{train.get_context().get_world_rank()}").write_text(str(got["rank"]))
        report(got)

    metrics = fit(trains, folder, num_workers=2).metrics
    return [metrics, pathlib.Path(folder, "got_1").read_text()]


def validate(checkpoint, scale=1, plus=0):
    return {"validated": step_of(checkpoint) * scale + plus}


def case_validation_in_two_forms(folder):
    def trains():
        report_step(1, validation=True)
        report_step(2, validation=ValidationTaskConfig(fn_kwargs={"plus": 5}))
        report_step(3)
        pathlib.Path(folder, "statuses").write_text(" ".join(one.status.name for one in train.get_all_reported_checkpoints()))

    config = ValidationConfig(fn=validate, task_config=ValidationTaskConfig(fn_kwargs={"scale": 10}))
    result = fit(trains, folder, validation_config=config)
    return [sorted((metrics["step"], metrics.get("validated")) for _, metrics in result.best_checkpoints),
            pathlib.Path(folder, "statuses").read_text()]


def case_a_validator_that_fails(folder):
    def fails(checkpoint):
        raise RuntimeError("not valid")

    def trains():
        report_step(1, validation=True)
        pathlib.Path(folder, "status").write_text(train.get_all_reported_checkpoints()[0].status.name)

    result = fit(trains, folder, validation_config=ValidationConfig(fn=fails))
    return [result.metrics["step"], pathlib.Path(folder, "status").read_text()]


def case_validation_without_a_checkpoint(folder):
    def trains():
        try:
            train.report({"x": 1}, validation=True)
        except ValueError:
            report({"caught": True})

    return fit(trains, folder, validation_config=ValidationConfig(fn=validate)).metrics


def case_validation_without_a_validator(folder):
    def trains():
        try:
            report_step(1, validation=True)
        except ValueError:
            report({"caught": True})

    return fit(trains, folder).metrics


def case_all_reported_checkpoints(folder):
    def trains():
        for step in range(1, 4):
            report_step(step)
        found = train.get_all_reported_checkpoints()
        pathlib.Path(folder, "found").write_text(repr([[step_of(one.checkpoint), one.metrics["step"], one.status.name]
                                                       for one in found]))

    fit(trains, folder)
    return pathlib.Path(folder, "found").read_text()


def case_a_checkpoint_in_place(folder):
    def trains():
        from ray.train import CheckpointUploadMode

        directory = train.get_context().get_storage().build_checkpoint_path_from_name("mine")
        os.makedirs(directory, exist_ok=True)
        pathlib.Path(directory, "step").write_text("7")
        train.report({"step": 7}, checkpoint=Checkpoint(directory), checkpoint_upload_mode=CheckpointUploadMode.NO_UPLOAD)

    result = fit(trains, folder)
    return [step_of(result.checkpoint), os.path.basename(result.checkpoint.path)]


def case_asynchronous_uploads(folder):
    def trains():
        from ray.train import CheckpointUploadMode

        for step in range(1, 4):
            directory = tempfile.mkdtemp()
            pathlib.Path(directory, "step").write_text(str(step))
            train.report({"step": step}, checkpoint=Checkpoint(directory), checkpoint_upload_mode=CheckpointUploadMode.ASYNC)

    result = fit(trains, folder)
    return [step_of(result.checkpoint), sorted(step_of(one) for one, _ in result.best_checkpoints)]


def case_callbacks_of_a_run(folder):
    class Records(train.UserCallback):
        def after_report(self, run_context, metrics, checkpoint):
            with open(os.path.join(folder, "reports"), "a") as file:
                file.write(f"{metrics[0]['step']} {checkpoint is not None} ")

        def after_exception(self, run_context, worker_exceptions):
            pathlib.Path(folder, "exception").write_text(str(sorted(worker_exceptions)))

    def trains():
        for step in range(1, 3):
            report_step(step)
        raise RuntimeError("the end")

    try:
        fit(trains, folder, callbacks=[Records()])
    except train.TrainingFailedError:
        pass
    return [pathlib.Path(folder, "reports").read_text(), pathlib.Path(folder, "exception").read_text()]


def case_return_value(folder):
    def trains():
        report({"x": 1})
        return {"rank": train.get_context().get_world_rank()}

    return getattr(fit(trains, folder, num_workers=2), "return_value", None)
