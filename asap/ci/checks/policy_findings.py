"""Where a configuration violates the policy."""

from asap.ci.report import ConfigurationReport, Level, PolicyFinding, Rule
from asap.ci.source.policy import Action, Policy
from asap.core.units import PERCENT, format_bytes, significant

_LEVELS: dict[Action, Level] = {"fail": "error", "warn": "warning"}


def policy_findings(report: ConfigurationReport, policy: Policy) -> list[PolicyFinding]:
    """Findings, worst first; a deleted configuration has none."""
    side = report.after
    if side is None:
        return []
    rules: list[tuple[Rule, Action, str]] = [
        ("invalid", policy.invalid, side.problem or "; ".join(side.violations)),
        ("out_of_memory", policy.out_of_memory, _out_of_memory(report)),
        ("budget", policy.budget.action, _over_budget(report, policy)),
        ("regression", policy.regression, _regression(report, policy)),
        ("repeated_failure", policy.repeated_failure, _repeated_failure(report)),
    ]
    found = [
        PolicyFinding(level=_LEVELS[action], rule=rule, message=message[:600], path=report.path, line=report.line)
        for rule, action, message in rules
        if message and action in _LEVELS
    ]
    return sorted(found, key=lambda finding: finding.level)


def _out_of_memory(report: ConfigurationReport) -> str:
    prediction = report.after.prediction if report.after else None
    if prediction is None or prediction.fits is not False or prediction.hbm is None:
        return ""
    needed, capacity = format_bytes(prediction.hbm.value), format_bytes(prediction.hbm_capacity or 0)
    return f"is predicted to need {needed} of HBM per device, which has {capacity}"


def _regression(report: ConfigurationReport, policy: Policy) -> str:
    """Only if the whole interval is a loss."""
    cost = report.relative_cost
    if cost is None or cost.low is None or cost.low <= 1 or (cost.value - 1) * PERCENT < policy.regression_percent:
        return ""
    low, high = (cost.low - 1) * PERCENT, ((cost.high or cost.value) - 1) * PERCENT
    return (
        f"is predicted to cost {(cost.value - 1) * PERCENT:.1f} % more chip time per token ({low:.0f} to {high:.0f} %)"
    )


def _over_budget(report: ConfigurationReport, policy: Policy) -> str:
    prediction = report.after.prediction if report.after else None
    if prediction is None:
        return ""
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
