"""cadre::data changes images as Pillow does, and so as torchvision's transforms of Pillow's images.

DATA_TRANSFORM_ROUNDS=<n> sets the number of random cases, DATA_TRANSFORM_FIRST=<seed> the first seed.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy
import PIL.Image
import PIL.ImageEnhance

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "data_transform_tool"
ROUNDS = int(os.environ.get("DATA_TRANSFORM_ROUNDS", "300"))
FIRST = int(os.environ.get("DATA_TRANSFORM_FIRST", "0"))


def adjust_hue(image, shift):
    """torchvision's adjust_hue of Pillow's images."""
    if image.mode == "L":
        return image
    hue, saturation, value = image.convert("HSV").split()
    turned = numpy.array(hue, dtype=numpy.uint8) + numpy.array(shift * 255).astype(numpy.int32).astype(numpy.uint8)
    return PIL.Image.merge("HSV", (PIL.Image.fromarray(turned, "L"), saturation, value)).convert("RGB")


def call(image, name, *numbers):
    if name == "resize":
        return image.resize(numbers[::-1], PIL.Image.BILINEAR)
    if name in ("crop", "resized_crop"):
        top, left, height, width = numbers[:4]
        part = image.crop((left, top, left + width, top + height))
        return part if name == "crop" else call(part, "resize", *numbers[4:])
    if name == "center_crop":
        top, left = (-((wanted - own) // 2) if wanted > own else round((own - wanted) / 2)
                     for own, wanted in zip(image.size[::-1], numbers))
        return call(image, "crop", top, left, *numbers)
    if name == "rotate":
        return image.rotate(numbers[0], fillcolor=numbers[1] if image.mode == "L" else (numbers[1],) * len(image.mode))
    if name == "adjust_hue":
        return adjust_hue(image, *numbers)
    flips = {"horizontal_flip": PIL.Image.FLIP_LEFT_RIGHT, "vertical_flip": PIL.Image.FLIP_TOP_BOTTOM}
    if name in flips:
        return image.transpose(flips[name])
    enhance = {"brightness": "Brightness", "contrast": "Contrast", "saturation": "Color"}[name.removeprefix("adjust_")]
    return getattr(PIL.ImageEnhance, enhance)(image).enhance(*numbers)


def random_call(rng, height, width):
    def length():
        return int(rng.choice([1, 2, 7, 31, 64, 100]))

    def part():
        own_height, own_width = int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))
        return int(rng.integers(0, height - own_height + 1)), int(rng.integers(0, width - own_width + 1)), own_height, own_width

    name = str(rng.choice(["resize", "crop", "center_crop", "resized_crop", "horizontal_flip", "vertical_flip", "rotate",
                           "adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue"]))
    if name in ("resize", "center_crop"):
        return [name, length(), length()]
    if name == "crop":
        return [name, int(rng.integers(-20, 60)), int(rng.integers(-20, 60)), length(), length()]
    if name == "resized_crop":
        return [name, *part(), length(), length()]
    if name == "rotate":
        return [name, float(rng.choice([rng.uniform(-400, 400), 90, 180, 270, 0, -90])), int(rng.integers(0, 256))]
    if name == "adjust_hue":
        return [name, float(rng.uniform(-0.5, 0.5))]
    return [name] if "flip" in name else [name, float(rng.choice([rng.uniform(0, 1), rng.uniform(1, 3), 0, 1]))]


def smooth(rng, height, width, channels):
    steps = rng.normal(size=(height, width, channels)).cumsum(0).cumsum(1)
    return numpy.clip(steps * rng.uniform(1, 6) + rng.uniform(0, 255, channels), 0, 255).astype(numpy.uint8)


class PixelsArePillows(unittest.TestCase):
    def test_of_random_changes(self):
        with tempfile.TemporaryDirectory() as folder:
            cases = [self.make_case(pathlib.Path(folder), seed) for seed in range(FIRST, FIRST + ROUNDS)]
            file = pathlib.Path(folder, "cases.json")
            file.write_text(json.dumps(cases), encoding="utf-8")
            subprocess.run([TOOL, file], check=True)
            for seed, case in enumerate(cases, start=FIRST):
                with self.subTest(seed=seed, calls=case["calls"]):
                    self.check_case(case)

    @staticmethod
    def make_case(folder, seed):
        rng = numpy.random.default_rng(seed)
        height, width = (int(rng.choice([1, 3, 17, 64, 65, 100])) for _ in range(2))
        mode = str(rng.choice(["L", "RGB", "RGB"]))
        pixels = smooth(rng, height, width, len(mode))
        image = PIL.Image.fromarray(pixels[:, :, 0] if mode == "L" else pixels)
        file = folder / f"{seed}.png"
        image.save(file)
        return {"file": str(file), "to": str(folder / f"{seed}.raw"), "calls": [random_call(rng, height, width)]}

    def check_case(self, case):
        image = PIL.Image.open(case["file"])
        for words in case["calls"]:
            image = call(image, *words)
        header, pixels = pathlib.Path(case["to"]).read_bytes().split(b"\n", 1)
        height, width, channels = map(int, header.split())
        got = numpy.frombuffer(pixels, numpy.uint8).reshape(height, width, channels)
        expected = numpy.asarray(image).reshape(image.size[1], image.size[0], -1)
        self.assertEqual(got.shape, expected.shape)
        # Resizing begins with the rows in one, and with the columns in the other.
        largest = 1 if "resize" in case["calls"][0][0] else 0
        self.assertLessEqual(int(numpy.abs(got.astype(int) - expected.astype(int)).max()), largest)


if __name__ == "__main__":
    unittest.main()
