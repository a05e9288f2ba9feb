"""Models take torchvision's weights and come to its results."""

import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

# tools/setup.sh has installed it there. Its wheel's operators are for CUDA, and residual networks need none of them.
sys.path.append(str(pathlib.Path(sys.executable).parent.parent / "torchvision"))
sys.modules["torchvision._meta_registrations"] = types.ModuleType("torchvision._meta_registrations")

import safetensors.torch  # noqa: E402
import torch  # noqa: E402
from torchvision import models  # noqa: E402

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "torch_vision_models_tool"


def make(name, classes, channels):
    """Returns a model whose buffers, too, are those of one that was trained."""
    model = getattr(models, name)(num_classes=classes)
    if channels != 3:
        model.conv1 = torch.nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1)
                module.bias.normal_(0, 0.1)
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 2)
    return model


class TorchVisionModelsTest(unittest.TestCase):
    def compare(self, name, kind, classes=1000, channels=3, size=64):
        torch.manual_seed(3)
        model = make(name, classes, channels)
        images = torch.rand(2, channels, size, size + 7)
        with tempfile.TemporaryDirectory() as folder:
            weights, given, made = (os.path.join(folder, file) for file in (f"weights.{kind}", "given.pt", "made.pt"))
            (safetensors.torch.save_file if kind == "safetensors" else torch.save)(model.state_dict(), weights)
            torch.save({"images": images}, given)
            subprocess.run([TOOL, name, str(classes), str(channels), weights, given, made], check=True)
            got = torch.load(made, weights_only=True)
        with torch.no_grad():
            scores = model.eval()(images)
            trained = model.train()(images)
        torch.testing.assert_close(got["scores"], scores, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(got["trained"], trained, rtol=1e-3, atol=1e-3)
        parameters = [key for key, _ in model.named_parameters()]
        self.assertEqual([key for key in got["state"] if key in parameters], parameters, "in the same order")
        self.assertEqual(got["state"].keys(), model.state_dict().keys())
        for key, value in model.state_dict().items():
            torch.testing.assert_close(got["state"][key], value, rtol=1e-4, atol=1e-4, msg=key)

    def test_models_come_to_torchvisions_scores(self):
        for name in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152"):
            with self.subTest(name=name):
                self.compare(name, "pth")

    def test_weights_come_from_safetensors(self):
        self.compare("resnet50", "safetensors")

    def test_grey_images_of_few_classes_and_pixels(self):
        self.compare("resnet18", "pth", classes=10, channels=1, size=28)


if __name__ == "__main__":
    unittest.main()
