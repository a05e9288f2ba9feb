"""Data loaders of PyTorch in a group of workers."""

import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, SequentialSampler


def is_divisible(loader):
    """Returns true if a sampler can divide the samples of a loader among ranks, and none does yet."""
    return not isinstance(loader.sampler, DistributedSampler) and not isinstance(loader.dataset, IterableDataset)


def divided(loader):
    """Returns a loader with this rank's share of the samples."""
    if loader.batch_size is None and loader.batch_sampler is not None:
        raise ValueError("prepare_data_loader: the loader has a batch_sampler of its own, which would be lost; give each rank "
                         "its share with that, and call prepare_data_loader(loader, add_dist_sampler=False)")
    others = {}
    if loader.num_workers > 0:
        others = {"prefetch_factor": loader.prefetch_factor, "persistent_workers": loader.persistent_workers,
                  "multiprocessing_context": loader.multiprocessing_context}
    return DataLoader(
        loader.dataset, batch_size=loader.batch_size, num_workers=loader.num_workers, collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory, drop_last=loader.drop_last, timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn, generator=loader.generator,
        sampler=DistributedSampler(loader.dataset, shuffle=not isinstance(loader.sampler, SequentialSampler)), **others)


class LoaderOnDevice(DataLoader):
    """A data loader whose batches are on a device."""

    def __init__(self, loader, device, auto_transfer):
        self.__dict__.update(loader.__dict__)
        self._loader = loader
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" and auto_transfer else None

    def __iter__(self):
        return iter(self._loader_batches() if self._stream is None else self._batches_copied_ahead())

    def __len__(self):
        return len(self._loader)

    def _loader_batches(self):
        for batch in self._loader:
            yield _moved(batch, self._device)

    def _batches_copied_ahead(self):
        """Yields batches while a stream of the GPU copies the next one. Pinned batches are copied beside the
        computation."""
        ahead = None
        for batch in self._loader:
            with torch.cuda.stream(self._stream):
                copied = _moved(batch, self._device), self._stream.record_event()
            if ahead is not None:
                yield self._ready(*ahead)
            ahead = copied
        if ahead is not None:
            yield self._ready(*ahead)

    def _ready(self, batch, copied):
        """Returns a batch that the current stream may use when it is copied; it does not wait for the next one."""
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(copied)
        for tensor in _tensors(batch):
            if tensor.device.type == "cuda":
                tensor.record_stream(stream)  # its memory is the other stream's, which must not use it again too early
        return batch


def _moved(item, device):
    if hasattr(item, "to"):
        return item.to(device, non_blocking=True)
    if isinstance(item, dict):
        return type(item)((key, _moved(value, device)) for key, value in item.items())
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*(_moved(value, device) for value in item))
    if isinstance(item, (list, tuple)):
        return type(item)(_moved(value, device) for value in item)
    return item


def _tensors(item):
    if isinstance(item, torch.Tensor):
        yield item
    elif isinstance(item, (dict, list, tuple)):
        for value in item.values() if isinstance(item, dict) else item:
            yield from _tensors(value)
