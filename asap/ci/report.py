"""The report of a check, as documented JSON: ``asap.ci/3``.

The job that comments reads it from an artifact that a stranger may have written: every text and every list has a
limit, and nothing in it is a link.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from asap.core.units import Quantity
from asap.prediction.prediction import FitVerdict

SCHEMA = "asap.ci/3"
MOST_CONFIGURATIONS = 500

Text = Annotated[str, StringConstraints(max_length=600)]
Lines = Annotated[str, StringConstraints(max_length=8000)]
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
Few = Annotated[tuple[Text, ...], Field(max_length=40)]
Status = Literal["added", "modified", "renamed", "deleted", "affected"]
Level = Literal["error", "warning", "note"]
Rule = Literal["invalid", "out_of_memory", "regression", "budget", "repeated_failure"]

RULES: dict[Rule, str] = {
    "invalid": "The configuration cannot run",
    "out_of_memory": "The plan is predicted not to fit into HBM",
    "regression": "The change is predicted to cost more chip time per token",
    "budget": "The configuration is predicted to exceed a budget",
    "repeated_failure": "The change repeats a known failure",
}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PredictionSummary(_Part):
    """The prediction of a configuration at one commit."""

    step_time: Quantity | None = None
    tokens_per_second: Quantity | None = None
    mfu: Quantity | None = None
    hbm: Quantity | None = None
    hbm_capacity: float | None = Field(default=None, description="bytes per device")
    fit: FitVerdict | None = None
    fits_odds: float | None = Field(default=None, description="probability that it fits, where it is modelled")
    chip_hours: Quantity | None = Field(default=None, description="per 10⁹ tokens")
    money_per_day: Quantity | None = Field(default=None, description="in the unit of the prices")
    money: Quantity | None = Field(default=None, description="per 10⁹ tokens")
    from_profile: bool = Field(
        default=False,
        description="based on the profile of the experiment: anchored to its measured step, or scaled by ratios",
    )


class Side(_Part):
    """A configuration at one commit."""

    plan: Text | None = None
    model: Text | None = None
    batch: Text | None = None
    hardware: Text | None = None
    problem: Text | None = Field(default=None, description="why it cannot be read")
    violations: Few = ()
    prediction: PredictionSummary | None = None
    unpredicted: Text | None = Field(default=None, description="why there is no prediction")


class SettingChange(_Part):
    """One setting that differs."""

    what: Text
    before: Text
    after: Text


class SuggestionCitation(_Part):
    """A source, shown by ``asap knowledge show`` or ``asap history show``."""

    kind: Literal["principle", "precedent"]
    id: Text
    title: Text


class Suggestion(_Part):
    """A proposal for the new configuration."""

    title: Text
    plan: Text
    step_time: Quantity | None = None
    relative_step_time: Quantity | None = Field(default=None, description="over that of the configuration")
    hbm: Quantity | None = None
    faster: float | None = Field(default=None, description="probability")
    reasons: Few
    trade_offs: Few
    citations: Annotated[tuple[SuggestionCitation, ...], Field(max_length=20)]
    overrides: Annotated[str, StringConstraints(max_length=4000)]
    exports: Lines = Field(default="", description="flags for a shell that it needs besides")
    diff: Lines | None = Field(default=None, description="of the file, in the unified format")

    @property
    def lines(self) -> str:
        """All that is to be pasted."""
        return "\n".join(filter(None, (self.exports, self.overrides)))


class Precedent(_Part):
    """A past change of the same kind."""

    id: Text
    title: Text
    outcome: Literal["improved", "slower", "out_of_memory"]
    supports: Text


class ConfigurationReport(_Part):
    """Everything about one configuration."""

    path: Text
    previous_path: Text | None = None
    status: Status
    line: int = Field(default=1, ge=1, description="in the head, that findings point to")
    experiment: Text | None = Field(default=None, description="the experiment that it is linked to")
    before: Side | None = None
    after: Side | None = None
    changes: Annotated[tuple[SettingChange, ...], Field(max_length=40)] = ()
    not_read: Text | None = Field(
        default=None, description="what changed and is not read, where nothing that is read did"
    )
    relative_cost: Quantity | None = Field(default=None, description="chip-seconds per token, after over before")
    precedent: Precedent | None = None
    suggestions: Annotated[tuple[Suggestion, ...], Field(max_length=3)] = ()
    recommendation: Text | None = None
    lines: Lines = Field(default="", description="to paste for the recommendation")
    plans: Annotated[tuple[Few, ...], Field(max_length=5)] = Field(
        default=(), description="names of columns; what runs; the proposals, as in every report"
    )
    why: Few = Field(default=(), description="what holds it back, gain, cost, tests, flags, what is missing")
    notes: Few = ()

    @property
    def not_checked(self) -> str | None:
        """Why nothing is known of what the change does; ``None`` where it was checked."""
        if self.after is None:
            return "it is deleted"
        return self.after.problem or self.after.unpredicted or (self.before and self.before.problem) or self.not_read


class PolicyFinding(_Part):
    """What the policy says about a configuration."""

    level: Level
    rule: Rule
    message: Text
    path: Text
    line: int = Field(default=1, ge=1)


class CiReport(BaseModel):
    """One check of a head against a base."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["asap.ci/3"] = Field(default=SCHEMA, alias="schema")
    version: Text
    base: Commit
    head: Commit
    currency: Annotated[str, StringConstraints(max_length=8)] = "USD"
    configurations: Annotated[tuple[ConfigurationReport, ...], Field(max_length=MOST_CONFIGURATIONS)] = ()
    findings: Annotated[tuple[PolicyFinding, ...], Field(max_length=4 * MOST_CONFIGURATIONS)] = ()
    notes: Few = ()

    @property
    def failed(self) -> bool:
        """Whether the policy fails the check."""
        return any(finding.level == "error" for finding in self.findings)

    def to_json(self) -> str:
        """The report as JSON."""
        return self.model_dump_json(indent=2, by_alias=True, exclude_none=True)
