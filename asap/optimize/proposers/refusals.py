"""What a program refused, learnt as constraints on what is tried next: by its messages, and by what it ran with."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from asap.optimize.outcome import Configuration, Try
from asap.optimize.results import ended

Said = Callable[[Configuration], Mapping[str, str]]
"""The settings of a configuration as the program is told them, which its messages name."""
_EVEN = 0.5  # odds above which nothing with a setting is tried; judgement: how often a refusal is asked for again


def blamed(tries: Sequence[Try], said: Said | None = None) -> dict[str, float]:
    """How likely each setting, or each of its values, is what was refused.

    It is one of those of a refused configuration that none has run with: those that the message names, and rather one
    that several refused have. A setting that is named without its value is refused whatever its value. Without
    ``said``, the words of a configuration are its settings, which no message knows.
    """
    read, taken, refused = said or words_of, set[str](), list[tuple[Mapping[str, str], str]]()
    for each, outcome in ended(tries):
        if outcome.status == "done" or "OUT_OF_MEMORY" in outcome.codes:
            taken |= parts(read(each.configuration))
        elif "INVALID" in outcome.codes:
            message = " ".join(found.explanation for found in outcome.feedback) if said else ""
            refused.append((read(each.configuration), message))
    suspects = [_suspects(settings, message, taken) for settings, message in refused]
    weight = {each: count**2 for each, count in Counter(each for some in suspects for each in some).items()}
    shares = [{each: weight[each] / sum(weight[other] for other in some) for each in some} for some in suspects]
    return {each: max(share.get(each, 0.0) for share in shares) for each in weight}


def refused_setting(settings: Mapping[str, str], blame: Mapping[str, float]) -> str | None:
    """The first setting that is rather refused than not, given what is blamed; ``None`` where there is none."""
    odds = ((each, blame.get(each, 0.0) + blame.get(f"{each}={value}", 0.0)) for each, value in settings.items())
    return next((each for each, likely in odds if likely > _EVEN), None)


def words_of(configuration: Configuration) -> dict[str, str]:
    """What its words set: ``seq=2`` sets ``seq``."""
    return {name: value for name, _, value in (word.partition("=") for word in configuration.split())}


def parts(settings: Mapping[str, str]) -> set[str]:
    """Of ``seq=2`` both ``seq`` and ``seq=2``."""
    return {part for name, value in settings.items() for part in (name, f"{name}={value}")}


def _suspects(settings: Mapping[str, str], message: str, taken: set[str]) -> set[str]:
    text = "".join(sign if sign.isalnum() or sign in "_." else " " for sign in message.casefold().replace("-", "_"))
    words, left = {word.strip("_.") for word in text.split()}, parts(settings) - taken
    named = {name: value for name, value in settings.items() if name.casefold() in words}
    values = {f"{each}={value}" for each, value in named.items() if each in taken or value.casefold() in words}
    return (named.keys() | values) & left or left
