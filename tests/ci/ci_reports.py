"""Reports that tests render: one as it should be, one as an attacker would write it."""

from asap.ci.report import (
    CiReport,
    ConfigurationReport,
    PolicyFinding,
    Precedent,
    PredictionSummary,
    SettingChange,
    Side,
    Suggestion,
    SuggestionCitation,
)
from asap.core.units import Provenance, Quantity
from tests.cases import kept

HEAD, BASE = "a" * 40, "b" * 40
EVIL = kept(__file__)["EVIL"]


def quantity(value: float, unit: str = "s") -> Quantity:
    return Quantity(
        value=value, unit=unit, provenance=Provenance.MODELLED, source="x", low=value / 1.3, high=value * 1.3
    )


def configuration(path: str = "configs/a.yml", text: str = "fine", diff: str | None = None) -> ConfigurationReport:
    short = text[:400]
    side = Side(
        plan=short,
        model=short,
        batch=short,
        hardware=short,
        violations=(short,),
        prediction=PredictionSummary(
            step_time=quantity(30), tokens_per_second=quantity(1e5, "tokens/s"), mfu=quantity(0.4, "fraction"),
            hbm=quantity(3e10, "bytes"), hbm_capacity=1e11, fit="fits", chip_hours=quantity(500, "chip-hours"),
        ),
        unpredicted=short,
    )  # fmt: skip
    suggestion = Suggestion(
        title=short, plan=short, relative_step_time=quantity(0.9, "fraction"), hbm=quantity(3e10, "bytes"),
        faster=0.8, reasons=(short,) * 5, trade_offs=(short,) * 5,
        citations=(SuggestionCitation(kind="principle", id=short, title=short),), overrides=short, diff=diff,
    )  # fmt: skip
    return ConfigurationReport(
        path=path, previous_path=short, status="modified", line=3, experiment=short, before=side, after=side,
        changes=(SettingChange(what=short, before=short, after=short),), relative_cost=quantity(1.2, "fraction"),
        precedent=Precedent(id=short, title=short, outcome="slower", supports=short), suggestions=(suggestion,) * 3,
        recommendation=short, notes=(short,),
    )  # fmt: skip


def report(*configurations: ConfigurationReport, text: str = "is slow") -> CiReport:
    findings = tuple(
        PolicyFinding(level="error", rule="regression", message=text, path=one.path, line=3)
        for one in configurations[:1]
    )
    return CiReport(version="0.1.0", base=BASE, head=HEAD, configurations=configurations, findings=findings)
