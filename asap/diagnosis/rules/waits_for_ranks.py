"""Rules: collectives that wait for a rank that comes late, and stages of a pipeline that wait for each other."""

from statistics import fmean

from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts


def waits_for_ranks(facts: Facts) -> Finding | None:
    """Time in collectives in which nothing is sent yet. It takes the traces of several ranks to see it."""
    replay = facts.replay
    if replay is None or not replay.stragglers:
        return None
    parts = [rank.measured_breakdown for rank in replay.ranks]
    share = fmean(((part.waiting_s or 0.0) - (part.bubble_s or 0.0)) / part.window_s for part in parts)
    if share < STEP_TIME_VARIATION:
        return None
    late = replay.stragglers[0]
    last = f"rank {late.rank} comes last to {late.last} of {replay.matched_collectives}"
    return Finding(
        rule="waits_for_ranks",
        kind=Bottleneck.COMMUNICATION,
        statement=f"{format_percent(share)} of the time waits in collectives for ranks that come late; {last}.",
        share=share,
        evidence=(Evidence(fact="waiting for other ranks", quantity=facts.replayed(share)),),
        advice="even out the work of the ranks first: neither a faster network nor another plan shortens this",
    )


def pipeline_bubble(facts: Facts) -> Finding | None:
    """Time in transfers between stages before the other stage has come."""
    if facts.replay is None:
        return None
    share = fmean(
        (part.bubble_s or 0.0) / part.window_s for part in (rank.measured_breakdown for rank in facts.replay.ranks)
    )
    if share < STEP_TIME_VARIATION:
        return None
    return Finding(
        rule="pipeline_bubble",
        kind=Bottleneck.COMMUNICATION,
        statement=f"{format_percent(share)} of the time is the bubble of the pipeline: stages wait for each other.",
        share=share,
        evidence=(Evidence(fact="pipeline bubble", quantity=facts.replayed(share)),),
        advice="more microbatches, interleaved stages or fewer stages shrink it; a faster network does not",
    )
