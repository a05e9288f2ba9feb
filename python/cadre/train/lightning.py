"""Training with PyTorch Lightning in the workers of a TorchTrainer, with the names of Ray Train."""

import os
import shutil
import tempfile

from cadre.train.config import CheckpointUploadMode
from cadre.train.session import get_context, report
from cadre.train.torch import get_device
from cadre.tune.checkpoint import Checkpoint

try:
    import lightning.pytorch as lightning
    from lightning.pytorch.plugins.environments import LightningEnvironment
except ModuleNotFoundError:
    import pytorch_lightning as lightning
    from pytorch_lightning.plugins.environments import LightningEnvironment


class _OnThisWorker:
    """A strategy whose device and rank are this worker's."""

    @property
    def root_device(self):
        return get_device()

    @property
    def distributed_sampler_kwargs(self):
        return {"num_replicas": self.world_size, "rank": self.global_rank}


class RayDDPStrategy(_OnThisWorker, lightning.strategies.DDPStrategy):
    """Data-parallel training in the group of torch.distributed that the trainer has formed. The arguments are those of
    DDPStrategy; backend and timeout are TorchConfig's."""


class RayFSDPStrategy(_OnThisWorker, lightning.strategies.FSDPStrategy):
    """The same with the model's parameters divided among the workers. It needs GPUs."""


class RayDeepSpeedStrategy(_OnThisWorker, lightning.strategies.DeepSpeedStrategy):
    """The same with DeepSpeed, if that is installed. It needs GPUs."""


class RayLightningEnvironment(LightningEnvironment):
    """The ranks of this worker, for the argument `plugins` of a Trainer."""

    @property
    def creates_processes_externally(self):
        return True

    def world_size(self):
        return get_context().get_world_size()

    def global_rank(self):
        return get_context().get_world_rank()

    def local_rank(self):
        return get_context().get_local_rank()

    def node_rank(self):
        return get_context().get_node_rank()

    def set_world_size(self, size):
        """Does nothing: the size is the run's."""

    def set_global_rank(self, rank):
        """Does nothing: the rank is the worker's."""

    def teardown(self):
        """Does nothing: the worker ends with its function."""


def prepare_trainer(trainer):
    """Checks that a Trainer has a strategy and an environment of this module, and returns it. Raises RuntimeError if it
    has others, which would start processes of their own."""
    if not isinstance(trainer.strategy, _OnThisWorker):
        raise RuntimeError(f"the Trainer's strategy is {type(trainer.strategy).__name__}; it must be RayDDPStrategy(), "
                           "RayFSDPStrategy() or RayDeepSpeedStrategy()")
    environment = getattr(trainer.strategy, "cluster_environment", None)
    if environment and not isinstance(environment, RayLightningEnvironment):
        raise RuntimeError(f"the Trainer's environment is {type(environment).__name__}; it must be "
                           "plugins=[RayLightningEnvironment()]")
    return trainer


class RayTrainReportCallback(lightning.callbacks.Callback):
    """Reports the Trainer's metrics and a checkpoint at the end of each training epoch. All ranks have it. The checkpoint
    has the file checkpoint.ckpt, which Trainer.fit(ckpt_path=...) continues from."""

    CHECKPOINT_NAME = "checkpoint.ckpt"

    def __init__(self, checkpoint_upload_mode=CheckpointUploadMode.SYNC, validation=False):
        super().__init__()
        self.checkpoint_upload_mode = checkpoint_upload_mode or CheckpointUploadMode.SYNC
        self.validation = validation

    def on_train_epoch_end(self, trainer, pl_module):
        metrics = {name: value.item() for name, value in trainer.callback_metrics.items()}
        metrics.update({"epoch": trainer.current_epoch, "step": trainer.global_step})
        directory = tempfile.mkdtemp(prefix="lightning_checkpoint_")  # deleted when the report has its files
        try:
            trainer.save_checkpoint(os.path.join(directory, self.CHECKPOINT_NAME), weights_only=False)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        report(metrics, checkpoint=Checkpoint(directory), checkpoint_upload_mode=self.checkpoint_upload_mode,
               delete_local_checkpoint_after_upload=True, validation=self.validation)
