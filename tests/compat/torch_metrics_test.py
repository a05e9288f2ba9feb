"""Metrics of classifiers and language models are those of torchmetrics."""

import itertools
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch
from torchmetrics import functional
from torchmetrics.functional import classification

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "torch_metrics_tool"
AVERAGES = ("micro", "macro", "weighted")
NO_INDEX = -1000


def scores_and_targets(examples, classes, generator, shape=()):
    targets = torch.randint(0, classes, (examples, *shape), generator=generator)
    scores = torch.randn(examples, classes, *shape, generator=generator)
    return scores.scatter_add(1, targets.unsqueeze(1), torch.full((examples, 1, *shape), 0.7)), targets  # better than chance


def cases():
    """Returns (metric, predictions, targets, num_classes, top_k, average, ignore_index)."""
    generator = torch.Generator().manual_seed(3)
    for classes, shape, ignored in itertools.product((2, 5, 40), ((), (3, 4)), (None, 1)):
        scores, targets = scores_and_targets(60, classes, generator, shape)
        for average in range(3):
            for top_k in {1, 2, 4} if classes > 4 else {1}:
                yield "accuracy", scores, targets, classes, top_k, average, ignored
            yield "accuracy", scores.argmax(1), targets, classes, 1, average, ignored
            yield "f1", scores, targets, classes, 1, average, ignored
        yield "f1_by_class", scores, targets, classes, 1, 1, ignored
        yield "confusion", scores, targets, classes, 1, 1, ignored
    for classes, average in itertools.product((3, 5), (1, 2)):
        scores, targets = scores_and_targets(90, classes, generator)
        yield "auroc", scores.softmax(1), targets, classes, 1, average, None
        yield "auroc", (scores.softmax(1) * 10).round() / 10, targets, classes, 1, average, None  # ties
    binary, targets = scores_and_targets(90, 2, generator)
    for scores in (binary.softmax(1)[:, 1], (binary.softmax(1)[:, 1] * 4).round() / 4):
        yield "auroc", scores, targets, 2, 1, 1, None
    logits = torch.randn(6, 7, 30, generator=generator)
    words = torch.randint(0, 30, (6, 7), generator=generator)
    for ignored in (None, 4, -100):
        padded = words.clone()
        if ignored is not None:
            padded[:, -2:] = ignored
        yield "perplexity", logits, padded, 30, 1, 1, ignored


def of_torchmetrics(metric, predictions, targets, classes, top_k, average, ignored):
    average = AVERAGES[average]
    if metric == "accuracy":
        return classification.multiclass_accuracy(predictions, targets, classes, average, top_k, ignore_index=ignored)
    if metric == "f1":
        return classification.multiclass_f1_score(predictions, targets, classes, average, ignore_index=ignored)
    if metric == "f1_by_class":
        return classification.multiclass_f1_score(predictions, targets, classes, "none", ignore_index=ignored)
    if metric == "confusion":
        return classification.multiclass_confusion_matrix(predictions, targets, classes, ignore_index=ignored).flatten()
    if metric == "perplexity":
        return functional.text.perplexity(predictions, targets, ignored)
    if classes == 2:
        return classification.binary_auroc(predictions, targets)
    return classification.multiclass_auroc(predictions, targets, classes, average)


class TorchMetricsTest(unittest.TestCase):
    def test_metrics_are_those_of_torchmetrics(self):
        everything = {str(i): {"metric": metric, "predictions": predictions, "targets": targets,
                               "numbers": [classes, top_k, average, NO_INDEX if ignored is None else ignored]}
                      for i, (metric, predictions, targets, classes, top_k, average, ignored) in enumerate(cases())}
        with tempfile.TemporaryDirectory() as folder:
            given, made = (os.path.join(folder, name) for name in ("given.pt", "made.pt"))
            torch.save(everything, given)
            subprocess.run([TOOL, given, made, str(len(everything))], check=True)
            results = torch.load(made, weights_only=True)
        for i, case in enumerate(cases()):
            metric, predictions, _, classes, top_k, average, ignored = case
            with self.subTest(metric=metric, shape=tuple(predictions.shape), classes=classes, top_k=top_k,
                              average=AVERAGES[average], ignored=ignored):
                got = torch.tensor(results[str(i)], dtype=torch.float64)
                torch.testing.assert_close(got, of_torchmetrics(*case).double(), rtol=1e-6, atol=2e-6)


if __name__ == "__main__":
    unittest.main()
