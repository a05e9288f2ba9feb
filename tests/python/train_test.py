"""Training runs: data-parallel training, checkpoints, validation beside it, failures and restores."""

import functools
import os
import pathlib
import pickle
import re
import signal
import tempfile
import time

import pytest

import cadre
from cadre import train
from cadre.train import (Checkpoint, CheckpointConfig, CheckpointUploadMode, RunConfig, ScalingConfig, ValidationConfig,
                         ValidationTaskConfig)
from cadre.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from cadre.train.validation import makes_trainer


@pytest.fixture
def trainer(tmp_path):
    """Makes a trainer of two workers in a folder of the test's own."""

    def make(function, *, kind=TorchTrainer, num_workers=2, name="run", checkpoint_config=None, callbacks=None,
             failure_config=None, **others):
        return kind(function, scaling_config=ScalingConfig(num_workers=num_workers),
                    run_config=RunConfig(name=name, storage_path=str(tmp_path), verbose=0, callbacks=callbacks,
                                         checkpoint_config=checkpoint_config, failure_config=failure_config), **others)

    return make


def write(directory, text):
    (pathlib.Path(directory) / "state").write_text(str(text))


class Scale:
    def __init__(self, factor):
        self.factor = factor


def test_the_result_of_a_run_has_the_objects_of_its_config(trainer):
    result = trainer(lambda config: config["scale"].factor, num_workers=1, train_loop_config={"scale": Scale(3)},
                     kind=train.DataParallelTrainer).fit()
    assert result.return_value == 3 and result.config["scale"].load().factor == 3


def test_data_parallel_training_gives_all_ranks_the_same_model(trainer):
    def trains(config):
        import torch

        torch.manual_seed(train.get_context().get_world_rank())
        model = prepare_model(torch.nn.Linear(4, 1))
        data = torch.utils.data.TensorDataset(torch.arange(64.0).reshape(16, 4), torch.ones(16, 1))
        loader = prepare_data_loader(torch.utils.data.DataLoader(data, batch_size=4, shuffle=True))
        optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
        seen = 0
        for epoch in range(2):
            loader.sampler.set_epoch(epoch)
            for inputs, targets in loader:
                seen += len(inputs)
                loss = (model(inputs) - targets).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        weights = [parameter.detach().clone() for parameter in model.parameters()]
        mine = torch.cat([weight.flatten() for weight in weights])
        others = [torch.empty_like(mine) for _ in range(train.get_context().get_world_size())]
        torch.distributed.all_gather(others, mine)
        train.report({"seen": seen, "equal": all(torch.equal(mine, other) for other in others),
                      "rank": train.get_context().get_world_rank(), "env": os.environ["WORLD_SIZE"]})
        return {"weights": mine.tolist()}

    result = trainer(trains, train_loop_config={"lr": 1e-5}).fit()
    assert result.metrics == {"seen": 16, "equal": True, "rank": 0, "env": "2"}
    assert len(result.return_value["weights"]) == 5


def test_groups_within_the_group_are_formed_later(trainer):
    def forms():
        import gc

        import torch.distributed
        from torch.distributed.device_mesh import init_device_mesh

        gc.collect()
        rank = train.get_context().get_world_rank()
        alone = [torch.distributed.new_group([0]), torch.distributed.new_group([1])][rank]
        mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicate", "shard"))
        store = torch.distributed.distributed_c10d._get_default_store()
        store.clone().set(f"cloned_{rank}", "yes")
        torch.distributed.barrier()
        sums = []
        for group in (alone, mesh.get_group("replicate"), mesh.get_group("shard"), None):
            value = torch.tensor([rank + 1])
            torch.distributed.all_reduce(value, group=group)
            sums.append(value.item())
        train.report({"sums": sums, "cloned": [store.get(f"cloned_{each}").decode() for each in (0, 1)]})
        torch.distributed.destroy_process_group()

    assert trainer(forms).fit().metrics == {"sums": [1, 3, 1, 3], "cloned": ["yes", "yes"]}


def test_loaders_keep_what_they_were_given(trainer):
    def loads():
        import torch

        data = torch.utils.data.TensorDataset(torch.arange(16.0))
        generator = torch.Generator().manual_seed(3)
        loader = prepare_data_loader(torch.utils.data.DataLoader(
            data, batch_size=2, num_workers=1, persistent_workers=True, prefetch_factor=3, generator=generator))

        class Counts(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(range(4))

        counts = prepare_data_loader(torch.utils.data.DataLoader(Counts(), batch_size=2))
        try:
            prepare_data_loader(torch.utils.data.DataLoader(data, batch_sampler=[[0, 1], [2, 3]]))
        except ValueError as error:
            refused = str(error)
        own = prepare_data_loader(torch.utils.data.DataLoader(data, batch_sampler=[[0, 1], [2, 3]]), add_dist_sampler=False)
        train.report({"mine": [batch.tolist() for batch, in loader], "persistent": loader.persistent_workers,
                      "ahead": loader.prefetch_factor, "same": loader.generator is generator,
                      "counts": [batch.tolist() for batch in counts], "refused": refused,
                      "own": [batch.tolist() for batch, in own], "length": len(loader),
                      "is": isinstance(loader, torch.utils.data.DataLoader)})

    found = trainer(loads).fit().metrics
    assert "batch_sampler" in found.pop("refused")
    assert found == {"mine": [[0, 2], [4, 6], [8, 10], [12, 14]], "persistent": True, "ahead": 3, "same": True,
                     "counts": [[0, 1], [2, 3]], "own": [[0, 1], [2, 3]], "length": 4, "is": True}


def test_files_of_all_ranks_become_one_checkpoint_and_the_best_are_kept(trainer):
    def trains():
        rank = train.get_context().get_world_rank()
        for step in range(4):
            with tempfile.TemporaryDirectory() as directory:
                (pathlib.Path(directory) / f"rank_{rank}").write_text(f"{step}")
                train.report({"score": [1, 3, 2, 0][step]}, checkpoint=Checkpoint.from_directory(directory),
                             checkpoint_dir_name=f"step_{step}")

    result = trainer(trains, checkpoint_config=CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="score")).fit()
    kept = {os.path.basename(checkpoint.path) for checkpoint, _ in result.best_checkpoints}
    assert kept == {"step_1", "step_2", "step_3"}, "the best two, and the latest one"
    best = result.get_best_checkpoint("score", "max")
    with best.as_directory() as directory:
        assert sorted(set(os.listdir(directory)) - {".metadata.json"}) == ["rank_0", "rank_1"]
    assert list(result.metrics_dataframe["score"]) == [1, 3, 2, 0]


def test_modes_of_uploads(trainer):
    def trains():
        storage = train.get_context().get_storage()
        with tempfile.TemporaryDirectory() as directory:
            write(directory, "sync")
            train.report({"mode": "sync"}, checkpoint=Checkpoint(directory))
        directory = tempfile.mkdtemp()
        write(directory, "async")
        train.report({"mode": "async"}, checkpoint=Checkpoint(directory), checkpoint_upload_mode=CheckpointUploadMode.ASYNC)
        in_place = storage.build_checkpoint_path_from_name("in_place")
        write(in_place, "in place")
        train.report({"mode": "no"}, checkpoint=Checkpoint(in_place), checkpoint_upload_mode=CheckpointUploadMode.NO_UPLOAD)

        def upload(checkpoint, name):
            target = storage.build_checkpoint_path_from_name(name)
            write(target, "uploaded by " + (pathlib.Path(checkpoint.path) / "state").read_text())
            return Checkpoint(target)

        with tempfile.TemporaryDirectory() as directory:
            write(directory, "a function")
            train.report({"mode": "function"}, checkpoint=Checkpoint(directory), checkpoint_upload_fn=upload)
        train.report({"mode": "writer"}, checkpoint=lambda directory: write(directory, "writer"))
        kept = train.get_all_reported_checkpoints(train.CheckpointConsistencyMode.COMMITTED)
        return [(pathlib.Path(one.checkpoint.path) / "state").read_text() for one in kept]

    result = trainer(trains, num_workers=1).fit()
    assert result.return_value == ["sync", "async", "in place", "uploaded by a function", "writer"]


def test_an_async_upload_calls_a_function_after_the_report_and_the_training_function_have_returned(trainer):
    def trains():
        storage = train.get_context().get_storage()

        def upload(checkpoint, name):
            target = storage.build_checkpoint_path_from_name(name)
            time.sleep(0.2)  # so long that the caller has gone on
            write(target, "uploaded " + (pathlib.Path(checkpoint.path) / "state").read_text())
            return Checkpoint(target)

        for step in range(2):
            directory = tempfile.mkdtemp()
            write(directory, step)
            train.report({"step": step}, checkpoint=Checkpoint(directory), checkpoint_upload_fn=upload,
                         checkpoint_upload_mode=CheckpointUploadMode.ASYNC)

    result = trainer(trains, num_workers=1).fit()
    states = [(pathlib.Path(checkpoint.path) / "state").read_text() for checkpoint, _ in result.best_checkpoints]
    assert states == ["uploaded 0", "uploaded 1"]


def test_three_forms_of_validation(trainer):
    def validate(checkpoint, scale=1, plus=0):
        with checkpoint.as_directory() as directory:
            return {"validated": int((pathlib.Path(directory) / "state").read_text()) * scale + plus}

    def older(checkpoint, config):
        return {"validated": validate(checkpoint)["validated"] + config["more"]}

    def trains(config):
        for step, arguments in enumerate([
                {"validation": True}, {"validation": ValidationTaskConfig(fn_kwargs={"plus": 5})},
                {"validate_fn": older, "validate_config": {"more": 1000}}, {},
                {"validation": ValidationTaskConfig(fn_kwargs={"plus": 7}, ray_remote_kwargs={"num_cpus": 0}),
                 "until_published": True}]):
            train.report({"step": step}, checkpoint=lambda directory: write(directory, step + 1), **arguments)
        with pytest.raises(cadre.InvalidArgument, match="until_published and async"):
            train.report({}, checkpoint=lambda directory: write(directory, 0), until_published=True,
                         checkpoint_upload_mode=CheckpointUploadMode.ASYNC)
        statuses = [one.status.name for one in train.get_all_reported_checkpoints()]
        return statuses

    result = trainer(trains, num_workers=1, validation_config=ValidationConfig(
        fn=validate, task_config=ValidationTaskConfig(fn_kwargs={"scale": 10}))).fit()
    assert result.return_value == ["VALIDATED", "VALIDATED", "VALIDATED", "COMMITTED", "VALIDATED"]
    assert [metrics.get("validated") for _, metrics in result.best_checkpoints] == [10, 25, 1003, None, 57]
    nothing = dict.fromkeys(("num_cpus", "num_gpus", "resources", "accelerator_type", "label_selector"))
    assert ValidationTaskConfig(ray_remote_kwargs=nothing)._resources() == ValidationTaskConfig(ray_remote_kwargs={})._resources()
    with pytest.raises(ValueError, match="max_retries; known are num_cpus"):
        ValidationTaskConfig(ray_remote_kwargs={"max_retries": 1})


def evaluates(config):
    import torch

    group = [None, None]
    torch.distributed.all_gather_object(group, config["scale"] * (train.get_context().get_world_rank() + 1))
    return {"validated": sum(group)}


def validates_in_workers(checkpoint, config=None, **kwargs):
    scale = int((pathlib.Path(checkpoint.path) / "state").read_text()) * (config or kwargs)["scale"]
    return TorchTrainer(evaluates, train_loop_config={"scale": scale}, scaling_config=ScalingConfig(num_workers=2)).fit().return_value


def test_a_validator_has_workers_for_a_trainer_of_its_own(trainer):
    def trains(config):
        older = {"validate_fn": lambda checkpoint, config: validates_in_workers(checkpoint, config),
                 "validate_config": {"scale": 10}}
        newer = {"validation": ValidationTaskConfig(fn_kwargs={"scale": 100})}
        train.report({"step": 1}, checkpoint=lambda directory: write(directory, 7), **(older if config["older"] else newer))

    for older, validation in ((True, None), (False, ValidationConfig(fn=functools.partial(validates_in_workers)))):
        result = trainer(trains, train_loop_config={"older": older}, validation_config=validation).fit()
        assert result.metrics == {"step": 1, "validated": 7 * (10 if older else 100) * 3}


def test_results_have_what_validations_have_added(trainer, tmp_path):
    def validate(checkpoint):
        return {"score": 10 * int((pathlib.Path(checkpoint.path) / "state").read_text())}

    def trains():
        for step in range(1, 4):
            train.report({"step": step, "score": 0}, checkpoint=lambda directory: write(directory, step), validation=step != 2)

    result = trainer(trains, num_workers=1, validation_config=ValidationConfig(fn=validate)).fit()
    for one in (result, train.Result.from_path(tmp_path / "run"), pickle.loads(pickle.dumps(result))):
        assert one.metrics == {"step": 3, "score": 30}
        assert list(one.metrics_dataframe["score"]) == [10, 0, 30]


def test_which_functions_make_a_trainer():
    def imports():
        from cadre.train import torch
        return torch.TorchTrainer

    class Own(train.DataParallelTrainer):
        pass

    class Holds:
        def __call__(self):
            return Own(None)

    def recurses():
        return recurses() or [None for _ in range(3) if validates_in_workers]

    for function in (imports, validates_in_workers, Holds(), Holds().__call__, recurses, functools.partial(recurses)):
        assert makes_trainer(function), function
    for function in (write, len, evaluates, lambda: recursion(), functools.partial(print), tempfile.mkdtemp):
        assert not makes_trainer(function), function


def recursion():
    return recursion


def test_a_validator_that_fails_costs_the_training_nothing(trainer):
    def fails(checkpoint):
        raise RuntimeError("not valid")

    def trains():
        train.report({"step": 1}, checkpoint=lambda directory: write(directory, 1), validation=True)
        found = train.get_all_reported_checkpoints()[0]
        return [found.status.name, found.validation_error]

    result = trainer(trains, num_workers=1,
                     validation_config=ValidationConfig(fn=fails, ray_remote_kwargs={"max_retries": 0})).fit()
    assert result.return_value[0] == "VALIDATION_FAILED" and "RuntimeError: not valid" in result.return_value[1]


class Records(train.UserCallback):
    def __init__(self):
        self.reports = []
        self.errors = {}

    def after_report(self, run_context, metrics, checkpoint):
        self.reports.append((run_context.name, metrics, checkpoint is not None))

    def after_exception(self, run_context, worker_exceptions):
        self.errors = worker_exceptions


def test_a_callback_that_raises_is_switched_off_and_no_other(trainer, capfd):
    class Fails(train.UserCallback):
        def after_report(self, run_context, metrics, checkpoint):
            raise KeyError("in a callback")

    def trains():
        for step in range(3):
            train.report({"step": step})
        raise ValueError("at the end")

    records = Records()
    with pytest.raises(train.WorkerGroupError) as caught:
        trainer(trains, num_workers=1, callbacks=[Fails(), records]).fit()
    assert [metrics[0]["step"] for _, metrics, _ in records.reports] == [0, 1, 2]
    assert "at the end" in str(records.errors[0]) and "at the end" in str(caught.value.worker_failures[0])
    said = capfd.readouterr().err
    assert said.count("the callback Fails failed in after_report, and is switched off") == 1 and "in a callback" in said


def test_an_error_after_a_retry_is_none_of_the_workers(trainer):
    class Disk:
        def fit(self, takes_signals):
            raise cadre.CadreError("the disk is gone")

    broken = trainer(lambda: None, num_workers=1)
    broken._callbacks.failures = {0: "failed, and was tried again"}
    broken._trainer = Disk()
    with pytest.raises(cadre.CadreError, match="the disk is gone") as raised:
        broken.fit()
    assert not isinstance(raised.value, train.TrainingFailedError)


@pytest.mark.parametrize("budget", ["max_failures", "max_preemption_failures", "max_start_failures"])
def test_each_budget_for_failures_is_that_of_the_run(trainer, budget):
    with pytest.raises(cadre.InvalidArgument, match=f"{budget}.*-2"):
        trainer(lambda: None, num_workers=1, failure_config=train.FailureConfig(**{budget: -2})).fit()


def test_a_failure_is_retried_from_the_checkpoint_and_then_an_error_with_its_traceback(trainer, tmp_path):
    def trains(config):
        checkpoint = train.get_checkpoint()
        step = int((pathlib.Path(checkpoint.path) / "state").read_text()) if checkpoint else 0
        while step < 5:
            step += 1
            train.report({"step": step}, checkpoint=lambda directory: write(directory, step))
            marker = pathlib.Path(config["folder"]) / f"failed_{step}"
            if step in config["fails_at"] and not marker.exists():
                marker.touch()
                raise ValueError(f"failed at {step}")

    records = Records()
    folder = str(tmp_path)
    result = trainer(trains, name="retried", num_workers=1, train_loop_config={"folder": folder, "fails_at": [2, 4]},
                     callbacks=[records], failure_config=train.FailureConfig(max_failures=2)).fit()
    assert result.metrics == {"step": 5} and len(records.reports) == 5
    assert records.reports[0] == ("retried", [{"step": 1}], True)

    for file in tmp_path.glob("failed_*"):
        file.unlink()
    with pytest.raises(train.TrainingFailedError, match="failed at 2") as raised:
        trainer(trains, name="failed", num_workers=1, train_loop_config={"folder": folder, "fails_at": [2]}).fit()
    assert "Traceback (most recent call last)" in str(raised.value)
    assert "ValueError: failed at 2" in str(raised.value.worker_failures[0])
    again = trainer(trains, name="failed", num_workers=1, train_loop_config={"folder": folder, "fails_at": [2]}).fit()
    assert list(again.metrics_dataframe["step"]) == [1, 2, 3, 4, 5], "the same program goes on"
    trainer(trains, name="failed", num_workers=1, train_loop_config={"folder": folder, "fails_at": []}).fit()
    assert len(list(tmp_path.glob("failed*-*"))) == 1, "the finished one is moved aside"


def test_callbacks_hear_the_metrics_of_all_ranks(trainer):
    def trains():
        for step in range(2):
            train.report({"step": step, "rank": train.get_context().get_world_rank()})

    records = Records()
    trainer(trains, kind=train.DataParallelTrainer, num_workers=2, callbacks=[records]).fit()
    assert [metrics for _, metrics, _ in records.reports] == [[{"step": step, "rank": rank} for rank in (0, 1)] for step in (0, 1)]


def test_collectives(trainer):
    def trains():
        rank = train.get_context().get_world_rank()
        train.collective.barrier()
        train.report({"got": train.collective.broadcast_from_rank_zero({"rank": rank, "list": [1, 2]})})

    assert trainer(trains, kind=train.DataParallelTrainer).fit().metrics == {"got": {"rank": 0, "list": [1, 2]}}


def test_a_run_inside_a_trial_reports_for_it(fit, tmp_path):
    from cadre import tune

    def trains(config):
        for step in range(3):
            train.report({"score": config["x"] * step})

    def drives(config):
        train.DataParallelTrainer(trains, train_loop_config=config, scaling_config=ScalingConfig(num_workers=1),
                                  run_config=RunConfig(verbose=0)).fit()

    group = tune.PlacementGroupFactory([{"CPU": 1}, {"CPU": 1}])
    results = fit(tune.with_resources(drives, group), param_space={"x": tune.grid_search([1, 2])})
    assert results.num_errors == 0, results.errors
    assert [list(result.metrics_dataframe["score"]) for result in results] == [[0, 1, 2], [0, 2, 4]]


@pytest.mark.parametrize("num_workers", [(1, 3), [1, 3]])
def test_a_range_of_workers_is_a_tuple_or_a_list(num_workers):
    scaling = ScalingConfig(num_workers=num_workers)
    assert scaling.total_workers == 3
    assert len(scaling._bundles()) == 3
    assert scaling._stored()["num_workers"] == {"min": 1, "max": 3}
    assert ScalingConfig(num_workers=2).total_workers == 2


def test_bad_options_are_named(trainer):
    with pytest.raises(ValueError, match="takes 2 arguments"):
        trainer(lambda a, b: None)
    with pytest.raises(ValueError, match="num_workers"):
        trainer(lambda: None, num_workers=0)
    with pytest.raises(TypeError, match="which is no function"):
        trainer(5)
    with pytest.raises(ValueError, match="timeout_s is -1"):
        ValidationTaskConfig(timeout_s=-1)
    with pytest.raises(ValueError, match="more than this machine has"):
        trainer(lambda: None, num_workers=100).fit()

    def asks_for_validation():
        train.report({"x": 1}, checkpoint=lambda directory: write(directory, 1), validation=True)

    with pytest.raises(cadre.CadreError, match="the trainer has no function for it"):
        trainer(asks_for_validation, num_workers=1).fit()


PROGRAM = """
import os, pathlib, sys, time
from cadre import train
from cadre.train.torch import TorchTrainer

def trains(config):
    checkpoint = train.get_checkpoint()
    step = int((pathlib.Path(checkpoint.path) / "state").read_text()) if checkpoint else 0
    while step < 30:
        step += 1
        train.report({"step": step}, checkpoint=lambda directory: (pathlib.Path(directory) / "state").write_text(str(step)))
        pathlib.Path(config["folder"], f"reached_{step}").touch()
        if step >= 6 and not pathlib.Path(config["folder"], "hurry").exists():
            time.sleep(0.5)  # so that it is interrupted before its end

try:
    result = TorchTrainer(trains, train_loop_config={"folder": os.getcwd()},
                          scaling_config=train.ScalingConfig(num_workers=2),
                          run_config=train.RunConfig(name="killed", storage_path=".", verbose=0)).fit()
    print("DONE", result.metrics["step"], list(result.metrics_dataframe["step"]) == list(range(1, 31)))
except __import__("cadre").Interrupted as error:
    print("INTERRUPTED", error)
"""


def test_the_same_program_goes_on_after_a_kill_and_after_ctrl_c(programs, tmp_path):
    for step, how in ((6, signal.SIGKILL), (8, signal.SIGINT)):
        for file in tmp_path.glob("reached_*"):
            file.unlink()
        program = programs.start(PROGRAM)
        end = time.monotonic() + 120
        while not any(int(file.name.removeprefix("reached_")) >= step for file in tmp_path.glob("reached_*")):
            assert program.poll() is None, program.stdout.read()
            assert time.monotonic() < end
            time.sleep(0.02)
        program.send_signal(how)
        output = program.communicate(timeout=120)[0]
        assert ("INTERRUPTED" in output) == (how == signal.SIGINT), output
    (tmp_path / "hurry").touch()
    done = programs.run(PROGRAM)
    assert "DONE 30 True" in done.stdout and re.search("goes on from its last checkpoint", done.stderr), done.stderr


def test_the_environment_of_a_trial_has_its_gpus_and_threads(programs):
    programs.environment.update(CUDA_VISIBLE_DEVICES="3,5", OMP_NUM_THREADS="1")
    programs.run("""
import os

import cadre
from cadre import train, tune
from cadre.train.torch import TorchTrainer

cadre.init(num_cpus=2)


def variables(config=None):
    return {name.lower(): os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")}


def fit(resources):
    grid = tune.Tuner(tune.with_resources(variables, resources), tune_config=tune.TuneConfig(num_samples=2),
                      run_config=tune.RunConfig(storage_path="results", verbose=0)).fit()
    return [(result.metrics["cuda_visible_devices"], result.metrics["omp_num_threads"]) for result in grid]


def trains():
    train.report(variables())


def classifies(batch):
    return {"devices": [os.environ["CUDA_VISIBLE_DEVICES"]]}


if __name__ == "__main__":
    assert fit({"cpu": 2}) == [("", "2")] * 2
    assert sorted(fit({"cpu": 1, "gpu": 1})) == [("3", "1"), ("5", "1")]
    assert fit({"cpu": 1, "gpu": 0.5}) == [("3", "1")] * 2
    result = TorchTrainer(trains, scaling_config=train.ScalingConfig(use_gpu=True, resources_per_worker={"CPU": 2, "GPU": 2}),
                          run_config=train.RunConfig(storage_path="results", verbose=0)).fit()
    assert result.metrics == {"cuda_visible_devices": "3,5", "omp_num_threads": "2"}
    rows = cadre.data.range(4).map_batches(classifies, batch_size=4, num_gpus=1).take_all()
    assert rows == [{"devices": "3"}]
""")


def test_training_and_validation_have_gpus_of_the_kind_that_each_wants(programs):
    programs.environment["CUDA_VISIBLE_DEVICES"] = "GPU-a,GPU-b,GPU-c"
    done = programs.run("""
import os, pathlib

import cadre
from cadre import train, tune
from cadre.train.torch import TorchTrainer

try:
    cadre.init(num_cpus=4, num_gpus=3, accelerator_type="A100,A10G")
except ValueError as error:
    print("REFUSED", error)
cadre.init(num_cpus=4, num_gpus=3, accelerator_type="A100,A10G,A100")


def devices():
    return {"devices": os.environ["CUDA_VISIBLE_DEVICES"]}


def validate(checkpoint):
    return {"validated_on": os.environ["CUDA_VISIBLE_DEVICES"]}


def trains():
    train.report({"rank_0": os.environ["CUDA_VISIBLE_DEVICES"]}, checkpoint=lambda folder: None, validation=True)
    return [one.metrics for one in train.get_all_reported_checkpoints()]


def with_workers(config):
    run = TorchTrainer(trains_alone, scaling_config=train.ScalingConfig(use_gpu=True, accelerator_type="A10G"),
                       run_config=train.RunConfig(storage_path=os.getcwd(), verbose=0)).fit()
    tune.report(run.metrics)


def trains_alone():
    train.report(devices())


if __name__ == "__main__":
    run_config = train.RunConfig(storage_path="results", verbose=0)
    result = TorchTrainer(trains, run_config=run_config, scaling_config=train.ScalingConfig(
        num_workers=2, use_gpu=True, accelerator_type="A100"), validation_config=train.ValidationConfig(
        fn=validate, ray_remote_kwargs={"num_gpus": 1, "accelerator_type": "A10G"})).fit()
    print("TRAINED", result.return_value)
    try:
        TorchTrainer(trains_alone, run_config=run_config, scaling_config=train.ScalingConfig(
            num_workers=2, use_gpu=True, accelerator_type="A10G")).fit()
    except ValueError as error:
        print("SHORT", str(error).splitlines()[-1])
    tunes = tune.with_resources(lambda config: tune.report(devices()),
                                {"cpu": 1, "gpu": 1, "accelerator_type:A10G": 0.001})
    grid = tune.Tuner(tunes, tune_config=tune.TuneConfig(num_samples=2),
                      run_config=tune.RunConfig(storage_path="results", verbose=0)).fit()
    print("TUNED", [result.metrics["devices"] for result in grid])
""")
    assert "REFUSED" in done.stdout and "has 2 kinds, and there are 3 GPUs" in done.stdout, done.stdout
    assert "TRAINED [{'rank_0': 'GPU-a', 'validated_on': 'GPU-b'}]" in done.stdout, done.stdout
    assert "2 gpus of kind A10G (there are 1)" in done.stdout, done.stdout
    assert "TUNED ['GPU-b', 'GPU-b']" in done.stdout, done.stdout
