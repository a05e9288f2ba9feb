"""Exchanges between the ranks of a run."""

from __future__ import annotations

from typing import Any

from cadre import _core


def barrier() -> None:
    """Waits until all ranks have called it."""
    _core.train.barrier()


def broadcast_from_rank_zero(data: Any) -> Any:
    """Returns in all ranks what rank 0 has passed: None, bool, int, float, str, lists and dictionaries."""
    return _core.train.broadcast_from_rank_zero([data])[0]  # in a list, because data may be None
