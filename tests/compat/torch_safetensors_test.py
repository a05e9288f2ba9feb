"""Python reads the weights that Cadre writes to files of safetensors, and Cadre those that Python writes."""

import json
import struct
import unittest

import huggingface_hub
import safetensors
import safetensors.torch
import torch

from torch_object_test import TensorsTest, tensors_of_all_types, tool


class TorchSafetensorsTest(TensorsTest):
    def read(self, file, tensors):
        """Returns what Cadre reads into a model with tensors like these."""
        torch.save({"model": {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}}, self.folder / "like.pt")
        tool("read", file, self.folder / "like.pt", self.folder / "read.pt")
        return torch.load(self.folder / "read.pt", weights_only=True)["model"]

    def test_python_reads_ours(self):
        tensors = tensors_of_all_types()
        torch.save({"model": tensors}, self.folder / "checkpoint.pt")
        tool("write", self.folder / "checkpoint.pt", self.folder / "ours.safetensors")
        self.assert_same(tensors, safetensors.torch.load_file(self.folder / "ours.safetensors"))
        with safetensors.safe_open(self.folder / "ours.safetensors", "pt") as file:
            self.assertEqual(file.metadata()["format"], "pt")

    def test_we_read_pythons(self):
        tensors = tensors_of_all_types()
        safetensors.torch.save_file(tensors, self.folder / "pythons.safetensors")
        self.assert_same(tensors, self.read(self.folder / "pythons.safetensors", tensors))

    def test_we_read_a_model_in_several_files(self):
        tensors = {f"layer{i}": torch.rand(40, 100) for i in range(10)}
        huggingface_hub.save_torch_state_dict(tensors, self.folder, max_shard_size=40_000)
        self.assertGreater(len(list(self.folder.glob("model-*.safetensors"))), 2)
        self.assert_same(tensors, self.read(self.folder / "model.safetensors.index.json", tensors))

    def test_values_are_converted_to_the_models_types(self):
        tensors = {"weight": torch.rand(5).to(torch.bfloat16)}
        safetensors.torch.save_file(tensors, self.folder / "half.safetensors")
        read = self.read(self.folder / "half.safetensors", {"weight": torch.zeros(5)})
        self.assert_same({"weight": tensors["weight"].float()}, read)

    def test_elements_may_lie_anywhere(self):
        header = json.dumps({"byte": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                             "number": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]}}).encode()
        (self.folder / "crooked").write_bytes(struct.pack("<Q", len(header)) + header + b"\x07" + struct.pack("<2f", 1.5, -2))
        tensors = {"byte": torch.tensor([7], dtype=torch.uint8), "number": torch.tensor([1.5, -2])}
        self.assert_same(tensors, self.read(self.folder / "crooked", tensors))


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Parameter(torch.rand(4, 3))
        self.head = self.embed


class TiedTest(TensorsTest):
    def test_a_tensor_of_two_names_is_there_once_and_both_get_it(self):
        # A checkpoint with one storage of both names makes a module with one.
        torch.save({"model": Tied().state_dict()}, self.folder / "tied.pt")
        tool("write", self.folder / "tied.pt", self.folder / "ours.safetensors")
        self.assertEqual(list(safetensors.torch.load_file(self.folder / "ours.safetensors")), ["embed"])
        model = Tied()
        safetensors.torch.load_model(model, self.folder / "ours.safetensors")
        expected = torch.load(self.folder / "tied.pt", weights_only=True)["model"]
        self.assert_same(expected, model.state_dict())

        safetensors.torch.save_model(model, self.folder / "pythons.safetensors")
        torch.save({"model": Tied().state_dict()}, self.folder / "like.pt")
        tool("read", self.folder / "pythons.safetensors", self.folder / "like.pt", self.folder / "read.pt")
        self.assert_same(expected, torch.load(self.folder / "read.pt", weights_only=True)["model"])


if __name__ == "__main__":
    unittest.main()
