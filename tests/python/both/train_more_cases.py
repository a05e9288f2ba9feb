"""More of training runs: what programs for Ray Train can observe."""

import os
import pathlib
import tempfile

from lines import lines_in, write_line
from ray import train
from ray.train import Checkpoint, CheckpointConfig, FailureConfig
from ray.train.torch import TorchConfig, prepare_data_loader, prepare_model
from train_cases import fit, report, report_step, step_of


def case_nested_metrics(folder):
    def trains():
        report({"eval": {"accuracy": 0.5, "by_class": {"cat": 0.25}}, "list": [1, 2]})

    return fit(trains, folder).metrics


def case_a_checkpoint_of_one_rank_alone(folder):
    def trains():
        rank = train.get_context().get_world_rank()
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "step").write_text("3")
            train.report({"rank": rank}, checkpoint=Checkpoint.from_directory(directory) if rank == 1 else None)

    result = fit(trains, folder, num_workers=2)
    return [result.metrics, step_of(result.checkpoint)]


def case_reports_without_checkpoints_between(folder):
    def trains():
        report_step(1)
        train.report({"step": 2, "score": 0})
        report_step(3)

    result = fit(trains, folder)
    return [result.metrics["step"], sorted(step_of(one) for one, _ in result.best_checkpoints)]


def case_what_is_broadcast(folder):
    def trains():
        from ray.train.collective import broadcast_from_rank_zero

        rank = train.get_context().get_world_rank()
        got = [broadcast_from_rank_zero(value if rank == 0 else None) for value in
               (None, 5, 0.5, "text", [1, [2]], {"a": {"b": True}})]
        report({"got": got})
        if rank == 1:
            write_line(folder, repr(got))

    return [fit(trains, folder, num_workers=2).metrics, lines_in(folder)]


def case_tries_without_a_checkpoint(folder):
    def trains():
        write_line(folder, str(train.get_checkpoint()))
        if len(lines_in(folder)) < 3:
            raise RuntimeError("again")
        report({"x": 1})

    result = fit(trains, folder, failure_config=FailureConfig(max_failures=2))
    return [result.metrics, lines_in(folder)]


def case_more_failures_than_allowed(folder):
    def trains():
        write_line(folder, "begins")
        raise RuntimeError("again")

    try:
        fit(trains, folder, failure_config=FailureConfig(max_failures=1))
    except train.TrainingFailedError as error:
        return [lines_in(folder), "again" in str(error)]


def case_failures_of_all_ranks(folder):
    def trains():
        raise ValueError(f"rank {train.get_context().get_world_rank()}")

    try:
        fit(trains, folder, num_workers=2)
    except train.WorkerGroupError as error:
        return [0 in error.worker_failures or 1 in error.worker_failures, isinstance(error, train.TrainingFailedError)]


def case_the_checkpoint_after_a_report(folder):
    def trains():
        before = train.get_checkpoint()
        report_step(1)
        middle = step_of(train.get_checkpoint())
        report_step(2)
        report({"before": before, "middle": middle, "after": step_of(train.get_checkpoint())})

    return fit(trains, folder).metrics


def case_the_lowest_scores_are_kept(folder):
    def trains():
        for step, score in enumerate([5, 1, 4, 0, 3]):
            with tempfile.TemporaryDirectory() as directory:
                pathlib.Path(directory, "step").write_text(str(step))
                train.report({"value": score}, checkpoint=Checkpoint.from_directory(directory))

    config = CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="value", checkpoint_score_order="min")
    result = fit(trains, folder, checkpoint_config=config)
    kept = {step_of(one) for one, _ in result.best_checkpoints}
    return [{1, 3} <= kept, 0 in kept, 2 in kept]


def case_the_best_checkpoint_of_a_run(folder):
    def trains():
        for step in range(1, 5):
            report_step(step)

    result = fit(trains, folder)
    return [step_of(result.get_best_checkpoint("score", "max")), step_of(result.get_best_checkpoint("step", "min")),
            step_of(result.get_best_checkpoint("step", "max")), sorted(metrics["step"] for _, metrics in result.best_checkpoints)]


def case_a_result_of_a_directory(folder):
    def trains():
        for step in range(1, 4):
            report_step(step)

    path = fit(trains, folder, name="mine").path
    result = train.Result.from_path(path)
    return [os.path.basename(path), result.metrics["step"], step_of(result.checkpoint), len(result.best_checkpoints)]


def case_metadata_of_a_checkpoint_of_a_run(folder):
    def trains():
        with tempfile.TemporaryDirectory() as directory:
            checkpoint = Checkpoint.from_directory(directory)
            checkpoint.set_metadata({"classes": 3})
            train.report({"x": 1}, checkpoint=checkpoint)

    return fit(trains, folder).checkpoint.get_metadata()


def case_no_config(folder):
    def trains(config):
        report({"config": config})

    return fit(trains, folder).metrics


def case_the_environment_of_ranks(folder):
    def trains():
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK")
        if train.get_context().get_world_rank() == 1:
            write_line(folder, " ".join(os.environ.get(name, "none") for name in names))
        report({"x": 1})

    fit(trains, folder, num_workers=2)
    return lines_in(folder)


def case_the_device_of_a_worker(folder):
    def trains():
        from ray.train.torch import get_device, get_devices

        report({"device": str(get_device()), "devices": len(get_devices())})

    return fit(trains, folder, torch_config=TorchConfig(backend="gloo")).metrics


def case_a_model_that_is_not_parallel(folder):
    def trains():
        import torch

        report({"kind": type(prepare_model(torch.nn.Linear(2, 1), parallel_strategy=None)).__name__})

    return fit(trains, folder, num_workers=2).metrics


def case_a_loader_of_an_uneven_dataset(folder):
    def trains():
        import torch

        data = torch.utils.data.TensorDataset(torch.arange(7.0))
        loader = prepare_data_loader(torch.utils.data.DataLoader(data, batch_size=2, shuffle=True))
        loader.sampler.set_epoch(1)
        rows = sum(len(batch[0]) for batch in loader)
        plain = prepare_data_loader(torch.utils.data.DataLoader(data, batch_size=2), add_dist_sampler=False)
        report({"rows": rows, "batches": len(loader), "sampler": type(loader.sampler).__name__, "plain": len(plain)})

    return fit(trains, folder, num_workers=2).metrics


def case_gradients_are_those_of_all_ranks(folder):
    def trains():
        import torch

        model = prepare_model(torch.nn.Linear(1, 1, bias=False))
        rank = train.get_context().get_world_rank()
        model(torch.full((1, 1), rank + 1.0)).sum().backward()
        report({"gradient": next(iter(model.parameters())).grad.item()})

    return fit(trains, folder, num_workers=2).metrics


def case_a_local_checkpoint_stays_or_goes(folder):
    def trains():
        there = []
        for delete in (None, False, True):
            directory = tempfile.mkdtemp()
            pathlib.Path(directory, "step").write_text("1")
            train.report({"step": 1}, checkpoint=Checkpoint(directory), delete_local_checkpoint_after_upload=delete)
            there.append(os.path.exists(directory))
        report({"there": there})

    return fit(trains, folder).metrics


def case_a_checkpoint_directory_name_is_used_twice(folder):
    def trains():
        report_step(1, checkpoint_dir_name="same")
        report_step(2, checkpoint_dir_name="other")

    result = fit(trains, folder)
    return sorted(os.path.basename(one.path) for one, _ in result.best_checkpoints)


def case_no_report_at_all(folder):
    def trains():
        pass

    result = fit(trains, folder)
    return [result.metrics, result.checkpoint, result.error]


def case_data_frame_of_reports(folder):
    def trains():
        for step in range(1, 4):
            report_step(step)

    frame = fit(trains, folder).metrics_dataframe
    return list(frame["step"])
