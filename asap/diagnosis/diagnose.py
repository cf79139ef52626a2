"""Choose the bottleneck: the resource that takes the most time, once KPIs and operations agree."""

from collections.abc import Mapping

from asap.core.text import plain
from asap.core.units import format_percent, format_seconds
from asap.diagnosis.catalogue import causes_of
from asap.diagnosis.diagnosis import Bottleneck, Cause, Diagnosis, Evidence, Finding
from asap.diagnosis.facts import LEADING, STEP_TIME_VARIATION, STREAMING, Facts, Shares, mean_efficiency, shares_of
from asap.diagnosis.findings import RULES
from asap.hardware.chip import Chip
from asap.plans import Plan
from asap.profiles import Gap, Profile
from asap.profiles.kpis import NO_PROFILE
from asap.stacks.launchers import Stack
from asap.stacks.registry import capture_of, contracts
from asap.traces.analysis.report import ReplayReport

_BY_HAND = "torch.profiler around a few steps"


def no_profile(stack: Stack | None, settings: Mapping[str, object] | None, chip: Chip | None) -> Gap:
    """What a run without a profile lacks, and what its stack can capture, in the version that takes its settings."""
    is_jax = contracts()[stack].kin == "jax" if stack else chip is None or chip.kind != "gpu"
    capture = capture_of(stack, settings or {}) if stack else ""
    return NO_PROFILE.model_copy(update={"capture": capture or (NO_PROFILE.capture if is_jax else _BY_HAND)})


_CATEGORIES: Mapping[Bottleneck, tuple[str, ...]] = {
    Bottleneck.COMPUTE: ("compute",),
    Bottleneck.HBM: ("compute",),
    Bottleneck.COMMUNICATION: ("communication",),
    Bottleneck.HOST_TRANSFER: ("copy",),
    Bottleneck.HOST: ("host", "launch"),
    Bottleneck.IDLE: ("pause",),
}
"""What a finding is about, in the categories of the critical path: the path does not tell what bounds a kernel."""

_WITHOUT: Mapping[Bottleneck, tuple[str, str]] = {
    Bottleneck.COMMUNICATION: ("remove:communication", "communication"),
    Bottleneck.HOST_TRANSFER: ("remove:copy", "copies"),
    Bottleneck.HOST: ("remove:host", "host time"),
}
"""The change that takes away what holds a run back, and its name."""


def add_path_share(finding: Finding, facts: Facts) -> Finding:
    """The finding with its share of the critical path as evidence."""
    if facts.replay is None or finding.share is None or finding.kind not in _CATEGORIES:
        return finding
    share = sum(facts.replay.critical_path_shares.get(category, 0.0) for category in _CATEGORIES[finding.kind])
    evidence = Evidence(fact="share of the critical path", quantity=facts.replayed(share))
    return finding.model_copy(update={"evidence": (*finding.evidence, evidence)})


def path_sentences(facts: Facts, chosen: Bottleneck) -> tuple[str, ...]:
    """What decides the step by the replay, and what a step would take without what holds it back."""
    replay = facts.replay
    if replay is None:
        return ()
    leading = {name: share for name, share in replay.critical_path_shares.items() if share >= STEP_TIME_VARIATION}
    shown = [f"{format_percent(share)} {name}" for name, share in leading.items()]
    sentences = [f"The critical path of the replay is {', '.join(shown)}."] if shown else []
    change, name = _WITHOUT.get(chosen, ("", ""))
    for each in replay.shortened_by:
        if each.change == change:
            times = format_seconds(each.step_time_s), format_seconds(replay.step_time_s.replayed_s)
            sentences.append(f"Without {name} a step of the replay takes {times[0]} instead of {times[1]}.")
    return tuple(sentences)


_MOSTLY_OPAQUE = 0.5
"""Share of the time from which opaque operations are the bottleneck: the rest cannot outweigh them."""


def diagnose(
    profile: Profile | None,
    plan: Plan | None = None,
    chip: Chip | None = None,
    stack: Stack | None = None,
    replay: ReplayReport | None = None,
    settings: Mapping[str, object] | None = None,
) -> Diagnosis:
    """Name what holds a run back.

    Args:
        profile: its facts; ``None`` if there is no profile.
        plan: the plan that it ran, if known.
        chip: what it ran on, if known.
        stack: what launched it, if known: advice is in its words.
        replay: of what was recorded, if it was; one that leaves much unexplained says nothing.
        settings: of the run's configuration, which tell the version of its stack.
    """
    if profile is None:
        return _insufficient("there is no profile of this run", (no_profile(stack, settings, chip),), ())
    facts = Facts(profile, shares_of(profile, chip), plan, chip, stack, replay)
    findings = sorted(
        (finding for rule in RULES if (finding := rule(facts))),
        key=lambda finding: -(finding.share or 0.0),
    )
    chosen = _bottleneck(findings, facts.shares)
    if chosen is None:
        missing = profile.gaps or (no_profile(stack, settings, chip),)
        return _insufficient(_missing_evidence(facts), missing, tuple(findings), causes_of(facts))
    findings = [add_path_share(finding, facts) for finding in (chosen, *(f for f in findings if f is not chosen))]
    return Diagnosis(
        bottleneck=chosen.kind,
        statement=chosen.statement,
        coverage=facts.shares.coverage,
        partial=facts.shares.partial,
        findings=tuple(findings),
        causes=causes_of(facts),
        correlation=_correlations(facts, chosen),
        missing=profile.gaps,
    )


def _bottleneck(findings: list[Finding], shares: Shares) -> Finding | None:
    timed = [finding for finding in findings if finding.share is not None]
    known = [finding for finding in timed if finding.kind is not Bottleneck.OPAQUE]
    opaque = [f for f in timed if f.kind is Bottleneck.OPAQUE and (f.share or 0.0) > _MOSTLY_OPAQUE]
    leading = max(opaque or known, key=lambda finding: finding.share or 0.0, default=None)
    if leading is not None and (leading.share or 0.0) >= shares.relative("unknown"):
        return leading
    full = (finding for finding in findings if finding.kind is Bottleneck.MEMORY_CAPACITY)
    return next(full, None)


def _correlations(facts: Facts, chosen: Finding) -> tuple[str, ...]:
    kpis, shares = facts.profile.kpis, facts.shares
    sentences = []
    if kpis.duty_cycle is not None:
        sentences.append(_duty_cycle_sentence(kpis.duty_cycle, chosen.kind, facts))
    if shares.partial:
        sentences.append(
            f"Only the leading operations are known: {format_percent(shares.coverage)} of the step. "
            "Their shares compare with each other and do not add up to the step."
        )
    if kpis.communication is not None and chosen.kind is not Bottleneck.COMMUNICATION:
        sentences.append(f"Collectives take {format_percent(kpis.communication)} of the time by the KPIs.")
    waiting = sum(op.fraction for op in facts.profile.operations if op.collective_wait)
    if waiting and shares.coverage:
        sentences.append(f"{format_percent(waiting)} of the time waits in the -done half of asynchronous collectives.")
    return (*sentences, *path_sentences(facts, chosen.kind))


def _duty_cycle_sentence(duty: float, kind: Bottleneck, facts: Facts) -> str:
    reading = {
        Bottleneck.COMPUTE: _useful_work(mean_efficiency(facts.shares.operations["compute"])),
        Bottleneck.COMMUNICATION: "but collectives count as busy, and they dominate: communication, not compute",
        Bottleneck.HBM: "but the leading operations wait for HBM: busy is not the same as efficient",
        Bottleneck.IDLE: "so the time is lost between operations, not in them",
        Bottleneck.HOST_TRANSFER: "but waiting for copies with the host counts as busy",
        Bottleneck.HOST: "so the device waits for the host",
    }
    return f"The duty cycle is {format_percent(duty)}, {reading.get(kind, 'which alone does not tell the bottleneck')}."


def _useful_work(efficiency: float | None) -> str:
    """Busy is not efficient: what compute-bound operations reach of their roofline says which it is."""
    if efficiency is None:
        return "and the leading operations are bound by compute; how near its peak is not known"
    reached = f"the leading operations are bound by compute and reach {format_percent(efficiency)} of their roofline"
    return f"and {reached}: it is busy with useful work" if efficiency >= STREAMING else f"but {reached}"


def _missing_evidence(facts: Facts) -> str:
    unknown = sorted(facts.shares.operations["unknown"], key=lambda op: -op.fraction)[:LEADING]
    named = ", ".join(f"{plain(op.name, 40)} {format_percent(op.fraction)}" for op in unknown)
    known = f"most of the time lies in operations whose bound is unknown ({named})"
    return known if facts.profile.operations else "the profile holds no device operations"


def _insufficient(
    reason: str, missing: tuple[Gap, ...], findings: tuple[Finding, ...], causes: tuple[Cause, ...] = ()
) -> Diagnosis:
    finding = Finding(
        rule="insufficient_evidence",
        kind=Bottleneck.INSUFFICIENT_EVIDENCE,
        statement=f"{reason[0].upper()}{reason[1:]}: no bottleneck can be measured.",
        advice=next((gap.capture for gap in missing if gap.capture), NO_PROFILE.capture),
    )
    return Diagnosis(
        bottleneck=Bottleneck.INSUFFICIENT_EVIDENCE,
        statement=finding.statement,
        coverage=None,
        findings=(finding, *findings),
        causes=causes,
        missing=missing,
    )
