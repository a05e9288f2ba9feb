"""Training with transformers.Trainer in the workers of a TorchTrainer, with the names of Ray Train."""

import os
import shutil
import tempfile

from transformers import TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

from cadre.train.collective import barrier
from cadre.train.session import report
from cadre.tune.checkpoint import Checkpoint


class RayTrainReportCallback(TrainerCallback):
    """Reports what the Trainer has logged last, and its checkpoint, whenever it has saved one. The checkpoint has the
    folder checkpoint, which Trainer.train(resume_from_checkpoint=...) continues from.

    Evaluate as often as you save (eval_strategy and save_strategy): otherwise metrics are those of an earlier step.
    """

    CHECKPOINT_NAME = "checkpoint"

    def on_save(self, args, state, control, **others):
        metrics = {}
        for logged in state.log_history:
            metrics.update(logged)
        barrier()  # each rank saves a part
        saved = get_last_checkpoint(args.output_dir)
        with tempfile.TemporaryDirectory() as directory:
            if saved is not None:
                shutil.copytree(saved, os.path.join(directory, self.CHECKPOINT_NAME))
            report(metrics, checkpoint=None if saved is None else Checkpoint(directory))


def prepare_trainer(trainer):
    """Returns a Trainer that also takes iterables of batches, such as iter_torch_batches() of a dataset's shard, as its
    train_dataset and eval_dataset: what has no length and is no dataset of torch."""
    import torch.utils.data

    class _Batches(torch.utils.data.IterableDataset):
        def __init__(self, batches):
            super().__init__()
            self.batches = batches

        def __iter__(self):
            return iter(self.batches)

    def loader_of(dataset):
        if hasattr(dataset, "__len__") or isinstance(dataset, torch.utils.data.Dataset) or not hasattr(dataset, "__iter__"):
            return None
        return torch.utils.data.DataLoader(_Batches(dataset), batch_size=1, collate_fn=lambda batches: batches[0])

    class Prepared(type(trainer)):
        def get_train_dataloader(self):
            loader = loader_of(self.train_dataset)
            return super().get_train_dataloader() if loader is None else loader

        def get_eval_dataloader(self, eval_dataset=None):
            wanted = self.eval_dataset if eval_dataset is None else eval_dataset
            if isinstance(wanted, str):
                wanted = self.eval_dataset[wanted]
            loader = loader_of(wanted)
            return super().get_eval_dataloader(eval_dataset) if loader is None else loader

    trainer.__class__ = Prepared
    return trainer
