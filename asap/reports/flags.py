"""The flags of a run in sentences. Plain text, not escaped."""

from asap.flags import FlagAdvice, FlagReview

_MOST_NAMES = 3


def flag_sentences(review: FlagReview) -> list[str]:
    """What is missing and what does harm, each with its reason and source; empty if there is nothing to say."""
    lead = "Missing" if review.on_record else "Not on record whether it is set"
    unwise = [
        f"{advice.kind.capitalize()}: {advice.title}: {advice.reason} ({advice.source})." for advice in review.unwise
    ]
    compiled = [f"Compiled: {review.compiled}"] if review.compiled else []
    return unwise + compiled + [f"{lead}: {_missing(advice)} ({advice.source})." for advice in review.missing]


def flag_summary(review: FlagReview) -> str:
    """The flags that are set, and which of them the tables do not know."""
    if not review.on_record:
        return "none on record"
    unknown = [flag.name for flag in review.set if flag.purpose is None]
    summary = f"{len(review.set)} set: {_listed([f'{flag.name}={flag.value}' for flag in review.set])}"
    return f"{summary}; not judged: {_listed(unknown)}" if unknown else summary


def _missing(advice: FlagAdvice) -> str:
    return f"{advice.title} ({_listed(list(advice.flags))}): {advice.reason}"


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + rest
