"""A team's policy for the check: ``[ci]`` in ``asap.toml``, or ``[tool.asap.ci]`` in ``pyproject.toml``.

The file is read at the base commit, so a pull request cannot change the rules it is checked by.
"""

import difflib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError

from asap.ci.report import ConfigurationReport, Level, PolicyFinding, PredictionSummary, Rule
from asap.ci.source.revision import Revision
from asap.core.errors import ConfigError
from asap.core.numbers import parse_toml
from asap.core.units import PERCENT, change_interval, format_bytes, format_odds, significant
from asap.experiments.files.documents import read_text, validation_reason
from asap.experiments.logs.read import SUFFIXES as LOGS
from asap.experiments.shell import SCRIPTS

DEFAULT_CONFIGURATIONS = ("*.yml", "*.yaml", "*.toml", "*.json", *(f"*{suffix}" for suffix in (*SCRIPTS, *LOGS)))
POLICY_FILES = ("asap.toml", "pyproject.toml")
Action = Literal["fail", "warn", "ignore"]

_Value = TypeVar("_Value")


class Prices(BaseModel):
    """Price per chip-hour, by chip."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    currency: str = Field(default="USD", max_length=8)
    chips: dict[str, PositiveFloat] = {}


class Budget(BaseModel):
    """Limits that the predicted value of a changed configuration must not exceed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    money_per_day: PositiveFloat | None = None
    chip_hours_per_billion_tokens: PositiveFloat | None = None
    action: Action = "fail"


class Policy(BaseModel):
    """Which files are checked, what is known about them, and what fails the check."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    configurations: tuple[str, ...] = Field(
        default=(), description="patterns; by default every file that looks like one"
    )
    ignore: tuple[str, ...] = ()
    invalid: Action = "fail"
    out_of_memory: Action = "fail"
    regression: Action = "warn"
    regression_percent: float = Field(default=5.0, ge=0, description="of chip-seconds per token")
    repeated_failure: Action = "warn"
    budget: Budget = Budget()
    hardware: dict[str, str] = Field(default={}, description="pattern → v5e-256")
    experiments: dict[str, str] = Field(default={}, description="pattern → experiment ID")
    prices: Prices = Prices()

    def covers(self, path: str) -> bool:
        """Whether a path is checked; a policy never is."""
        wanted = self.configurations or DEFAULT_CONFIGURATIONS
        return any(matches(path, pattern) for pattern in wanted) and not any(
            matches(path, p) for p in (*self.ignore, *POLICY_FILES)
        )

    def hardware_of(self, path: str) -> str | None:
        """The hardware that the policy names for a configuration."""
        return _first(self.hardware, path)

    def experiment_of(self, path: str) -> str | None:
        """The experiment that the policy names for a configuration."""
        return _first(self.experiments, path)


def matches(path: str, pattern: str) -> bool:
    """Whether a path matches ``configs/**/*.yml``: ``**/`` also stands for no folder at all."""
    shorter = pattern.replace("**/", "")
    return fnmatchcase(path, pattern) or fnmatchcase(path, shorter)


def policy_at(revision: Revision) -> Policy:
    """The policy of a commit; the default if it has none.

    Raises:
        ConfigError: it is malformed.
    """
    for path in POLICY_FILES:
        text = revision.text(path)
        if text is not None and (section := _section(text, path)) is not None:
            return _policy(section, path)
    return Policy()


def read_policy(path: Path) -> Policy:
    """The policy of a file; raises like :func:`policy_at`, and NotFoundError if it is not there."""
    section = _section(read_text(path), path.name)
    if section is None:
        raise ConfigError("has no [ci] or [tool.asap.ci] section", where=str(path))
    return _policy(section, str(path))


def read_prices(path: Path) -> Prices:
    """``currency`` and a table ``[chips]`` of prices per chip-hour, as TOML.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it is malformed.
    """
    try:
        return Prices.model_validate(parse_toml(read_text(path), str(path)))
    except ValidationError as error:
        raise ConfigError(validation_reason(error), where=str(path)) from error


def _section(text: str, path: str) -> Any:
    document = parse_toml(text, path)
    if Path(path).name == "pyproject.toml":
        tool = document.get("tool")
        document = tool.get("asap") if isinstance(tool, dict) else None
    return document.get("ci") if isinstance(document, dict) else None


def _policy(section: Any, path: str) -> Policy:
    try:
        return Policy.model_validate(section)
    except ValidationError as error:
        where = f"{path} [ci]"
        field = str(error.errors()[0]["loc"][-1]) if error.errors()[0]["loc"] else ""
        near = difflib.get_close_matches(field, Policy.model_fields, n=1)
        hint = f"did you mean {near[0]}?" if near and near[0] != field else None
        raise ConfigError(validation_reason(error), where=where, hint=hint) from error


def _first(table: dict[str, _Value], path: str) -> _Value | None:
    return next((value for pattern, value in table.items() if matches(path, pattern)), None)


_LEVELS: dict[Action, Level] = {"fail": "error", "warn": "warning"}


def policy_findings(report: ConfigurationReport, policy: Policy) -> list[PolicyFinding]:
    """Findings, worst first; a deleted configuration has none."""
    side = report.after
    if side is None:
        return []
    predicted = side.prediction or PredictionSummary()
    problem = side.problem if report.before is None or report.before.problem is None else None  # by this change
    rules: list[tuple[Rule, Action, str]] = [
        ("invalid", policy.invalid, problem or "; ".join(side.violations)),
        ("out_of_memory", _at_risk(policy.out_of_memory, predicted), _out_of_memory(predicted)),
        ("budget", policy.budget.action, _over_budget(predicted, policy)),
        ("regression", policy.regression, _regression(report, policy)),
        ("repeated_failure", policy.repeated_failure, _repeated_failure(report)),
    ]
    found = [
        PolicyFinding(level=_LEVELS[action], rule=rule, message=message[:600], path=report.path, line=report.line)
        for rule, action, message in rules
        if message and action in _LEVELS
    ]
    return sorted(found, key=lambda finding: finding.level)


def _at_risk(action: Action, prediction: PredictionSummary) -> Action:
    """What may fit is warned of where what does not fails."""
    return "warn" if action == "fail" and prediction.fit == "may not fit" else action


def _out_of_memory(prediction: PredictionSummary) -> str:
    if prediction.fit in (None, "fits") or prediction.hbm is None:
        return ""
    needed, capacity = format_bytes(prediction.hbm.value), format_bytes(prediction.hbm_capacity or 0)
    odds = f", {format_odds(prediction.fits_odds)} likely to fit" if prediction.fits_odds is not None else ""
    return f"is predicted to need {needed} of HBM per device, which has {capacity}{odds}"


def _regression(report: ConfigurationReport, policy: Policy) -> str:
    """Only if the whole interval is a loss."""
    cost = report.relative_cost
    if cost is None or cost.low is None or cost.low <= 1 or (cost.value - 1) * PERCENT < policy.regression_percent:
        return ""
    return f"is predicted to change chip time per token by {change_interval(cost.value, cost.low, cost.high)}"


def _over_budget(prediction: PredictionSummary, policy: Policy) -> str:
    limits = [
        ("per day", prediction.money_per_day, policy.budget.money_per_day, policy.prices.currency),
        ("per 10⁹ tokens", prediction.chip_hours, policy.budget.chip_hours_per_billion_tokens, "chip-hours"),
    ]
    return "; ".join(
        f"is predicted to cost {significant(quantity.value)} {unit} {what}; the budget is {significant(limit)}"
        for what, quantity, limit, unit in limits
        if quantity is not None and limit is not None and quantity.value > limit
    )


def _repeated_failure(report: ConfigurationReport) -> str:
    precedent = report.precedent
    if precedent is None or precedent.outcome == "improved":
        return ""
    return f"matches the past failure {precedent.id}. {precedent.supports}"
