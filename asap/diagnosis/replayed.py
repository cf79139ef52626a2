"""What a replay adds to a diagnosis: what lies on the critical path, and what a step would take without it."""

from collections.abc import Mapping

from asap.core.units import format_percent, format_seconds
from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts
from asap.traces.analysis.report import ReplayReport

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


def with_path(finding: Finding, facts: Facts) -> Finding:
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
    shown = [f"{format_percent(share)} {name}" for name, share in _leading(replay).items()]
    sentences = [f"The critical path of the replay is {', '.join(shown)}."] if shown else []
    change, name = _WITHOUT.get(chosen, ("", ""))
    for each in replay.shortened_by:
        if each.change == change:
            times = format_seconds(each.step_time_s), format_seconds(replay.step_time_s.replayed_s)
            sentences.append(f"Without {name} a step of the replay takes {times[0]} instead of {times[1]}.")
    return tuple(sentences)


def _leading(replay: ReplayReport) -> Mapping[str, float]:
    shares = replay.critical_path_shares.items()
    return {name: share for name, share in shares if share >= STEP_TIME_VARIATION}
