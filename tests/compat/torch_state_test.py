"""Python's torch reads files of save_state, and load_state reads files of torch.save."""

import collections
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "torch_state_tool"

# The same options as in torch_state_tool.cc.
OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, amsgrad=True),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.01),
    "LBFGS": lambda parameters: torch.optim.LBFGS(parameters, lr=0.5, max_iter=3, history_size=4, line_search_fn="strong_wolfe"),
}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3, bias=False)
        self.norm = torch.nn.BatchNorm2d(2)
        self.fc = torch.nn.Linear(72, 10)

    def forward(self, images):
        return self.fc(torch.relu(self.norm(self.conv(images))).flatten(1))


def train_step(model, optimizer):
    images = torch.linspace(-1, 1, 4 * 64).reshape(4, 1, 8, 8)

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), torch.arange(4))
        loss.backward()
        return loss

    optimizer.step(closure)


def tool(*arguments):
    run = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return run.stdout.strip()


def average(model, optimizer, averages, scaler):
    """Takes the steps of `torch_state_tool average`."""
    images = torch.linspace(-1, 1, 4 * 64).reshape(4, 1, 8, 8)
    for i in range(4):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), torch.arange(4))
        scaler.scale(loss * float("inf") if i == 2 else loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        averages.update_parameters(model)


class TorchStateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "checkpoint.pt"
        torch.manual_seed(5)

    def assert_same_values(self, expected, actual):
        self.assertEqual(expected.keys(), actual.keys())
        for key, value in expected.items():
            # The two sides fuse the optimizers' arithmetic differently: equal up to a few units in the last place.
            torch.testing.assert_close(actual[key], value, rtol=1e-5, atol=1e-6, msg=key)

    def test_python_reads_ours_and_goes_on_like_us(self):
        for name, make in OPTIMIZERS.items():
            with self.subTest(name):
                tool("save", self.file, name)
                saved = torch.load(self.file, weights_only=True)
                self.assertEqual(["model", "optimizer", "step"], list(saved))
                self.assertEqual(2, saved["step"])
                model = Net()
                model.load_state_dict(saved["model"])
                optimizer = make(model.parameters())
                own_options = {key for group in optimizer.param_groups for key in group}
                optimizer.load_state_dict(saved["optimizer"])
                self.assertEqual(own_options, set(saved["optimizer"]["param_groups"][0]))
                train_step(model, optimizer)
                after = torch.load(f"{self.file}.next", weights_only=True)
                self.assert_same_values(after["model"], model.state_dict())

    def test_we_read_pythons_and_go_on_like_it(self):
        for name, make in OPTIMIZERS.items():
            with self.subTest(name):
                model = Net()
                optimizer = make(model.parameters())
                for _ in range(2):
                    train_step(model, optimizer)
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 12}, self.file)
                self.assertEqual("12", tool("load", self.file, name, self.folder / "values.pt"))
                train_step(model, optimizer)
                values = torch.load(self.folder / "values.pt", weights_only=True)
                self.assert_same_values(model.state_dict(), values["model"])

    def test_python_reads_a_dictionary_of_ours(self):
        tool("save_dict", self.file)
        saved = torch.load(self.file, weights_only=True)
        self.assertEqual((3, 0.25, ["a", "b"]), (saved["epoch"], saved["best"], saved["names"]))
        self.assertEqual([0, 1, 2], saved["average"].tolist())
        model = Net()
        model.load_state_dict(saved["states"]["model_state_dict"])
        OPTIMIZERS["Adam"](model.parameters()).load_state_dict(saved["states"]["optimizer_state_dict"])
        torch.set_rng_state(saved["random"]["cpu"])
        self.assertEqual([], saved["random"]["cuda"] if not torch.cuda.is_available() else [])
        drawn = torch.load(f"{self.file}.drawn", weights_only=True)["drawn"]
        self.assertTrue(torch.equal(torch.rand(4), drawn))

    def test_we_read_a_dictionary_of_pythons(self):
        model = Net()
        optimizer = OPTIMIZERS["Adam"](model.parameters())
        train_step(model, optimizer)
        torch.save({"random": {"cpu": torch.get_rng_state(), "cuda": []}, "epoch": 7, "best": 1, "names": ("x", "y"), "more": [None],
                    "average": torch.ones(2), "states": {"optimizer_state_dict": optimizer.state_dict(), "model_state_dict": model.state_dict()}},
                   self.file)
        tool("load_dict", self.file, self.folder / "values.pt")
        values = torch.load(self.folder / "values.pt", weights_only=True)
        self.assertTrue(torch.equal(torch.rand(4), values["drawn"]))
        self.assertEqual((7, 1.0, "y", [1, 1]), (values["epoch"], values["best"], values["name"], values["average"].tolist()))
        train_step(model, optimizer)
        self.assert_same_values(model.state_dict(), values["model"])

    def test_averages_and_scales_are_pythons_and_go_from_one_to_the_other(self):
        for decay, use_buffers in ((0, 0), (0.9, 0), (0.9, 1)):
            with self.subTest(decay=decay, use_buffers=use_buffers):
                tool("average", "none", self.file, decay, use_buffers)
                tool("average", self.file, self.folder / "ours.pt", decay, use_buffers)
                saved = torch.load(self.file, weights_only=True)
                model = Net()
                optimizer = OPTIMIZERS["SGD"](model.parameters())
                function = torch.optim.swa_utils.get_ema_multi_avg_fn(decay) if decay else None
                averages = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=function, use_buffers=bool(use_buffers))
                scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
                for one, name in ((model, "model"), (optimizer, "optimizer"), (averages, "averages"), (scaler, "scaler")):
                    one.load_state_dict(saved[name])
                average(model, optimizer, averages, scaler)
                ours = torch.load(self.folder / "ours.pt", weights_only=True)
                self.assert_same_values(averages.state_dict(), ours["averages"])
                self.assertEqual(ours["scaler"], scaler.state_dict())
                self.assertEqual(8, ours["averages"]["n_averaged"])
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "averages": averages.state_dict(),
                            "scaler": scaler.state_dict()}, self.file)
                tool("average", self.file, self.folder / "ours.pt", decay, use_buffers)
                average(model, optimizer, averages, scaler)
                ours = torch.load(self.folder / "ours.pt", weights_only=True)
                self.assert_same_values(averages.state_dict(), ours["averages"])
                self.assertEqual(ours["scaler"], scaler.state_dict())

    def test_we_read_a_fresh_optimizer_of_pythons(self):
        for name, make in OPTIMIZERS.items():
            with self.subTest(name):
                model = Net()
                optimizer = make(model.parameters())
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, self.file)
                self.assertEqual("0", tool("load", self.file, name, self.folder / "values.pt"))
                train_step(model, optimizer)
                values = torch.load(self.folder / "values.pt", weights_only=True)
                self.assert_same_values(model.state_dict(), values["model"])

    def test_we_read_state_dicts_alone_ordered_and_plain(self):
        state = Net().state_dict()
        with_more = {"model": state, "epoch": 3, "notes": ["a", (1, None)]}
        for saved in (state, dict(state), {"model": dict(state)}, with_more):
            torch.save(saved, self.file)
            tool("load", self.file, "none", self.folder / "values.pt")
            values = torch.load(self.folder / "values.pt", weights_only=True)["model"]
            for key, value in state.items():
                self.assertTrue(torch.equal(value, values[key]), key)

    def test_every_kind_of_value_survives_the_way_through_us(self):
        whole = torch.arange(24.0).reshape(2, 3, 4)
        types = (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32,
                 torch.int64, torch.bool, torch.complex64, torch.complex128)
        saved = {
            "text": "äöü \U0001f600",
            "empty": "",
            "long": "x" * 300,
            "numbers": [0, -1, 255, 65536, 2**40, -(2**63), 1.5, float("inf")],
            "flags": (True, False, None),
            "nested": collections.OrderedDict(a={"b": [()]}),
            "size": whole.shape,
            "whole": whole,
            "part": whole[:, 1:],
            "turned": whole.transpose(0, 2),
            "parameter": torch.nn.Parameter(whole),
            "scalar": torch.tensor(1.5),
            "nothing": torch.empty(0, 3),
            **{str(dtype): whole.remainder(2).to(dtype) for dtype in types},
        }
        for protocol in (2, 4):
            torch.save(saved, self.file, pickle_protocol=protocol)
            tool("copy", self.file, self.folder / "copy.pt")
            read = torch.load(self.folder / "copy.pt", weights_only=True)
            self.assertEqual(list(saved), list(read))
            for key, value in saved.items():
                if isinstance(value, torch.Tensor):
                    self.assertEqual((value.dtype, value.stride()), (read[key].dtype, read[key].stride()), key)
                    self.assertTrue(torch.equal(value, read[key]), key)
                else:
                    self.assertEqual(value, read[key], key)
            read["whole"][0, 1, 0] = 99
            self.assertEqual(99, read["part"][0, 0, 0], "shared memory")

    def test_a_pickle_that_runs_code_is_refused_by_name(self):
        class Evil:
            def __reduce__(self):
                return os.system, (f"touch {witness}",)

        witness = self.folder / "ran"
        torch.save({"model": Evil()}, self.file)
        with self.assertRaisesRegex(RuntimeError, 'system" is refused'):
            tool("load", self.file, "none", self.folder / "values.pt")
        self.assertFalse(witness.exists())

    def test_files_of_the_time_before_zip_are_refused_clearly(self):
        torch.save(Net().state_dict(), self.file, _use_new_zipfile_serialization=False)
        with self.assertRaisesRegex(RuntimeError, "PyTorch 1.6 or newer"):
            tool("load", self.file, "none", self.folder / "values.pt")


if __name__ == "__main__":
    unittest.main()
