"""Aggregates of columns, for aggregate() of datasets and of groups: Count, Sum, Min, Max, Mean, Std, Quantile, CountDistinct.

    rows.aggregate(Mean("fare"), Quantile("fare", q=0.9))
    rows.groupby("city").aggregate(Count(), CountDistinct("driver", alias_name="drivers"))
"""

from cadre import _core


class Aggregate:
    """An aggregate of a column. `name`: of the result."""

    def __init__(self, kind, on, alias_name, *, ignore_nulls=True, ddof=1, q=0.5, column=None):
        self.name = alias_name or f"{kind}({'' if on is None else on})"
        self.on = on
        self.ignore_nulls = ignore_nulls
        self.ddof = ddof
        self.stored = {"kind": kind, "column": (on or "") if column is None else column, "q": float(q)}

    @property
    def stored_name(self):
        """The name that the core gives to the result."""
        kind, column, q = self.stored["kind"], self.stored["column"], self.stored["q"]
        if kind != "quantile":
            return f"{kind}({column})"
        return f"median({column})" if q == 0.5 else f"quantile({column}, {_shortest(q)})"


class Count(Aggregate):
    """The number of rows, or with ignore_nulls of those in which a column has a value."""

    def __init__(self, on=None, ignore_nulls=False, alias_name=None):
        super().__init__("count", on, alias_name, column=on if ignore_nulls else "")


class Sum(Aggregate):
    """The sum; None without values, and for a column with nulls unless ignore_nulls."""

    def __init__(self, on, ignore_nulls=True, alias_name=None):
        super().__init__("sum", on, alias_name, ignore_nulls=ignore_nulls)


class Min(Aggregate):
    """The least value; see Sum."""

    def __init__(self, on, ignore_nulls=True, alias_name=None):
        super().__init__("min", on, alias_name, ignore_nulls=ignore_nulls)


class Max(Aggregate):
    """The greatest value; see Sum."""

    def __init__(self, on, ignore_nulls=True, alias_name=None):
        super().__init__("max", on, alias_name, ignore_nulls=ignore_nulls)


class Mean(Aggregate):
    """The mean; see Sum."""

    def __init__(self, on, ignore_nulls=True, alias_name=None):
        super().__init__("mean", on, alias_name, ignore_nulls=ignore_nulls)


class Std(Aggregate):
    """The standard deviation; see Sum. ddof: it divides by the number of values minus this."""

    def __init__(self, on, ddof=1, ignore_nulls=True, alias_name=None):
        super().__init__("std", on, alias_name, ddof=ddof, ignore_nulls=ignore_nulls)


class Quantile(Aggregate):
    """A quantile, interpolated between the two values around it; q: from 0 to 1, 0.5 is the median. See Sum."""

    def __init__(self, on, q=0.5, ignore_nulls=True, alias_name=None):
        super().__init__("quantile", on, alias_name, q=q, ignore_nulls=ignore_nulls)


class CountDistinct(Aggregate):
    """The number of different values, without null."""

    def __init__(self, on, ignore_nulls=True, alias_name=None):
        super().__init__("count_distinct", on, alias_name, ignore_nulls=ignore_nulls)


def of_columns(aggregates, where):
    """Returns the aggregates. Raises TypeError for what is none, ValueError for two results of one name."""
    for one in aggregates:
        if not isinstance(one, Aggregate):
            raise TypeError(f"{where}: {one!r} is no aggregate; those of cadre.data.aggregate are")
    names = [one.name for one in aggregates]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{where}: two results are called {', '.join(twice)}; give one of them an alias_name")
    return list(aggregates)


def options_of(aggregates, where):
    """Returns the options that the aggregates have, as the core takes them. Raises InvalidArgument for different ones."""
    chosen = {"ignore_nulls": {one.ignore_nulls for one in aggregates if one.stored["kind"] != "count"},
              "ddof": {one.ddof for one in aggregates if one.stored["kind"] == "std"}}
    for name, values in chosen.items():
        if len(values) > 1:
            raise _core.InvalidArgument(f"{where}: {name} differs among the aggregates; compute them by two calls")
    return {name: values.pop() for name, values in chosen.items() if values}


def _shortest(number):
    text = repr(number)
    return text[:-2] if text.endswith(".0") else text
