"""Which way words say that a step goes: less time, or more."""

import re

_LESS = (
    r"faster|quicker|shorter|sav(?:es?|ed|ing|ings)|less|fewer|lower|reduc\w+|cuts?|cutting|shrink\w*|shrank|drop\w*"
    r"|falls?|fell|improv\w+|gain\w*|speed-?ups?|speeds? up|sped up|shav\w+|decreas\w+|below|ahead"
)
_MORE = (
    r"slower|longer|more|higher|increas\w+|grow\w*|grew|rises?|rose|los(?:s|es|t|ing)|worse\w*|degrad\w+|regress\w*"
    r"|costs?|penalt\w+|slow(?:s|ed)? down|above|behind|overhead|extra"
)
_WORDS = re.compile(rf"\b(?:(?P<less>{_LESS})|(?P<more>{_MORE}))\b", re.IGNORECASE)
_RATE = re.compile(r"\b(?:throughput|tokens|speed|mfu|utili[sz]ation|performance|efficien\w+|rate)\b", re.IGNORECASE)
_ABOUT_TIME = re.compile(r"faster|quicker|slower|longer|shorter|sav|speed|sped|slow", re.IGNORECASE)
_NOT = re.compile(r"\b(?:not|no|never|neither|nor|without|rather than|instead of)\b|n't\b", re.IGNORECASE)
_STATED = re.compile(
    r"\b(?:is|are|be|runs?|becomes?|gets?|makes?|proves?|remains?)\b[^.;,]{0,40}?\s(?P<word>faster|quicker|slower|shorter|longer)\b"
    r"(?!\s+(?:pieces?|sequences?|than\s+(?:\w+=|proposal|the (?:first|second|third))))",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:()]|\b(?:and|but|while|whereas|though)\b")


def faster_by(sentence: str, start: int, end: int) -> bool | None:
    """Whether words call the figure at a place less time; ``None`` where they do not say.

    The word right behind the figure counts, else the last one before it in the same clause.
    """
    stop = _CLAUSE.search(sentence, end)
    behind = sentence[end : stop.start() if stop else len(sentence)]
    opened = [cut.end() for cut in _CLAUSE.finditer(sentence, 0, start)]
    before = sentence[opened[-1] if opened else 0 : start]
    if _NOT.search(before) or _NOT.search(behind):
        return None
    near = re.match(r"\W*(?:\w+\W+){0,3}?", behind)
    word = next((found for found in _WORDS.finditer(behind[: (near.end() if near else 0) + 40])), None)
    word = word or next(iter(reversed(list(_WORDS.finditer(before)))), None)
    if word is None:
        return None
    less = word["less"] is not None
    reversed_ = _RATE.search(before + behind) and not _ABOUT_TIME.search(word[0])
    return not less if reversed_ else less


def stated_direction(sentence: str) -> tuple[int, int, bool] | None:
    """Where a sentence says that something is faster or slower, and which."""
    found = _STATED.search(sentence)
    if found is None or _NOT.search(sentence[: found.start("word")]):
        return None
    return *found.span("word"), found["word"].lower() in ("faster", "quicker", "shorter")
