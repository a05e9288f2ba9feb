"""Data-parallel training with PyTorch."""

import datetime
import os
import random
from dataclasses import dataclass
from typing import Optional

from cadre import _core
from cadre.train.session import get_context
from cadre.train.trainer import DataParallelTrainer


@dataclass
class TorchConfig:
    """How the process group is formed."""

    backend: Optional[str] = None  # default: nccl with use_gpu, else gloo
    init_method: str = "env"  # no meaning here: the group meets over Cadre's own channel, without a port
    timeout_s: int = 1800


class TorchTrainer(DataParallelTrainer):
    """Runs a function in several workers, which are a group of torch.distributed."""

    def __init__(self, train_loop_per_worker, *, train_loop_config=None, torch_config=None, scaling_config=None,
                 run_config=None, datasets=None, dataset_config=None, validation_config=None, metadata=None,
                 resume_from_checkpoint=None):
        self._torch_config = torch_config or TorchConfig()
        super().__init__(train_loop_per_worker, train_loop_config=train_loop_config, scaling_config=scaling_config,
                         run_config=run_config, datasets=datasets, dataset_config=dataset_config,
                         validation_config=validation_config, metadata=metadata,
                         resume_from_checkpoint=resume_from_checkpoint)

    def _backend(self, scaling_config):
        return self._torch_config.backend or ("nccl" if scaling_config.use_gpu else "gloo"), self._torch_config.timeout_s

    @staticmethod
    def _prologue(backend):
        return _form_group(*backend)


def _store_class():
    """Returns a store of torch.distributed over the keys of this worker's group. A function, because torch is imported
    only where it is used."""
    import torch.distributed

    class Store(torch.distributed.Store):
        def __init__(self, keys, timeout):
            super().__init__()
            self.keys = keys
            self.set_timeout(timeout)

        def set(self, key, value):
            self.keys.set(key, value.encode() if isinstance(value, str) else bytes(value))

        def get(self, key):
            return self.keys.get(key, self._milliseconds())

        def add(self, key, amount):
            return self.keys.add(key, amount)

        def wait(self, keys, timeout=None):
            self.keys.wait(keys, self._milliseconds(timeout))

        def check(self, keys):
            return self.keys.contains(keys)

        def compare_set(self, key, expected, desired):
            as_bytes = [value.encode() if isinstance(value, str) else bytes(value) for value in (expected, desired)]
            return self.keys.compare_and_set(key, *as_bytes)

        def delete_key(self, key):
            return self.keys.erase(key)

        def num_keys(self):
            return self.keys.size()

        def _milliseconds(self, timeout=None):
            return int((timeout or self.timeout).total_seconds() * 1000)

    return Store


def _form_group(backend, timeout_s):
    """Joins the group of this worker; returns what leaves it."""
    import torch.distributed

    context = get_context()
    # Read by programs and libraries that torchrun starts otherwise.
    os.environ.update({"RANK": str(context.get_world_rank()), "WORLD_SIZE": str(context.get_world_size()),
                       "LOCAL_RANK": str(context.get_local_rank()), "LOCAL_WORLD_SIZE": str(context.get_local_world_size()),
                       "NODE_RANK": str(context.get_node_rank())})
    if torch.cuda.is_available():
        torch.cuda.set_device(get_device())
    timeout = datetime.timedelta(seconds=timeout_s)
    torch.distributed.init_process_group(
        backend, store=_store_class()(_core.train.group_keys(), timeout), rank=context.get_world_rank(),
        world_size=context.get_world_size(), timeout=timeout)
    return torch.distributed.destroy_process_group


def get_device():
    """Returns the device of this worker: its GPU, or the CPU."""
    return get_devices()[0]


def get_devices():
    """Returns the devices of this worker. It sees only its own GPUs."""
    import torch

    if torch.cuda.is_available():
        return [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    return [torch.device("cpu")]


def prepare_model(model, move_to_device=True, parallel_strategy="ddp", parallel_strategy_kwargs=None):
    """Moves a model to this worker's device and, in a group of several, makes it data-parallel: "ddp", "fsdp" or None."""
    import torch

    device = get_device() if move_to_device is True else move_to_device
    if device:
        model = model.to(device)
    if parallel_strategy and get_context().get_world_size() > 1:
        others = dict(parallel_strategy_kwargs or {})
        if parallel_strategy == "ddp":
            if device and torch.device(device).type == "cuda":
                others = {"device_ids": [device], "output_device": device, **others}
            model = torch.nn.parallel.DistributedDataParallel(model, **others)
        elif parallel_strategy == "fsdp":
            from torch.distributed.fsdp import FullyShardedDataParallel

            model = FullyShardedDataParallel(model, **others)
        else:
            raise ValueError(f"parallel_strategy is {parallel_strategy!r}; it must be \"ddp\", \"fsdp\" or None")
    return model


def prepare_data_loader(data_loader, add_dist_sampler=True, move_to_device=True, auto_transfer=True):
    """Returns a data loader that gives each rank its share of the samples, on its device. Shuffles as the given one does;
    call loader.sampler.set_epoch(epoch) for another order in each epoch."""
    import torch

    del auto_transfer
    if get_context().get_world_size() > 1 and add_dist_sampler and not isinstance(
            data_loader.sampler, torch.utils.data.DistributedSampler):
        shuffles = not isinstance(data_loader.sampler, torch.utils.data.SequentialSampler)
        data_loader = torch.utils.data.DataLoader(
            data_loader.dataset, batch_size=data_loader.batch_size, num_workers=data_loader.num_workers,
            collate_fn=data_loader.collate_fn, pin_memory=data_loader.pin_memory, drop_last=data_loader.drop_last,
            timeout=data_loader.timeout, worker_init_fn=data_loader.worker_init_fn,
            sampler=torch.utils.data.DistributedSampler(data_loader.dataset, shuffle=shuffles))
    return _OnDevice(data_loader, get_device()) if move_to_device else data_loader


class _OnDevice:
    """A data loader whose batches are on a device."""

    def __init__(self, loader, device):
        self._loader = loader
        self._device = device

    def __iter__(self):
        for batch in self._loader:
            yield _moved(batch, self._device)

    def __len__(self):
        return len(self._loader)

    def __getattr__(self, name):
        return getattr(self._loader, name)


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


def enable_reproducibility(seed=0):
    """Seeds the generators of torch, numpy and random, and makes torch use deterministic algorithms."""
    import torch

    torch.manual_seed(seed)
    random.seed(seed)
    try:
        import numpy

        numpy.random.seed(seed)
    except ImportError:
        pass
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
