"""Python's safetensors reads an object of tensors, and Cadre reads what Python's safetensors writes as an object."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import safetensors.torch
import torch

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "torch_object_tool"

TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
         torch.float32, torch.float64]


def tool(*arguments):
    run = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr)


def tensors_of_all_types():
    """Returns tensors of odd sizes, which only the order of their types keeps aligned."""
    tensors = {}
    for number, dtype in enumerate(TYPES):
        values = (torch.rand(3, 2 * number + 1) * 100).to(dtype)
        tensors[f"{str(dtype).removeprefix('torch.')}_matrix"] = values
        tensors[f"{str(dtype).removeprefix('torch.')}_scalar"] = values[0, 0].clone()
    tensors["empty"] = torch.empty(0, 3)
    return tensors


class TensorsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(5)

    def assert_same(self, expected, actual):
        self.assertEqual(expected.keys(), actual.keys())
        for name, tensor in expected.items():
            self.assertEqual(tensor.dtype, actual[name].dtype, name)
            self.assertEqual(tensor.shape, actual[name].shape, name)
            self.assertTrue(torch.equal(tensor, actual[name]), name)


class TorchObjectTest(TensorsTest):
    def test_python_reads_ours(self):
        tensors = tensors_of_all_types()
        torch.save({"model": tensors}, self.folder / "checkpoint.pt")
        tool("put", self.folder / "checkpoint.pt", self.folder / "object")
        self.assert_same(tensors, safetensors.torch.load_file(self.folder / "object"))

    def test_we_read_pythons(self):
        tensors = tensors_of_all_types()
        safetensors.torch.save_file(tensors, self.folder / "pythons", metadata={"format": "pt"})
        others = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
        torch.save({"model": others}, self.folder / "like.pt")
        tool("load", self.folder / "pythons", self.folder / "like.pt", self.folder / "read.pt")
        self.assert_same(tensors, torch.load(self.folder / "read.pt", weights_only=True)["model"])


if __name__ == "__main__":
    unittest.main()
