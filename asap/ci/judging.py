"""What the policy says about a configuration."""

from asap.ci.policy import Action, Policy
from asap.ci.report import ConfigurationReport, Finding, Level, Rule
from asap.core.units import PERCENT, format_bytes, significant

_LEVELS: dict[Action, Level] = {"fail": "error", "warn": "warning"}


def judge(report: ConfigurationReport, policy: Policy) -> list[Finding]:
    """Findings, the worst first; a configuration that is gone has none."""
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
        Finding(level=_LEVELS[action], rule=rule, message=message[:600], path=report.path, line=report.line)
        for rule, action, message in rules
        if message and action in _LEVELS
    ]
    return sorted(found, key=lambda finding: finding.level)


def _out_of_memory(report: ConfigurationReport) -> str:
    expectation = report.after.expectation if report.after else None
    if expectation is None or expectation.fits is not False or expectation.hbm is None:
        return ""
    needed, capacity = format_bytes(expectation.hbm.value), format_bytes(expectation.hbm_capacity or 0)
    return f"is predicted to need {needed} of HBM a device, which has {capacity}"


def _regression(report: ConfigurationReport, policy: Policy) -> str:
    """Said only where the whole interval is a loss."""
    cost = report.relative_cost
    if cost is None or cost.low is None or cost.low <= 1 or (cost.value - 1) * PERCENT < policy.regression_percent:
        return ""
    low, high = (cost.low - 1) * PERCENT, ((cost.high or cost.value) - 1) * PERCENT
    return f"is predicted to cost {(cost.value - 1) * PERCENT:.1f} % more chip time a token ({low:.0f} to {high:.0f} %)"


def _over_budget(report: ConfigurationReport, policy: Policy) -> str:
    expectation = report.after.expectation if report.after else None
    if expectation is None:
        return ""
    limits = [
        ("a day", expectation.money_per_day, policy.budget.money_per_day, policy.prices.currency),
        ("for 10⁹ tokens", expectation.chip_hours, policy.budget.chip_hours_per_billion_tokens, "chip-hours"),
    ]
    return "; ".join(
        f"costs {significant(quantity.value)} {unit} {what}, and the budget is {significant(limit)}"
        for what, quantity, limit, unit in limits
        if quantity is not None and limit is not None and quantity.value > limit
    )


def _repeated_failure(report: ConfigurationReport) -> str:
    precedent = report.precedent
    if precedent is None or precedent.outcome == "improved":
        return ""
    return f"goes the way of {precedent.id}. {precedent.supports}"
