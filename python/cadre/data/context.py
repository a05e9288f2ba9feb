"""Options of all datasets of the process, with the names of Ray's DataContext."""

from __future__ import annotations

from cadre.data._arguments import no_meaning


class ExecutionResources:
    """Limits of an execution."""

    def __init__(self, cpu=None, gpu=None, object_store_memory=None, memory=None):
        no_meaning("ExecutionResources", gpu=gpu, memory=memory)
        self.cpu = cpu  # threads that read and transform rows
        self.gpu = gpu
        self.object_store_memory = object_store_memory  # bytes that are held between reading and the use of the rows
        self.memory = memory


class ExecutionOptions:
    """How a plan is executed. Rows are always in order."""

    def __init__(self, resource_limits=None, exclude_resources=None, preserve_order=True, verbose_progress=None, **others):
        no_meaning("ExecutionOptions", exclude_resources=exclude_resources, **others)
        self.resource_limits = resource_limits or ExecutionResources()
        self.preserve_order = preserve_order
        self.verbose_progress = verbose_progress


class DataContext:
    """The options with which datasets are made. Others of Ray's have no meaning here, and may be set."""

    _current = None

    def __init__(self):
        self.execution_options = ExecutionOptions()
        self.enable_progress_bars = None  # default: if stderr is a terminal

    @classmethod
    def get_current(cls) -> DataContext:
        if cls._current is None:
            cls._current = cls()
        return cls._current

    def _stored(self):
        """Returns the options in the form in which a dataset stores them; only those that were set."""
        limits = self.execution_options.resource_limits
        chosen = {"progress_bars": self.enable_progress_bars, "memory_limit_bytes": _whole(limits.object_store_memory),
                  "num_threads": _whole(limits.cpu)}
        return {name: value for name, value in chosen.items() if value is not None}


def _whole(number):
    return None if number is None or number == float("inf") else max(1, int(number))
