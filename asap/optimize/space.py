"""A search space of the user's own: settings of any program, with ranges, conditions and constraints, from TOML."""

import ast
import operator
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from asap.core.errors import ConfigError
from asap.core.numbers import parse_toml
from asap.core.text import plain
from asap.experiments.files.documents import read_text
from asap.optimize.outcome import Configuration

if TYPE_CHECKING:
    import optuna

Scalar = bool | int | float | str
Values = Mapping[str, Scalar]
MOST_COUNTED = 100_000
"""Choices of a space beyond which its configurations are not counted. Judgement: only what is printed."""
_PLACES = {"overrides", "without", "plan", "try", "folder", "config"}
_OPERATORS: Mapping[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg, ast.Not: operator.not_,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda value, many: value in many, ast.NotIn: lambda value, many: value not in many,
}  # fmt: skip


class Setting(BaseModel):
    """One setting: its values, or a range."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    values: tuple[Scalar, ...] = ()
    low: int | float | None = None
    high: int | float | None = None
    step: int | float | None = Field(default=None, gt=0, description="between values of a range")
    log: bool = Field(default=False, description="a range by its logarithm")
    when: str | None = Field(default=None, description="it has a value only where this holds of settings above it")
    environment: bool = Field(default=False, description="an environment variable")
    now: Scalar | None = Field(default=None, description="value of what runs now")

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.values) == (self.low is not None and self.high is not None):
            raise ValueError("either values, or low and high")
        if self.low is not None and self.high is not None:
            if not self.low < self.high or (self.log and self.low <= 0):
                raise ValueError("low has to be below high, and above 0 with log")
            if self.log and self.step is not None:
                raise ValueError("a range by its logarithm has no step")
        if self.now is not None and not self.takes(self.now):
            raise ValueError(f"now is {self.now!r}, which it cannot be")
        return self

    @property
    def whole(self) -> bool:
        """Whether a range has whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int) and not isinstance(self.step, float)

    @property
    def options(self) -> tuple[Scalar, ...] | None:
        """All values; ``None`` where they are not counted."""
        if self.values:
            return self.values
        assert self.low is not None
        assert self.high is not None
        if not self.whole or (self.high - self.low) // (self.step or 1) >= MOST_COUNTED:
            return None
        return tuple(range(int(self.low), int(self.high) + 1, int(self.step or 1)))

    def takes(self, value: Scalar) -> bool:
        """Whether it may have a value."""
        options = self.options
        if options is not None:
            return any(value == each and type(value) is type(each) for each in options)
        if isinstance(value, bool | str):
            return False
        return (self.low or 0) <= value <= (self.high or 0)

    @property
    def distribution(self) -> "optuna.distributions.BaseDistribution":
        """As Optuna has it; values by their texts."""
        from optuna import distributions

        if self.values:
            return distributions.CategoricalDistribution([written(value) for value in self.values])
        assert self.low is not None
        assert self.high is not None
        if self.whole:
            return distributions.IntDistribution(int(self.low), int(self.high), self.log, int(self.step or 1))
        return distributions.FloatDistribution(self.low, self.high, self.log, self.step)

    def drawn(self, trial: "optuna.Trial", name: str) -> Scalar:
        """A value that Optuna draws; of a range without steps with four significant digits."""
        if self.values:
            return self.read(trial.suggest_categorical(name, [written(value) for value in self.values]))
        assert self.low is not None
        assert self.high is not None
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), step=int(self.step or 1), log=self.log)
        value = trial.suggest_float(name, self.low, self.high, step=self.step, log=self.log)
        return min(max(float(f"{value:.4g}"), float(self.low)), float(self.high))

    def told(self, value: Scalar) -> Scalar:
        """A value as Optuna is told it."""
        return written(value) if self.values else value

    def read(self, text: str) -> Scalar:
        """The value that a text says.

        Raises:
            ValueError: it has no such value.
        """
        if self.values:
            return next(value for value in self.values if written(value) == text)
        return int(text) if self.whole else float(text)


class Space(BaseModel):
    """All settings, and what has to hold between them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(default="space", description="of the file")
    settings: dict[str, Setting] = Field(min_length=1, max_length=200)
    constraints: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        above = set[str]()
        for name, setting in self.settings.items():
            if not name or name in _PLACES or any(mark in name for mark in " ={}'\"\\\n"):
                raise ValueError(f"{name!r} cannot be the name of a setting")
            if setting.environment and not name.isidentifier():
                raise ValueError(f"{name!r} cannot be an environment variable")
            if setting.when is not None:
                _require_known(setting.when, above)
            above.add(name)
        for constraint in self.constraints:
            _require_known(constraint, above)
        return self

    def active(self, name: str, values: Values) -> bool:
        """Whether a setting has a value, given those above it."""
        when = self.settings[name].when
        return when is None or _holds(when, values) is True

    def broken(self, values: Values) -> str | None:
        """The first constraint that does not hold; of settings without a value nothing is asked."""
        return next((each for each in self.constraints if _holds(each, values) is False), None)

    def text(self, values: Values) -> Configuration:
        """The values in one line: ``micro=4 lr=0.001``."""
        return shlex.join(f"{name}={written(values[name])}" for name in self.settings if name in values)

    def read(self, text: Configuration) -> dict[str, Scalar]:
        """The values that a line says.

        Raises:
            ConfigError: a setting, a value, a condition or a constraint is against it.
        """
        values = dict[str, Scalar]()
        try:
            said = dict(word.split("=", 1) for word in shlex.split(text))
            for name in said.keys() - self.settings.keys():
                raise ConfigError(f"there is no setting {plain(name, 40)}")
            for name, setting in self.settings.items():
                if self.active(name, values) != (name in said):
                    raise ConfigError(f"{name} has {'no' if name in said else 'a'} value here")
                if name in said:
                    values[name] = setting.read(said[name])
                    if not setting.takes(values[name]):
                        raise ValueError
        except (ValueError, StopIteration) as error:
            raise ConfigError(f"{plain(text, 120)!r} is no configuration of the space") from error
        if constraint := self.broken(values):
            raise ConfigError(f"{plain(constraint, 120)} does not hold")
        return values

    @cached_property
    def now(self) -> Configuration | None:
        """What runs now; ``None`` where the file does not say it."""
        values = dict[str, Scalar]()
        for name, setting in self.settings.items():
            if self.active(name, values):
                if setting.now is None:
                    return None
                values[name] = setting.now
        return self.text(values)


def written(value: Scalar) -> str:
    """A value as a command takes it: ``true``, ``4``, ``0.001``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_space(path: Path) -> Space:
    """The space of a TOML file.

    Raises:
        BadInputError: the file cannot be read.
        ConfigError: it is malformed.
    """
    document = parse_toml(read_text(path), str(path))
    try:
        space = Space.model_validate({**document, "name": path.stem})
    except (ValidationError, RecursionError) as error:
        too_deep = {"loc": (), "msg": "it is nested too deeply"}
        said = error.errors()[0] if isinstance(error, ValidationError) else too_deep
        message = said["msg"].removeprefix("Value error, ")
        raise ConfigError(plain(": ".join([*map(str, said["loc"]), message]), 300), where=str(path)) from error
    try:
        space.read(space.now or "")
    except ConfigError as error:
        if space.now is not None:
            raise ConfigError(f"what runs now: {error.message}", where=str(path)) from error
    return space


_ALLOWED = (
    ast.BoolOp, ast.boolop, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Name, ast.Attribute, ast.Load, ast.Constant,
    ast.Tuple, ast.List, *_OPERATORS,
)  # fmt: skip


@lru_cache(maxsize=1000)
def _parsed(text: str) -> ast.expr:
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text!r} is no expression") from error
    if not all(isinstance(node, _ALLOWED) for node in ast.walk(tree)):
        raise ValueError(f"{text!r} has more than settings, values, arithmetic, comparisons, and, or, not")
    return tree


def _require_known(text: str, known: set[str]) -> None:
    for name in _names(_parsed(text)):
        if name not in known:
            raise ValueError(f"{text!r} names {name}, which is no setting above it")


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute):
        yield ast.unparse(node)
        return
    for child in ast.iter_child_nodes(node):
        yield from _names(child)


def _holds(text: str, values: Values) -> bool | None:
    """Whether an expression holds; ``None`` where it names a setting without a value."""
    try:
        return bool(_value(_parsed(text), values))
    except KeyError:
        return None
    except (TypeError, ArithmeticError) as error:
        raise ConfigError(f"{plain(text, 120)!r} cannot be computed: {plain(error, 120)}") from error


def _value(node: ast.AST, values: Values) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name() | ast.Attribute():
            return values[ast.unparse(node)]
        case ast.Tuple() | ast.List():
            return [_value(each, values) for each in node.elts]
        case ast.UnaryOp():
            return _OPERATORS[type(node.op)](_value(node.operand, values))
        case ast.BinOp():
            return _OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values))
        case ast.BoolOp():
            return (all if isinstance(node.op, ast.And) else any)(_value(each, values) for each in node.values)
        case ast.Compare():
            sides = [_value(each, values) for each in (node.left, *node.comparators)]
            pairs = zip(node.ops, sides, sides[1:], strict=False)
            return all(_OPERATORS[type(op)](left, right) for op, left, right in pairs)
        case _:
            raise AssertionError(ast.dump(node))
