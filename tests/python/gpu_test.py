"""Python programs on a GPU. Skipped where there is none, except under `make test-gpu`, which needs one."""

import glob
import json
import os
import pathlib
import signal
import sysconfig
import time

import pytest

from cadre import train, tune
from cadre.train import RunConfig, ScalingConfig, ValidationConfig
from cadre.train.torch import TorchConfig, TorchTrainer

pytestmark = pytest.mark.skipif(
    not glob.glob("/dev/nvidia[0-9]*") and "CADRE_REQUIRE_GPU" not in os.environ, reason="there is no NVIDIA GPU")

QUARTER = {"cpu": 0.5, "gpu": 0.25}


def rows(folder):
    return {path.parent.name: [json.loads(line) for line in path.read_text().splitlines()]
            for path in sorted(pathlib.Path(folder).glob("*/result.json"))}


def test_trials_share_one_and_each_has_random_numbers_of_its_own(fit):
    def trains(config):
        import torch

        drawn = torch.rand(1, device="cuda").item()
        model = torch.nn.Linear(8, 1).cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
        for _ in range(3):
            loss = model(torch.ones(16, 8, device="cuda")).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            tune.report({"loss": loss.item(), "drawn": drawn, "visible": os.environ["CUDA_VISIBLE_DEVICES"]})

    trainable = tune.with_resources(trains, QUARTER)
    results = [fit(trainable, name=name, num_samples=4, param_space={"lr": tune.loguniform(1e-3, 1e-1)}) for name in "ab"]
    drawn = [[result.metrics["drawn"] for result in grid] for grid in results]
    assert len(set(drawn[0])) == 4 and {result.metrics["visible"] for result in results[0]} == {"0"}
    again = fit(trainable, name="c", num_samples=1, param_space={"lr": 0.1})
    assert again[0].error is None


def test_a_trial_without_one_sees_none(fit):
    def looks(config):
        import torch

        return {"seen": torch.cuda.device_count()}

    assert fit(looks)[0].metrics["seen"] == 0


def test_a_driver_that_uses_one_gives_its_tensors_to_trials(programs):
    programs.run('''
import torch

weights = torch.arange(4.0, device="cuda")

from cadre import tune

def sums(config):
    tune.report({"sum": (weights * config["x"]).sum().item(), "device": str(weights.device)})

def takes(config, given):
    tune.report({"sum": given.sum().item()})

if __name__ == "__main__":
    resources = {"cpu": 1, "gpu": 0.5}
    run_config = tune.RunConfig(storage_path="results", verbose=0)
    grid = tune.Tuner(tune.with_resources(sums, resources), param_space={"x": tune.grid_search([1, 2])},
                      run_config=run_config).fit()
    assert [result.metrics["sum"] for result in grid] == [6, 12], grid
    assert grid[0].metrics["device"] == "cuda:0"
    grid = tune.Tuner(tune.with_resources(tune.with_parameters(takes, given=weights), resources), run_config=run_config).fit()
    assert grid[0].metrics["sum"] == 6, grid
''')


@pytest.fixture
def installed():
    """Installs modules for the time of a test."""
    made = []

    def install(name, text):
        made.append(pathlib.Path(sysconfig.get_path("purelib")) / f"{name}.py")
        made[-1].write_text(text)

    yield install
    for file in made:
        file.unlink()


LOOKS = "import torch\n\nDEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
TAKES = "import torch\n\nZERO = torch.zeros(1, device='cuda')\n"


def test_each_trial_imports_itself_what_looks_for_one(programs, installed):
    installed("cadre_test_looks", LOOKS)
    installed("cadre_test_takes", TAKES)
    done = programs.run('''
import sys
import time

import torch

from cadre import tune

def imports(config):
    had = [name for name in ("cadre_test_looks", "cadre_test_takes", "colorsys") if name in sys.modules]
    import cadre_test_looks
    import cadre_test_takes
    import colorsys
    tune.report({"had": " ".join(had), "sum": (cadre_test_takes.ZERO + 1).item(), "device": cadre_test_looks.DEVICE})
    time.sleep(0.5)

if __name__ == "__main__":
    grid = tune.Tuner(tune.with_resources(imports, {"cpu": 1, "gpu": 1}), tune_config=tune.TuneConfig(num_samples=12),
                      run_config=tune.RunConfig(storage_path="results", verbose=0)).fit()
    assert not grid.errors, grid.errors
    assert {result.metrics["device"] for result in grid} == {"cuda"}
    assert grid[11].metrics["had"] == "colorsys", [result.metrics["had"] for result in grid]
''')
    assert done.stderr == ""


def test_a_driver_that_imports_what_looks_for_one_is_told(programs, installed):
    installed("cadre_test_looks", LOOKS)
    installed("cadre_test_takes", TAKES)
    done = programs.run('''
import cadre_test_looks
import cadre_test_takes

from cadre import tune

def adds(config):
    tune.report({"sum": (cadre_test_takes.ZERO + 1).item(), "device": cadre_test_looks.DEVICE})

def looks(config):
    tune.report({"device": cadre_test_looks.DEVICE})

if __name__ == "__main__":
    run_config = tune.RunConfig(storage_path="results", verbose=0)
    grid = tune.Tuner(tune.with_resources(adds, {"cpu": 1, "gpu": 1}), run_config=run_config).fit()
    assert grid[0].metrics["sum"] == 1 and grid[0].metrics["device"] == "cuda", grid
    grid = tune.Tuner(looks, run_config=run_config).fit()
    assert grid[0].metrics["device"] == "cpu", "a trial without a GPU"
''')
    for name in ("looks", "takes"):
        assert f"each trial imports cadre_test_{name} itself, because importing cadre_test_{name} looks" in done.stderr


POPULATION = '''
import sys
import tempfile

import torch

from cadre import tune
from cadre.tune.schedulers import PopulationBasedTraining


def trains(config):
    model = torch.nn.Linear(8, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    step = 0
    if tune.get_checkpoint():
        with tune.get_checkpoint().as_directory() as directory:
            state = torch.load(directory + "/state.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    generator = torch.Generator(device="cuda").manual_seed(1)
    inputs = torch.rand(64, 8, device="cuda", generator=generator)
    while step < 40:
        step += 1
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with tempfile.TemporaryDirectory() as directory:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step},
                       directory + "/state.pt")
            tune.report({"loss": loss.item(), "step": step}, checkpoint=tune.Checkpoint.from_directory(directory))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        scheduler = PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=4,
                                            hyperparam_mutations={"lr": tune.loguniform(1e-4, 1e-1)})
        tuner = tune.Tuner(tune.with_resources(trains, {"cpu": 0.5, "gpu": 0.25}),
                           param_space={"lr": tune.loguniform(1e-4, 1e-1)},
                           tune_config=tune.TuneConfig(num_samples=4, metric="loss", mode="min", scheduler=scheduler),
                           run_config=tune.RunConfig(name="population", storage_path="results", verbose=0))
    else:
        tuner = tune.Tuner.restore("results/population")
    grid = tuner.fit()
    assert not grid.errors, grid.errors
    best = grid.get_best_result("loss", "min")
    with best.checkpoint.as_directory() as directory:
        state = torch.load(directory + "/state.pt", map_location="cpu")
    assert state["step"] == 40 and state["model"]["weight"].device.type == "cpu"
    print("best", best.metrics["loss"])
'''


def test_a_population_on_it_is_killed_and_continued(programs):
    driver = programs.start(POPULATION, name="population.py")
    folder = programs.folder / "results" / "population"
    deadline = time.monotonic() + 100
    while sum(map(len, rows(folder).values())) < 40:
        assert driver.poll() is None, driver.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    before = rows(folder)
    done = programs.run(POPULATION, "restore", name="population.py")
    assert "best" in done.stdout
    after = rows(folder)
    assert len(after) == 4
    for name, trial in after.items():
        assert trial[:len(before.get(name, []))] == before.get(name, [])
        assert trial[-1]["step"] == 40


def make_trainer(tmp_path, function, *, num_workers=1, gpus=1.0, **others):
    return TorchTrainer(function, scaling_config=ScalingConfig(
        num_workers=num_workers, use_gpu=True, resources_per_worker={"CPU": 0.5, "GPU": gpus}),
        run_config=RunConfig(name="run", storage_path=str(tmp_path), verbose=0), **others)


def trains_in_a_group(config):
    import torch
    from cadre.train.torch import get_device, prepare_data_loader, prepare_model

    torch.manual_seed(train.get_context().get_world_rank())
    model = prepare_model(torch.nn.Linear(4, 1))
    data = torch.utils.data.TensorDataset(torch.arange(256.0).reshape(64, 4) / 256, torch.ones(64, 1))
    loader = prepare_data_loader(torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, pin_memory=True,
                                                             num_workers=config.get("loaders", 0)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen, devices = 0.0, set()
    for epoch in range(3):
        if train.get_context().get_world_size() > 1:
            loader.sampler.set_epoch(epoch)
        for inputs, targets in loader:
            devices.add(str(inputs.device))
            seen += inputs.sum().item()
            loss = (model(inputs) - targets).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    total = torch.tensor([seen], device=get_device())
    torch.distributed.all_reduce(total)
    mine = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    others = [torch.empty_like(mine) for _ in range(train.get_context().get_world_size())]
    torch.distributed.all_gather(others, mine)
    train.report({"total": total.item(), "devices": sorted(devices), "backend": torch.distributed.get_backend(),
                  "equal": all(torch.equal(mine, other) for other in others), "loss": loss.item()},
                 checkpoint=lambda directory: torch.save(model.state_dict(), directory + "/model.pt"))


@pytest.mark.parametrize("num_workers, gpus, backend", [(1, 1, "nccl"), (2, 0.5, "gloo")])
def test_workers_train_one_model_on_it(tmp_path, num_workers, gpus, backend):
    result = make_trainer(tmp_path, trains_in_a_group, num_workers=num_workers, gpus=gpus, train_loop_config={}).fit()
    total = sum(range(256)) / 256 * 3
    assert result.metrics == {"total": pytest.approx(total), "devices": ["cuda:0"], "backend": backend, "equal": True,
                              "loss": pytest.approx(0, abs=0.1)}


def test_a_loader_with_processes_gives_batches_on_it(tmp_path):
    result = make_trainer(tmp_path, trains_in_a_group, train_loop_config={"loaders": 2}).fit()
    assert result.metrics["total"] == pytest.approx(sum(range(256)) / 256 * 3) and result.metrics["devices"] == ["cuda:0"]


def test_nccl_is_refused_where_workers_share_one(tmp_path):
    trainer = make_trainer(tmp_path, trains_in_a_group, num_workers=2, gpus=0.5, torch_config=TorchConfig(backend="nccl"))
    with pytest.raises(train.TrainingFailedError, match="nccl needs a GPU for each worker: ranks (0 and 1|1 and 0) share a GPU"):
        trainer.fit()


def test_batches_that_are_copied_ahead_keep_their_values(tmp_path):
    def reads():
        import torch
        from cadre.train.torch import prepare_data_loader

        data = torch.utils.data.TensorDataset(torch.arange(2_000_000.0).reshape(2000, 1000))
        loader = prepare_data_loader(torch.utils.data.DataLoader(data, batch_size=20, pin_memory=True))
        expected = 0
        for batch, in loader:
            torch.cuda._sleep(1_000_000)  # so that copies overtake the computation, if they can
            assert torch.equal(batch.cpu().flatten(), torch.arange(expected, expected + 20_000.0))
            expected += 20_000
        train.report({"read": expected, "length": len(loader)})

    assert make_trainer(tmp_path, reads).fit().metrics == {"read": 2_000_000, "length": 100}


def test_a_validator_has_a_share_of_it(tmp_path):
    def validate(checkpoint):
        import torch

        with checkpoint.as_directory() as directory:
            weight = torch.load(directory + "/weight.pt")
        return {"validated": weight.sum().item(), "device": str(weight.device)}

    def trains_half():
        import torch

        weight = torch.ones(3, device="cuda")
        train.report({"step": 1}, checkpoint=lambda directory: torch.save(weight, directory + "/weight.pt"), validation=True)

    result = make_trainer(tmp_path, trains_half, gpus=0.5, validation_config=ValidationConfig(
        fn=validate, ray_remote_kwargs={"num_cpus": 0.5, "num_gpus": 0.5})).fit()
    assert result.best_checkpoints[0][1] == {"step": 1, "validated": 3, "device": "cuda:0"}


def test_lightning_trains_on_it(tmp_path):
    lightning = pytest.importorskip("lightning.pytorch")

    def trains_lightning():
        import torch
        from cadre.train.lightning import (RayDDPStrategy, RayLightningEnvironment, RayTrainReportCallback,
                                           prepare_trainer)

        class Regression(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)

            def training_step(self, batch, _):
                loss = (self.layer(batch[0]) - 1).square().mean()
                self.log("loss", loss)
                self.log("on_gpu", float(batch[0].device.type == "cuda"))
                return loss

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(64, 4)), batch_size=8)
        trainer = prepare_trainer(lightning.Trainer(
            max_epochs=2, devices="auto", accelerator="auto", strategy=RayDDPStrategy(),
            plugins=[RayLightningEnvironment()], callbacks=[RayTrainReportCallback()], enable_progress_bar=False,
            enable_checkpointing=False, logger=False, enable_model_summary=False))
        trainer.fit(Regression(), loader)

    for num_workers, gpus in ((1, 1), (2, 0.5)):
        result = make_trainer(tmp_path / str(num_workers), trains_lightning, num_workers=num_workers, gpus=gpus).fit()
        assert result.metrics["epoch"] == 1 and result.metrics["on_gpu"] == 1 and result.checkpoint


def test_transformers_train_on_it(tmp_path):
    pytest.importorskip("transformers")

    def trains_transformers():
        import torch
        import transformers
        from cadre.train.huggingface.transformers import RayTrainReportCallback, prepare_trainer

        model = transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16))
        data = [{"input_ids": torch.randint(0, 50, (8,)), "labels": torch.tensor(index % 2)} for index in range(32)]
        trainer = transformers.Trainer(model, transformers.TrainingArguments(
            str(tmp_path / "transformers"), num_train_epochs=1, per_device_train_batch_size=8, save_strategy="epoch",
            logging_strategy="epoch", report_to=[], disable_tqdm=True), train_dataset=data)
        trainer.add_callback(RayTrainReportCallback())
        prepare_trainer(trainer).train()
        train.report({"device": str(trainer.args.device)})

    result = make_trainer(tmp_path, trains_transformers).fit()
    assert result.metrics["device"] == "cuda:0" and len(result.best_checkpoints) == 1


def test_steps_in_trials_are_timed_beside_those_of_a_plain_process(programs):
    done = programs.run('''
import os
import time

import torch

from cadre import tune
from cadre.tune.examples.mnist_pytorch import ConvNet


def step_times(net, steps):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    images, labels = torch.rand(512, 1, 28, 28, device="cuda"), torch.randint(0, 10, (512,), device="cuda")
    for step in range(steps):
        if step == 50:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        torch.nn.functional.nll_loss(net(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        yield step
    torch.cuda.synchronize()
    yield (time.perf_counter() - begin) / (steps - 50)


def trains(config):
    for step in step_times(ConvNet().cuda(), 550):
        tune.report({"step": step})


if __name__ == "__main__":
    begin = time.perf_counter()
    grid = tune.Tuner(tune.with_resources(trains, {"cpu": 1, "gpu": 1}), tune_config=tune.TuneConfig(num_samples=3),
                      run_config=tune.RunConfig(storage_path="results", verbose=0)).fit()
    assert not grid.errors, grid.errors
    print("three trials one after another:", round(time.perf_counter() - begin, 2), "s")
    here = list(step_times(ConvNet().cuda(), 550))[-1]
    there = [result.metrics["step"] for result in grid]
    print("a step here", here, "in trials, with a report each", there)
''')
    print(done.stdout, done.stderr)


def test_the_dcgan_of_the_guide_trains_on_it(programs):
    from cadre.tune.examples.pbt_dcgan_mnist import common

    try:
        common.get_data_loader()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    programs.run('''
import cadre
import torch
from cadre import tune
from cadre.tune.examples.pbt_dcgan_mnist.common import Net
from cadre.tune.examples.pbt_dcgan_mnist.pbt_dcgan_mnist_func import dcgan_train
from cadre.tune.schedulers import PopulationBasedTraining

if __name__ == "__main__":
    rate = tune.choice([0.0001, 0.0002, 0.0005])
    grid = tune.Tuner(
        tune.with_resources(dcgan_train, {"cpu": 1, "gpu": 0.25}),
        param_space={"netG_lr": rate, "netD_lr": rate, "checkpoint_interval": 2, "use_gpu": True,
                     "mnist_model_ref": cadre.put(Net().eval())},
        tune_config=tune.TuneConfig(metric="is_score", mode="max", num_samples=4, scheduler=PopulationBasedTraining(
            time_attr="training_iteration", perturbation_interval=2, hyperparam_mutations={"netG_lr": rate})),
        run_config=tune.RunConfig(storage_path="results", verbose=0, stop={"training_iteration": 8})).fit()
    assert not grid.errors, grid.errors
    with grid.get_best_result().checkpoint.as_directory() as directory:
        torch.load(directory + "/checkpoint.pt", map_location="cpu")
''')
