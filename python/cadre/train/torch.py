"""Data-parallel training with PyTorch."""

from __future__ import annotations

import datetime
import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional

from cadre import _core
from cadre.train.session import get_context
from cadre.train.trainer import DataParallelTrainer

if TYPE_CHECKING:
    import torch

    from cadre.train.config import DataConfig, RunConfig, ScalingConfig
    from cadre.train.validation import ValidationConfig


@dataclass
class TorchConfig:
    """How the process group is formed."""

    backend: Optional[str] = None  # default: nccl where each worker has a GPU of its own, else gloo
    init_method: str = "env"  # no meaning here: the group meets over Cadre's own channel, and only tensors need ports
    timeout_s: int = 1800


class TorchTrainer(DataParallelTrainer):
    """Runs a function in several workers, which are a group of torch.distributed."""

    def __init__(self, train_loop_per_worker: Callable[..., Any], *, train_loop_config: dict[str, Any] | None = None,
                 torch_config: TorchConfig | None = None, scaling_config: ScalingConfig | None = None,
                 run_config: RunConfig | None = None, datasets: Mapping[str, Any] | None = None,
                 dataset_config: DataConfig | None = None, validation_config: ValidationConfig | None = None,
                 metadata: Any = None, resume_from_checkpoint: Any = None) -> None:
        self._torch_config = torch_config or TorchConfig()
        super().__init__(train_loop_per_worker, train_loop_config=train_loop_config, scaling_config=scaling_config,
                         run_config=run_config, datasets=datasets, dataset_config=dataset_config,
                         validation_config=validation_config, metadata=metadata,
                         resume_from_checkpoint=resume_from_checkpoint)

    def _backend(self, scaling_config):
        return self._torch_config.backend, scaling_config.use_gpu, self._torch_config.timeout_s

    @staticmethod
    def _prologue(backend):
        return _form_group(*backend)


# Until the worker ends: groups hold what torch makes of a store in C++, which finds no methods once the object in Python
# is gone.
_stores: list[Any] = []


def _store_class():
    """Returns a store of torch.distributed over the keys of this worker's group. A function, because torch is imported
    only where it is used."""
    import torch.distributed

    class Store(torch.distributed.Store):
        def __init__(self, keys, timeout):
            super().__init__()
            self.keys = keys
            self.set_timeout(timeout)
            _stores.append(self)

        def clone(self):
            return Store(self.keys, self.timeout)

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


def _choose_backend(asked, use_gpu, keys, timeout):
    """Returns the backend of the group: the one that was asked for, or else nccl where each rank has a GPU of its own."""
    import torch.distributed

    needs_gpus = asked is not None and ("nccl" in asked.split(",") or "cuda:nccl" in asked.split(","))
    if not needs_gpus and (asked or not use_gpu or not torch.distributed.is_nccl_available()):
        return asked or "gloo"
    obstacle = keys.claim_gpu(torch.cuda.is_available(), int(timeout.total_seconds() * 1000))
    if obstacle and needs_gpus:
        raise RuntimeError(f"TorchConfig: the backend {asked} needs a GPU for each worker: {obstacle}; gloo does not")
    return asked or ("gloo" if obstacle else "nccl")


def _form_group(asked, use_gpu, timeout_s):
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
    keys = _core.train.group_keys()
    torch.distributed.init_process_group(
        _choose_backend(asked, use_gpu, keys, timeout), store=_store_class()(keys, timeout), rank=context.get_world_rank(),
        world_size=context.get_world_size(), timeout=timeout)
    return _leave_group


def _leave_group():
    import torch.distributed

    if torch.distributed.is_initialized():  # unless the function has left it
        torch.distributed.destroy_process_group()


def get_device() -> torch.device:
    """Returns the device of this worker: its GPU, or the CPU."""
    return get_devices()[0]


def get_devices() -> list[torch.device]:
    """Returns the devices of this worker. It sees only its own GPUs."""
    import torch

    if torch.cuda.is_available():
        return [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    return [torch.device("cpu")]


def prepare_model(model: torch.nn.Module, move_to_device: bool | torch.device = True,
                  parallel_strategy: str | None = "ddp",
                  parallel_strategy_kwargs: dict[str, Any] | None = None) -> torch.nn.Module:
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


def prepare_data_loader(data_loader: Any, add_dist_sampler: bool = True, move_to_device: bool = True,
                        auto_transfer: bool = True) -> Any:
    """Returns a data loader that gives each rank its share of the samples, on its device. Shuffles as the given one does;
    call loader.sampler.set_epoch(epoch) for another order in each epoch.

    add_dist_sampler: False, and an IterableDataset, give each rank all samples. auto_transfer: on a GPU, the next batch is
    copied while the program computes with this one, if the loader has pin_memory=True; the loader is one batch ahead then.
    Raises ValueError for a loader with a batch_sampler of its own, which cannot be divided.
    """
    from cadre.train import _data_loader

    if get_context().get_world_size() > 1 and add_dist_sampler and _data_loader.is_divisible(data_loader):
        data_loader = _data_loader.divided(data_loader)
    return _data_loader.LoaderOnDevice(data_loader, get_device(), auto_transfer) if move_to_device else data_loader


def enable_reproducibility(seed: int = 0) -> None:
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
