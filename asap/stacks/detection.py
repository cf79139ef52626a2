"""Whose settings a mapping has, by the keys that are a stack's alone."""

import re
from collections.abc import Mapping

from asap.core.errors import ConfigError
from asap.stacks.registry import specs
from asap.stacks.spec import Files, Spec

_OF_A_MARK = 3


def score(files: Files, settings: Mapping[str, object]) -> int:
    """How many of its own keys a mapping of dotted settings has; 0 where it lacks one that it needs."""
    sections = _with_sections(settings)
    if not sections.keys() >= set(files.needs):
        return 0
    marks = (key for key, pattern in files.marks.items() if re.search(pattern, str(settings.get(key, ""))))
    points = sum(key in sections for key in files.own) + _OF_A_MARK * len(tuple(marks))
    return points if points >= files.least else 0


def claimant(settings: Mapping[str, object], place: str, said: str | None = None) -> Spec | None:
    """The stack whose settings these are; ``None`` where it is none with a table.

    Args:
        settings: by dotted key.
        place: the file, for errors.
        said: the name of the stack, where the user says it.

    Raises:
        ConfigError: two stacks claim them, or there is none of the name that is said.
    """
    spelled = {key.replace("-", "_"): value for key, value in settings.items()}
    scores = {one.name: score(one.files, spelled if one.dashes else settings) for one in specs().values()}
    best = max(scores.values(), default=0)
    claiming = sorted(name for name, points in scores.items() if points == best and best)
    if said is not None:
        claiming = [one.name for one in specs().values() if one.name.casefold() == said.casefold()]
        if not claiming:
            raise ConfigError(f"there is no stack {said}", where=place, hint=f"one of {', '.join(sorted(scores))}")
    if len(claiming) > 1:
        hint = f"say which it is: add stack={claiming[0]}"
        raise ConfigError(f"has settings of {' and of '.join(claiming)}", where=place, hint=hint)
    return next((one for one in specs().values() if [one.name] == claiming), None)


def is_claimed(settings: Mapping[str, object]) -> bool:
    """Whether one stack or several have a claim on settings by dotted key."""
    return any(score(one.files, settings) for one in specs().values())


def _with_sections(settings: Mapping[str, object]) -> Mapping[str, object]:
    """The settings, and the sections that they stand in."""
    parts = (key.split(".") for key in settings)
    sections = {".".join(words[:count]): True for words in parts for count in range(1, len(words))}
    return {**sections, **settings}
