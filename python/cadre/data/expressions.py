"""Conditions on columns, for Dataset.filter: col("fare") > 10. Those on files are a part of the read."""

from __future__ import annotations

import ast
from typing import Any, Iterable

_COMPARISONS = {ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater",
                ast.GtE: "greater_equal"}


class Expr:
    """A condition, or an operand of one. `&`, `|` and `~` combine conditions. As in SQL, a comparison with null is null,
    and a row whose condition is null is not kept."""

    def __init__(self, stored):
        self._stored = stored

    def _with(self, function, other):
        return Expr({function: [self._stored, _operand(other)._stored]})

    def __eq__(self, other):
        return self._with("equal", other)

    def __ne__(self, other):
        return self._with("not_equal", other)

    def __lt__(self, other) -> Expr:
        return self._with("less", other)

    def __le__(self, other) -> Expr:
        return self._with("less_equal", other)

    def __gt__(self, other) -> Expr:
        return self._with("greater", other)

    def __ge__(self, other) -> Expr:
        return self._with("greater_equal", other)

    def __and__(self, other) -> Expr:
        return self._with("and_kleene", other)

    def __or__(self, other) -> Expr:
        return self._with("or_kleene", other)

    def __invert__(self) -> Expr:
        return Expr({"invert": [self._stored]})

    def is_null(self) -> Expr:
        return Expr({"is_null": [self._stored]})

    def is_not_null(self) -> Expr:
        return ~self.is_null()

    def is_nan(self) -> Expr:
        return Expr({"is_nan": [self._stored]})

    def is_in(self, values: Iterable[Any]) -> Expr:
        """Holds if the value is one of these."""
        return _any_of([self == value for value in values])

    def __bool__(self):
        raise TypeError("a condition on columns is true or false for each row: combine conditions with &, | and ~, not "
                        "with and, or and not")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"Expr({self._stored})"


def col(name: str) -> Expr:
    """Stands for the value of a column in each row."""
    return Expr({"column": name})


def lit(value: Any) -> Expr:
    """A constant: a truth value, a number or a text."""
    if hasattr(value, "item") and hasattr(value, "dtype"):
        value = value.item()
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"{value!r} is compared with a column; truth values, numbers and texts can be")
    return Expr({"value": value})


def parse(text):
    """Returns the condition that a text has: "fare > 10 and city == 'Bern'". Raises ValueError for another text."""
    try:
        return _parsed(ast.parse(text, mode="eval").body)
    except SyntaxError as error:
        raise ValueError(f"filter: {text!r} is no condition: {error}") from None


def _operand(value):
    return value if isinstance(value, Expr) else lit(value)


def _any_of(conditions):
    return _combined(conditions, Expr.__or__) if conditions else lit(False)


def _combined(conditions, combine):
    """Returns conditions combined by Expr.__and__ or Expr.__or__. In pairs, and pairs of these: a plan that is stored has 64
    levels at most, of which a chain needs two for each condition."""
    while len(conditions) > 1:
        pairs = [conditions[at:at + 2] for at in range(0, len(conditions), 2)]
        conditions = [combine(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return conditions[0]


def _parsed(node):
    if isinstance(node, ast.Name):
        return col(node.id)
    if isinstance(node, ast.Constant):
        return lit(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return lit(-node.operand.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
        return ~_parsed(node.operand)
    if isinstance(node, (ast.BoolOp, ast.BinOp)) and isinstance(node.op, (ast.And, ast.Or, ast.BitAnd, ast.BitOr)):
        operands = node.values if isinstance(node, ast.BoolOp) else [node.left, node.right]
        is_and = isinstance(node.op, (ast.And, ast.BitAnd))
        return _combined([_parsed(operand) for operand in operands], Expr.__and__ if is_and else Expr.__or__)
    if isinstance(node, ast.Compare):
        return _comparison(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        functions = {"is_null": Expr.is_null, "is_valid": Expr.is_not_null, "is_not_null": Expr.is_not_null,
                     "is_nan": Expr.is_nan}
        if node.func.id in functions:
            return functions[node.func.id](_parsed(node.args[0]))
    raise ValueError(f"filter: {ast.unparse(node)!r} is no condition: columns, constants, comparisons, in, and, or, not, "
                     "is_null() and is_nan() are")


def _comparison(node):
    whole, left = None, node.left
    for operator, right in zip(node.ops, node.comparators):
        if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(right, (ast.List, ast.Tuple, ast.Set)):
            one = _any_of([_parsed(left) == _parsed(value) for value in right.elts])
            one = ~one if isinstance(operator, ast.NotIn) else one
        elif type(operator) in _COMPARISONS:
            one = Expr({_COMPARISONS[type(operator)]: [_parsed(left)._stored, _parsed(right)._stored]})
        else:
            raise ValueError(f"filter: {ast.unparse(node)!r} is no comparison of columns and constants")
        whole, left = one if whole is None else whole & one, right
    return whole
