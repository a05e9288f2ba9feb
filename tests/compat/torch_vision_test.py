"""Changes of images come to what torchvision's come to."""

import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

# tools/setup.sh has installed it there. Its wheel's operators are for CUDA, and changes of images need none of them.
sys.path.append(str(pathlib.Path(sys.executable).parent.parent / "torchvision"))
sys.modules["torchvision._meta_registrations"] = types.ModuleType("torchvision._meta_registrations")

import torch  # noqa: E402
from torchvision.transforms import InterpolationMode  # noqa: E402
from torchvision.transforms.v2 import functional  # noqa: E402

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "torch_vision_tool"


def images():
    generator = torch.Generator().manual_seed(7)
    for shape in ((3, 17, 23), (3, 20, 20), (1, 9, 31), (2, 3, 12, 10)):
        whole = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        yield whole
        yield whole.float() / 255
    yield torch.tensor([0, 0, 0, 255, 255, 255, 255, 0, 0, 9, 9, 9, 200, 200, 3], dtype=torch.uint8).view(5, 3, 1).permute(1, 0, 2)


def mode(number):
    return (InterpolationMode.NEAREST, InterpolationMode.BILINEAR)[number]


# By function: how torchvision is called with the numbers, and which numbers.
FUNCTIONS = {
    "to_float": (lambda image: functional.to_dtype(image, torch.float32, scale=True), [()]),
    "resize": (lambda image, h, w, antialias: functional.resize(image, [h, w], antialias=bool(antialias)),
               [(5, 7, 1), (40, 30, 1), (8, 8, 0), (33, 11, 0)]),
    "resize_shorter_side": (lambda image, size, antialias: functional.resize(image, [size], antialias=bool(antialias)),
                            [(6, 1), (25, 1), (6, 0)]),
    "crop": (functional.crop, [(0, 0, 5, 5), (2, 3, 4, 6), (-3, -2, 8, 9), (4, 5, 30, 40), (-50, 0, 4, 4), (50, 60, 3, 2)]),
    "center_crop": (lambda image, h, w: functional.center_crop(image, [h, w]), [(5, 5), (4, 7), (30, 40), (30, 3), (9, 31)]),
    "pad": (lambda image, pixels, fill: functional.pad(image, [pixels], fill=fill), [(0, 0), (3, 0), (2, 1)]),
    "horizontal_flip": (functional.horizontal_flip, [()]),
    "vertical_flip": (functional.vertical_flip, [()]),
    "rotate": (lambda image, angle, number, fill: functional.rotate(image, angle, mode(number), fill=fill),
               [(angle, number, fill) for angle in (0, 30, 90, 123.4, 180, 270, -45, 400) for number in (0, 1)
                for fill in (0, 1)]),
    "rgb_to_grayscale": (functional.rgb_to_grayscale, [()]),
    "adjust_brightness": (functional.adjust_brightness, [(0,), (0.4,), (1,), (2.5,)]),
    "adjust_contrast": (functional.adjust_contrast, [(0,), (0.4,), (1,), (2.5,)]),
    "adjust_saturation": (functional.adjust_saturation, [(0,), (0.4,), (1,), (2.5,)]),
    "adjust_hue": (functional.adjust_hue, [(-0.5,), (-0.1,), (0,), (0.25,), (0.5,)]),
    "normalize": (lambda image, *numbers: functional.normalize(image, numbers[:len(numbers) // 2], numbers[len(numbers) // 2:]),
                  [(0.5, 0.25), (0.485, 0.456, 0.406, 0.229, 0.224, 0.225)]),
}
# Kernels of resize for whole numbers compute with fewer bits there.
TOLERANCES = {"resize": 1, "resize_shorter_side": 1}


def cases():
    for name, (_, all_numbers) in FUNCTIONS.items():
        for image in images():
            for numbers in all_numbers:
                if name == "normalize" and (not image.is_floating_point() or len(numbers) not in (2, 2 * image.size(-3))):
                    continue
                yield name, image, numbers


class TorchVisionTest(unittest.TestCase):
    def test_images_are_changed_as_by_torchvision(self):
        everything = {str(i): {"function": name, "image": image, "numbers": [float(number) for number in numbers]}
                      for i, (name, image, numbers) in enumerate(cases())}
        with tempfile.TemporaryDirectory() as folder:
            given, made = (os.path.join(folder, name) for name in ("given.pt", "made.pt"))
            torch.save(everything, given)
            subprocess.run([TOOL, given, made, str(len(everything))], check=True)
            results = torch.load(made, weights_only=True)
        for i, (name, image, numbers) in enumerate(cases()):
            expected = FUNCTIONS[name][0](image, *numbers)
            with self.subTest(function=name, shape=tuple(image.shape), type=image.dtype, numbers=numbers):
                got = results[str(i)]
                self.assertEqual((got.shape, got.dtype), (expected.shape, expected.dtype))
                if not image.is_floating_point():
                    worst = (got.double() - expected.double()).abs().max().item()
                    self.assertLessEqual(worst, TOLERANCES.get(name, 0))
                else:
                    torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
