"""Figures that are set against others or stand behind a step, whose unit is left out: "10.2 s? we got 7.9"."""

import re

from asap.chat.understanding.quantities.amounts import amounts

_BARE = (
    r"(?![.,]?\d|[\w%=]|\s*(?:%|"
    r"(?:ms|s|secs?|seconds?|minutes?|x|times|percent|k|m|tokens?|tok|gi?b|steps?|chips?)\b))"
)
"""Behind a number without a unit."""
_STEP_OF = re.compile(
    r"\b(?:step(?: time)?|(?:the|our) (?:run|baseline))\s+(?:is|was|takes|took)\s+"
    r"(?:(?:really|actually|now|about|only|around|more like)\s+)*"
    rf"\d+\.\d+{_BARE}",
    re.I,
)
"""A step without a unit: "our step is really 36.4"."""
_READ = (
    r"(?:(?:my|our|the)\s+)?(?:logs?|profil\w+|dashboard|wandb|tensorboard|trace|monitor\w*|console|xprof|nsys)\s+"
    r"(?:shows?|reports?|has|gives?|prints?|is)"
)
"""What a figure was read off."""
_SEEN = r"(?:measured?|clock(?:ed)?|took|got|gets?|see|saw|read|is really|was really|really|actually)"
_SET_AGAINST = re.compile(
    rf"\d(?:[\d.,]*\d)?\s?(?P<unit>ms|s|secs?|seconds?|GiB|GB|%)(?![\w/])(?P<name>\s+(?:mfu|hbm|memory)\b)?"
    rf"[^\d]*\b(?:{_SEEN}|{_READ})\s+(?:(?:it|at|about|only|just|more like)\s+)*"
    rf"\d+(?:\.\d+)?{_BARE}",
    re.I,
)
_THE_REST = re.compile(
    rf"\d\s?(?P<unit>ms|s|secs?|seconds?)\b[^;]*?\b(?:rest|others?|otherwise|normal(?:ly)?|most(?:ly)?)\b\W*"
    rf"(?:(?:of (?:them|the steps)|steps|ones|are|is|take|at|about|around)\W+)*\d+(?:\.\d+)?{_BARE}",
    re.I,
)
"""The steady step beside the long ones: "12 s every 50 steps, rest 4.5"."""
_MEASURED = re.compile(rf"[,;]?\s*(?:,|;|\band\b|\bwhile\b)\s+(?=(?:(?:we|i)\s+(?:\w+ )?{_SEEN}|{_READ})\b)", re.I)
_QUOTED_AFTER = re.compile(
    r"\s*[,;]?\s+(?:(?:but|and|while|where|whereas|though|vs\.?)\s+)?(?=(?:you|your \w+|the (?:report|analysis))\s+"
    r"(?:said|says?|predict\w*|told|claim\w*|expect\w*|had|estimat\w*|thought|promis\w*)\b)",
    re.I,
)
"""Where the engine is quoted after what was measured: "i see 3.9 s, you predicted 3.6"."""
_NAMED_BEFORE = re.compile(
    rf"\b(?P<name>mfu|hbm|memory)\b[^.?!;]{{0,25}}?\d[\d.]*\s?(?:%|GiB|GB)[^\d!;]*?\b(?:{_SEEN}|{_READ})\s+"
    r"(?:(?:it|at|about|only|just|more like)\s+)*\d+(?:\.\d+)?\s?(?:%|GiB|GB)(?!\s*(?:mfu|hbm|memory))",
    re.I,
)
"""Two figures, of which the name of the first is that of the second as well."""


_FILLER = r"(?:(?:is|was|at|of|now|about|around|only|like|up to|~|:|=|->|currently|roughly)\s*)*"
_LONE_STEP = re.compile(
    rf"^\W*(?:(?:now|new|actual|actually|our|the|real|avg|average|mean|median|current|ok|so|fyi|update)\W+)*"
    rf"(?:step(?:[ _-]?time)?|iter(?:ation)?(?:[ _-]?time)?)\W*{_FILLER}\d+\.\d+{_BARE}(?=\W*(?:now|today|here)?\W*$)",
    re.I,
)
"""A step and no more: "step 2.95". A whole number may be that of a step."""
_TOOK = re.compile(
    r"\b(?:took|takes|(?<=[1-3] )(?:did|came (?:in|out) at)"
    r"|ran (?:in|at)|clocked(?: in)?(?: at)?)\s+(?:(?:about|around|only|roughly)\s+)*"
    rf"~?\d+\.\d+{_BARE}(?=\W*$|\s*[,;])",
    re.I,
)
"""A time that something took: "2 took 4.4"."""
_OURS_AND_YOURS = re.compile(
    r"^\W*(?:(?:ok|so|btw|fyi|hm+)\W+)*(?:our|ours|we|us|here|mine|measured)"
    r"(?:'s|'re| is| are| at| get| got| have| see| saw| measured?| clock(?:ed)?| hit| ran| run| now|:)*\s+"
    r"(?P<figure>\d+(?:\.\d+)?)\s*(?P<unit>m?s|secs?|seconds?)?\s*(?:[,;/]|vs\.?|and|but)?\s*"
    r"(?:you|yours|your (?:model|number|figure)|asap|predicted|model)(?:'re| are| is| said?| say| have| had| at|:)*\s+"
    r"~?\d+(?:\.\d+)?\s*(?P<other>m?s|secs?|seconds?)?(?![\w%]|\s*%)",
    re.I,
)
"""What was measured beside what was predicted, without verbs: "our 5.1 s, you 5.48"."""
_PER_STEP = re.compile(r"\b\d+\.\d+(?=\s*(?:/|per|an?|each)\s*(?:step|iter\w*)\b)", re.I)
_MFU = re.compile(rf"\bmfu\b\s*{_FILLER}\d{{1,2}}(?:\.\d+)?{_BARE}", re.I)
_EACH = r"\s*(?:/|per|a|each)\s*(?:gpu|chip|device|tpu)\b"
_RATE_FIRST = re.compile(
    rf"\b(?P<unit>tps|tgs|tok(?:en)?s?(?:/| per )s(?:ec(?:ond)?)?|t-?flop/?s?)\b(?P<per>{_EACH})?\W*{_FILLER}"
    rf"(?P<count>\d[\d,.]*(?:\s?k)?)\b(?!\s*(?:%|tok|tps|s\b|ms\b))(?P<each>{_EACH})?",
    re.I,
)
"""A rate whose unit stands before it: "tps is about 8100 per gpu"."""
_HBM_OF = re.compile(
    r"\b(?P<name>hbm|memory|vram)\b(?P<between>[^\d?.!;]{0,20}?)(?P<held>\d{1,3}(?:\.\d+)?)\s*(?:gi?b?)?\s*"
    r"(?:/|of|out of)\s*(?:the\s+)?(?P<room>\d{2,3}(?:\.\d+)?)\b(?!\s*%)",
    re.I,
)
"""HBM in use and all of it: "hbm is 78 of 80"."""


_HBM_ALONE = re.compile(
    rf"^\W*(?:(?:our|the|we see|we have)\s+)*(?:peak\s+)?(?:hbm|memory"
    rf"|vram)\b\s*{_FILLER}(?P<held>\d{{1,3}}(?:\.\d+)?){_BARE}\W*$",
    re.I,
)


def unit_missing(text: str) -> str | None:
    """Asks for the unit of HBM in use that has none: "hbm at 66" may be GiB or a share."""
    found = _HBM_ALONE.search(text)
    return f"Is that {found['held']} GiB or {found['held']} % of the HBM? Say it with its unit." if found else None


def _held(found: re.Match[str]) -> str:
    """What is held, in GiB, where it can be held in what there is."""
    fits = float(found["held"]) <= float(found["room"])
    return f"{found['name']}{found['between']}{found['held']} GiB" if fits else found.group()


def with_units(text: str) -> str:
    """The text with units that are left out, or stand before their figure: of a step, of MFU, of HBM "78 of 80", "tps:
    8100", and of a figure beside another one, "10.2 s? we got 7.9"."""
    text = _OURS_AND_YOURS.sub(_measured_alone, text)
    text = _RATE_FIRST.sub(lambda one: f"{one['count']} {one['unit']}{one['per'] or one['each'] or ''}", text)
    for pattern in (_STEP_OF, _LONE_STEP, _TOOK, _PER_STEP):
        text = pattern.sub(lambda found: f"{found.group()} s", text)
    text = _NAMED_BEFORE.sub(lambda found: f"{found.group()} {found['name']}", text)
    text = _MFU.sub(lambda found: f"{found.group()} %", text)
    text = _HBM_OF.sub(_held, text)
    text = _THE_REST.sub(lambda found: f"{found.group()} {found['unit']}", text)
    return _SET_AGAINST.sub(lambda found: f"{found.group()} {found['unit']}{found['name'] or ''}", text)


def _measured_alone(found: re.Match[str]) -> str:
    """The measured figure of a pair; as it is where neither has a unit."""
    unit = found["unit"] or found["other"]
    return f"we measured {found['figure']} {unit} a step" if unit else found.group()


def said_and_measured(part: str) -> tuple[str, ...]:
    """A figure that is quoted and the one that was measured, by themselves."""
    quote = _QUOTED_AFTER.search(part)
    if quote is not None and any(one.unit for one in amounts(part[: quote.start()])):
        return part[: quote.start()], part[quote.end() :]
    found = _MEASURED.search(part)
    quoted = found is not None and any(one.unit for one in amounts(part[: found.start()]))
    return (part[: found.start()], part[found.end() :]) if found and quoted else (part,)
