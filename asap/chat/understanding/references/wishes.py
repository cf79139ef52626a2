"""An axis that is named without a degree: "more tensor parallelism", "pure FSDP", "no pipeline"."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from asap.plans.axes import WORDS, Axis

_AXIS = r"(?P<axis>tensor|model|data|sequence|context|experts?|pipeline|replica\w*|fsdp|tp|dp|cp|pp|ep|pipelining)"
_MUCH = (
    r"(?P<much>more|higher|bigger|increas\w+|rais\w+|bump\w*(?: up)?|boost\w*|pure|plain|only|just|full|use|using|do"
    r"|try|add\w*|less|lower|fewer|smaller|split\w*|shard\w*|without|no|not|drop(?:ping)?|remov\w+|reduc\w+"
    r"|cut(?:ting)?|trim\w*|get rid of|disabl\w+|turn\w* off|kill\w*|ditch\w*|scrap\w*|dump\w*|los(?:e|ing)"
    r"|skip\w*|omit\w*|leav\w+ out|forgo|go without"
    r"|instead of|rather than)"
)
_WISH = re.compile(
    rf"\b{_MUCH}\s+(?:of\s+|any\s+|the\s+|use\s+|using\s+|more\s+|all\s+)*{_AXIS}(?:[\s-]+(?:parallel\w*|stages?|axis|sharding|shards))?\b"
    rf"|\b{_AXIS.replace('axis>', 'named>')}(?:\s+|-)(?:parallel\w*|stages?|axis|sharding|degrees?)\b"
    rf"|\b{_AXIS.replace('axis>', 'sole>')}(?:\s+parallel\w*)?\s+(?:only|alone)\b"
    r"|\b(?P<alone>pipelining|hsdp)\b"
    r"|\bwhy (?:do we (?:use|have|run|need) )?(?:the )?(?P<asked>tp|dp|cp|pp|ep|fsdp)(?= at all\b)"
    rf"|\b{_AXIS.replace('axis>', 'wide>')}\s+(?:parallel\w*\s+)?(?:over|across|on)\s+(?:all|every)",
    re.I,
)
_SINGLE = re.compile(rf"\b{_AXIS}(?:[\s-]+parallel\w*)?\s*(?:=|:|of|at)\s*1\b(?![.,]?\d)", re.I)
_WHOLLY = re.compile(r"\b(?:pure|plain|only|just|full)\b", re.I)
_NONE = re.compile(
    r"\b(?:without|no|drop\w*|remov\w+|get rid of|disabl\w+|turn\w* off|kill\w*"
    r"|ditch\w*|scrap\w*|dump\w*|los(?:e|ing)|skip\w*|omit\w*|leav\w+ out|forgo|go without)\b",
    re.I,
)
_AGAINST = re.compile(r"instead of|rather than", re.I)
_NO_AXIS = re.compile(r"\bthe (?:model|data|sequence|context|experts?)$", re.I)
"""The thing, and not the axis that is named after it: "is that just the model?"."""
_UNNEEDED = re.compile(
    r"\bwhy\b.*\bat all\b|\b(?:do|does|did)\b.*\bneed\b|\b(?:needed|necessary|required)\b.*\bat all\b"
    r"|\bneed\b.*\bat all\b",
    re.I,
)
_WHY_NONE = re.compile(
    r"\b(?:why|how come)\b[^.?!]*?\b"
    r"(?:(?:is|are) there |do you (?:have|use|propose|suggest) |did you (?:use|pick) )?no\b",
    re.I,
)
"""Asks for the reason why there is none, and not for a plan without it."""
_SOME = re.compile(r"\b(?:use|using|do|try)\b", re.I)
_FACTOR = re.compile(
    r"\b(?:(?P<half>halv\w*|half)|doubl\w*|twice)\s+(?:of\s+|the\s+|our\s+|as\s+much\s+)*"
    rf"{_AXIS.replace('?P<axis>', '?:')}(?:[\s-]+(?:parallel\w*|axis|sharding|shards|degree))+",
    re.I,
)
_LESS = re.compile(r"\b(?:less|lower|fewer|smaller|reduc\w+|cut\w*|trim\w*)\b", re.I)


@dataclass(frozen=True)
class Wish:
    """An axis that is named without a degree, how much of it is asked for, and the axis that it is to replace."""

    axis: Axis
    sense: Literal["more", "less", "only", "none", "some", "half", "twice"]
    against: Axis | None = None


def wish_in(text: str) -> Wish | None:
    """An axis without a degree, or with a degree of one, and how much of it is asked for."""
    single = _SINGLE.search(text)
    if single and not _WISH.search(text[: single.start()]):
        return next(Wish(axis, "none") for axis in get_args(Axis) if axis == WORDS[single["axis"].lower()])
    found = [one for one in _WISH.finditer(text) if not _NO_AXIS.search(one.group())]
    replaced = [one for one in found if one["much"] and _AGAINST.match(one["much"])]
    against: Axis | None = next((WORDS[one["axis"].lower().removesuffix("s")] for one in replaced), None)
    found = [one for one in found if one not in replaced]
    if not found:
        return None
    match = next((one for one in found if one["alone"]), None) or next((one for one in found if one["much"]), found[0])
    name = (
        match["axis"] or match["named"] or match["alone"] or match["asked"] or match["wide"] or match["sole"]
    ).lower()
    plain_data = name in {"dp", "data"} and bool(re.search(r"\bplain\b|no sharding", text, re.I))
    name = (
        "stage"
        if name == "pipelining"
        else "replica"
        if name.startswith(("replica", "hsdp")) or plain_data
        else WORDS[name.removesuffix("s")]
    )
    much = match["much"] or ""
    if factor := _FACTOR.search(text):
        return next(Wish(axis, "half" if factor["half"] else "twice") for axis in get_args(Axis) if axis == name)
    if match["wide"] or match["sole"] or _WHOLLY.search(much):
        sense = "only"
    else:
        sense = (
            "some"
            if _WHY_NONE.search(text) and re.fullmatch("no", much, re.I)
            else "none"
            if _NONE.search(much) or (not much and _UNNEEDED.search(text))
            else "less"
            if _LESS.search(much)
            else "some"
            if _SOME.search(match.group()) or (name == "replica" and match["alone"])
            else "more"
        )
    axes: tuple[Axis, ...] = get_args(Axis)
    return next(Wish(axis, sense, against) for axis in axes if axis == name)
