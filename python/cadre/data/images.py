"""Changes of the images of batches, by the core: as fast as those of programs in C++."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable

from cadre import _data
from cadre.data import _batches
from cadre.data._functions import get_epoch
from cadre.data.sources import _mode

if TYPE_CHECKING:
    from cadre.data.transforms import Step


class ImageTransforms:
    """A function of batches that changes the images in a column: steps of cadre.data.transforms, also random ones.

        steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.Normalize([0.5], [0.5])]
        rows = data.with_row_numbers(data.read_binary_files("train"))
        rows.map_batches(data.ImageTransforms(steps, column="bytes"), batch_format="pyarrow")

    column: the bytes of JPEG and PNG files, or images as read_images makes them. output_column: where the results go, which
    have one shape; default: "image". Random numbers depend on the seed, the epoch (get_epoch) and the row only, whose
    number is in row_column. mode: in which bytes of files are decoded.
    """

    def __init__(self, steps: Iterable[Step], *, column: str = "image", output_column: str = "image", seed: int = 0,
                 row_column: str = "row", mode: str = "RGB") -> None:
        self.__name__ = "ImageTransforms"
        self.column = column
        self.output_column = output_column
        self.steps = [step.stored for step in steps]
        self.options = {"seed": seed, "row_column": row_column, "mode": _mode("ImageTransforms", mode)}
        self._made = None  # an epoch, and what changes images in it
        self._begin(0)  # raises for steps that cannot be

    def __call__(self, batch):
        changed = self._of_epoch()(_batches.to_record_batch(batch, "ImageTransforms"), self.column, self.output_column)
        return _batches.to_format(_batches.of_core(changed), None)

    def __getstate__(self):
        return {**self.__dict__, "_made": None}

    def _of_epoch(self):
        epoch = get_epoch()
        if self._made is None or self._made[0] != epoch:
            self._made = (epoch, self._begin(epoch))
        return self._made[1]

    def _begin(self, epoch):
        return _data.ImageTransforms(self.steps, {**self.options, "epoch": epoch})


def mix_up(batch, image_column, label_column, *, num_classes, alpha=1.0, seed=0, row_column="row"):
    """Returns a batch, a table, with each row mixed with the row before it, in one random part: the column of float
    images, and the labels, which become arrays of num_classes values. Source: "mixup: Beyond Empirical Risk Minimization",
    Zhang et al."""
    options = {"alpha": float(alpha), "num_classes": num_classes, "seed": seed, "epoch": get_epoch(),
               "row_column": row_column}
    mixed = _data.mix_up(_batches.to_record_batch(batch, "mix_up"), image_column, label_column, options)
    return _batches.to_format(_batches.of_core(mixed), None)
