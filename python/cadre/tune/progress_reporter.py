"""Names of Ray Tune's reporters of progress. Cadre's console and, in a notebook, its table show the same; of their options
the columns have a meaning in notebooks."""


class ProgressReporter:
    """Base of reporters. A class that derives from it is accepted, and never called."""


class CLIReporter(ProgressReporter):
    """Which metrics and parameters a notebook's table shows. metric_columns, parameter_columns: names, or a dictionary of
    names and titles. The other arguments have no meaning here."""

    def __init__(self, *, metric_columns=None, parameter_columns=None, **others):
        del others
        self.metric_columns = _titles(metric_columns)
        self.parameter_columns = _titles(parameter_columns)

    def add_metric_column(self, metric, representation=None):
        """Adds a metric, with its title."""
        self.metric_columns = {**(self.metric_columns or {}), metric: representation or metric}

    def add_parameter_column(self, parameter, representation=None):
        """Adds a parameter, with its title."""
        self.parameter_columns = {**(self.parameter_columns or {}), parameter: representation or parameter}


class JupyterNotebookReporter(CLIReporter):
    """The same."""


def _titles(columns):
    """Returns a dictionary of names and titles, or None for the default."""
    return columns if columns is None or isinstance(columns, dict) else {name: name for name in columns}
