"""What a shell offers when a key completes a word: experiments, sessions, the axes of a plan."""

from collections.abc import Iterator


def experiments(incomplete: str) -> Iterator[str]:
    """IDs of experiments."""
    from asap.experiments import ExperimentStore

    yield from (name for name in ExperimentStore().ids() if name.startswith(incomplete))


def session_names(incomplete: str) -> Iterator[str]:
    """Names of sessions, the newest first."""
    from asap.sharding_memory import sessions

    yield from (name for name in reversed(sessions()) if name.startswith(incomplete))


def plan_terms(incomplete: str) -> Iterator[str]:
    """The next axis or setting of a plan, behind what is typed: ``data=8 mo`` → ``data=8 model=``."""
    from asap.plans.axes import AXES
    from asap.plans.plan import SETTINGS

    *typed, last = incomplete.split(" ")
    used = {term.partition("=")[0] for term in typed}
    for term in (*AXES, *SETTINGS):
        if term.startswith(last) and term not in used:
            yield " ".join([*typed, f"{term}="])
