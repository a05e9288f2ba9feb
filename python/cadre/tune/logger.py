"""Loggers of experiments, with the names of Ray Tune. The core itself writes result.json, progress.csv and TensorBoard's
events of each trial, so three of these have nothing to do: they are for programs that list them."""

from cadre.tune.callback import LoggerCallback

__all__ = ["CSVLoggerCallback", "JsonLoggerCallback", "LoggerCallback", "TBXLoggerCallback", "pretty_print"]


class _WrittenByTheCore(LoggerCallback):
    def __repr__(self):
        return f"{type(self).__name__}()"


class CSVLoggerCallback(_WrittenByTheCore):
    """progress.csv of each trial, which is always written."""


class JsonLoggerCallback(_WrittenByTheCore):
    """result.json and params.json of each trial, which are always written."""


class TBXLoggerCallback(_WrittenByTheCore):
    """TensorBoard's events of each trial, which are always written."""


def pretty_print(result, exclude=None):
    """Returns a result as lines of text, without its config."""
    shown = {key: value for key, value in result.items()
             if value is not None and key not in ("config", "hist_stats") and key not in (exclude or ())}
    return "".join(_lines(shown, ""))


def _lines(entries, indent):
    for key in sorted(entries, key=str):
        value = entries[key]
        if isinstance(value, dict) and value:
            yield f"{indent}{key}:\n"
            yield from _lines(value, indent + "  ")
        else:
            yield f"{indent}{key}: {value}\n"
