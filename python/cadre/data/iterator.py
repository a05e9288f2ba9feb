"""Loops over a dataset, and a rank's share of it."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any, Iterable, Iterator

import pyarrow

from cadre import _core, _data
from cadre.data import _batches

if TYPE_CHECKING:
    from cadre.data.dataset import Dataset, Schema


class DataIterator:
    """Loops over the rows of a dataset, or of a share of them. Each loop is a pass over all of them."""

    def __init__(self, dataset, shard=None, agreement=None, is_resumed=False):
        self._dataset = dataset
        self._shard = shard  # a _data.Shard; None: all rows
        self._agreement = agreement  # makes all ranks take equally many batches; None: they do so without
        self._is_fresh = True  # no loop has begun in this epoch
        self._is_resumed = is_resumed  # the next loop has the rest of a pass that was interrupted
        self._epoch = 0  # of all rows; a share has its own

    def iter_batches(self, *, prefetch_batches: int = 1, batch_size: int | None = 256,
                     batch_format: str | None = "default", drop_last: bool = False,
                     local_shuffle_buffer_size: int | None = None, local_shuffle_seed: int | None = None,
                     _collate_fn=None) -> Iterable[Any]:
        """Returns the batches, one after the other, prepared ahead in threads.

        batch_size: rows in a batch; None: batches as they are read. batch_format: "numpy", a dictionary of arrays,
        "pandas", or "pyarrow". drop_last: leave out a last batch with fewer rows. local_shuffle_buffer_size: every
        group of so many consecutive rows is put in random order, another one in each pass.
        """
        _batches.check_format(batch_format, "iter_batches")
        loop = self._loop(prefetch_batches, batch_size, drop_last, local_shuffle_buffer_size, local_shuffle_seed)
        return _Batches(loop, lambda batch: _collated(_batches.to_format(batch, batch_format), _collate_fn))

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        """Returns the rows, one after the other, as dictionaries."""
        loop = self._loop(1, None, False, None, None)
        return (row for batch in _Batches(loop, _batches.to_rows) for row in batch)

    def iter_torch_batches(self, *, prefetch_batches: int = 1, batch_size: int | None = 256, dtypes=None, device="auto",
                           collate_fn=None, drop_last: bool = False, local_shuffle_buffer_size: int | None = None,
                           local_shuffle_seed: int | None = None, pin_memory: bool = False) -> Iterable[Any]:
        """Returns the batches as dictionaries of tensors, which share the memory of the batch where that is possible.

        dtypes: a type, or types by column. device: default: that of this worker. collate_fn: gets a dictionary of arrays
        and returns what the loop gets. pin_memory: for faster copies to a GPU. The others are those of iter_batches.
        """
        make = _Tensors(dtypes, _device(device), collate_fn, pin_memory)
        loop = self._loop(prefetch_batches, batch_size, drop_last, local_shuffle_buffer_size, local_shuffle_seed)
        return _Batches(loop, make)

    def materialize(self) -> Dataset:
        """Returns a dataset of these rows in memory."""
        from cadre.data.sources import from_arrow

        if self._shard is None:
            return self._dataset.materialize()
        batches = [pyarrow.Table.from_batches([batch]) for batch in _Batches(self._loop(1, None, False, None, None), _same)]
        return from_arrow(batches) if batches else self._dataset.limit(0).materialize()

    def schema(self) -> Schema | None:
        """Returns the columns."""
        return self._dataset.schema()

    def stats(self) -> str:
        """Returns a table about the latest pass."""
        return self._dataset.stats()

    def count(self) -> int:
        """Returns the number of rows, before functions and conditions if this is a share."""
        return self._dataset.count() if self._shard is None else self._shard.size()

    def __len__(self) -> int:
        return self.count()

    @property
    def epoch(self) -> int:
        """The number of the pass, from 0."""
        return self._epoch if self._shard is None else self._shard.epoch

    def _loop(self, prefetch, batch_size, drop_last, shuffle_buffer, shuffle_seed):
        self._dataset._prepare()
        if shuffle_seed is None:
            shuffle_seed = random.SystemRandom().getrandbits(63)
        arguments = (batch_size, drop_last, prefetch, shuffle_buffer, shuffle_seed)
        if self._shard is None:
            return lambda: self._dataset._rows.iterate(*arguments, self._next_epoch())
        return lambda: self._pass_of_share(arguments)

    def _pass_of_share(self, arguments):
        """Begins the next pass, or goes on with one that was interrupted if it has batches left."""
        batches = self._begin_epoch().iterate(*arguments)
        if self._agreement is not None:
            batches = self._agreement.common(batches)
        if not self._is_resumed:
            return batches
        self._is_resumed = False
        for batch in batches:
            return itertools.chain([batch], batches)
        return self._pass_of_share(arguments)

    def _next_epoch(self):
        self._epoch += not self._is_fresh
        self._is_fresh = False
        return self._epoch

    def _begin_epoch(self):
        """Begins the next pass over the share."""
        if not self._is_fresh:
            self._shard.set_epoch(self._shard.epoch + 1)
        self._is_fresh = False
        return self._shard

    def __iter__(self):
        raise TypeError("a DataIterator has iter_batches(), iter_torch_batches() and iter_rows()")

    def __repr__(self):
        return f"DataIterator({self._dataset!r})"


def of_run(name, is_split, resume):
    """Returns an iterator over a dataset of the training run, in one of its workers."""
    from cadre.data.dataset import Dataset

    dataset = Dataset(_data.run_dataset(name))
    if not is_split:
        return DataIterator(dataset)
    shard = _data.run_shard(name, equal=True, shuffle=False, seed=0)
    agreement = None
    keeps_rows = dataset._rows.keeps_rows()
    if _core.train.world_size() > 1 and not keeps_rows:
        agreement = _Agreement(name, _core.train.world_size(), _core.train.world_rank())
    position = shard.position()  # of the checkpoint that the run goes on from
    shared = sum(end - begin for begin, end in position["ranges"])  # fewer where other ranks have taken rows of the pass
    has_begun = position["taken"] > 0 or shared < position["rows"]
    # Only the loop finds out if functions or conditions change the number of rows.
    has_rest = not keeps_rows or position["taken"] < shared // position["world_size"]
    if has_begun and not (resume and has_rest):
        shard.set_epoch(shard.epoch + 1)
        has_begun = False
    return DataIterator(dataset, shard, agreement, is_resumed=has_begun)


class _Agreement:
    """Makes the ranks of a run take equally many batches where functions and conditions leave them different numbers of
    rows: a step of training waits for all ranks. A batch is taken when every rank has one; the rest is left out."""

    _TIMEOUT_MS = 30 * 60 * 1000  # for a rank whose batches take long

    def __init__(self, name, world_size, rank):
        self._name = name
        self._world_size = world_size
        self._is_first = rank == 0
        self._loops = 0
        self._keys = _core.train.group_keys()

    def common(self, batches):
        """Returns the batches as long as every rank has one. All ranks make the same loops."""
        self._loops += 1
        place = f"cadre.data/{self._name}/{self._loops}"
        number = -1
        for number, batch in enumerate(batches):
            if self._keys.add(f"{place}/{number}/ready", 1) == self._world_size:
                self._keys.set(f"{place}/{number}/answer", b"go")
            if self._keys.get(f"{place}/{number}/answer", self._TIMEOUT_MS) != b"go":
                return
            if self._is_first and number > 1:  # all ranks have read the answer before the last one
                self._keys.erase(f"{place}/{number - 2}/ready")
                self._keys.erase(f"{place}/{number - 2}/answer")
            yield batch
        self._keys.set(f"{place}/{number + 1}/answer", b"stop")


class _Batches:
    """A loop over batches, and again one for each iter()."""

    def __init__(self, begin, convert):
        self._begin = begin
        self._convert = convert
        self._current = None

    def __iter__(self):
        loop = self._begin()
        try:
            for batch in loop:
                yield self._convert(pyarrow.record_batch(batch))
        finally:
            del loop

    def __next__(self):
        if self._current is None:
            self._current = iter(self)
        return next(self._current)


def _same(batch):
    return batch


def _collated(batch, collate):
    return batch if collate is None else collate(batch)


def _device(device):
    """Returns the device for tensors: None is the CPU."""
    import torch

    if device == "auto":
        if not _core.train.is_worker():
            return None
        from cadre.train.torch import get_device

        device = get_device()
    device = torch.device(device) if device is not None else None
    return None if device is None or device.type == "cpu" else device


class _Tensors:
    """Makes tensors of batches."""

    def __init__(self, dtypes, device, collate_fn, pin_memory):
        self.dtypes = dtypes
        self.device = device
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        if collate_fn is not None and dtypes is not None:
            raise ValueError("iter_torch_batches: collate_fn makes the tensors, so dtypes has no meaning beside it")

    def __call__(self, batch):
        if self.collate_fn is not None:
            return self._moved(self.collate_fn(_batches.to_format(batch, "numpy")))
        names = batch.schema.names
        if isinstance(self.dtypes, dict):
            unknown = [name for name in self.dtypes if name not in names]
            if unknown:
                raise ValueError(f"iter_torch_batches: dtypes has no column: {', '.join(unknown)}; the columns are: "
                                 f"{', '.join(names)}")
        return {name: self._moved(_batches.to_tensor(column, name), self._dtype(name))
                for name, column in zip(names, batch.columns)}

    def _dtype(self, name):
        return self.dtypes.get(name) if isinstance(self.dtypes, dict) else self.dtypes

    def _moved(self, given, dtype=None):
        if isinstance(given, dict):
            return {name: self._moved(one) for name, one in given.items()}
        if isinstance(given, (list, tuple)):
            moved = [self._moved(one) for one in given]
            return type(given)(*moved) if hasattr(given, "_fields") else type(given)(moved)
        if not hasattr(given, "to"):
            return given
        if self.pin_memory and self.device is not None and self.device.type == "cuda":
            given = given.pin_memory()
        if self.device is None and dtype is None:
            return given
        return given.to(device=self.device, dtype=dtype, non_blocking=self.pin_memory)
