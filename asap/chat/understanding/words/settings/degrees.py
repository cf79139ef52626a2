"""Degrees that are said as a change of those of now, written out: "halve TP" of 8 is ``tp=4``."""

import re

from asap.chat.understanding.words.questions import is_question
from asap.hardware.nodes import chips_per_node
from asap.plans.axes import WORDS, Axis
from asap.study.study import Study

_OF_AXIS = r"(?:[- ]?parallel\w*|[- ]axis|[- ]degrees?|[- ]shard\w*|[- ]size)"
_NAME = (
    rf"(?<![\w=-])(?P<name>tensor|pipeline|tp|pp|ep|cp|dp|fsdp|(?:model|data|context|sequence|experts?)(?={_OF_AXIS}))"
    rf"{_OF_AXIS}*(?![\w=])"
)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "eight": 8, "sixteen": 16}
_COUNT = rf"(?P<count>\d+|{'|'.join(_NUMBERS)})(?![\w]|[.,]\d)"
_OLD = r"(?:\d+|\(\d+\))"
_FACTORS = {r"halv\w*|half(?: of)?": 0.5, r"doubl\w*|twice": 2.0, r"quarter(?:ed|ing)?": 0.25, r"quadrupl\w*": 4.0}
_FACTOR = "|".join(f"(?:{words})" for words in _FACTORS)
_BESIDE = r"(?:of\s+|the\s+|our\s+|my\s+|as\s+much\s+)*"
_SCALED = (
    re.compile(rf"\b(?P<factor>{_FACTOR})\s+{_BESIDE}{_NAME}(?!\s*[=:]?\s*\d)", re.I),
    re.compile(rf"{_NAME}\s+(?:is\s+|gets\s+)?(?P<factor>halved|doubled|quartered|quadrupled)\b", re.I),
)
_ARROW = r"\s*(?:-+>|=>|→|to|down to|up to)\s*"
_MOVED = (
    re.compile(
        r"(?<![\w=.-])(?P<name>tp|pp|ep|cp|dp|fsdp)[- ]?\d+\s*(?:-+>|=>|→)\s*(?:(?P=name)[- ]?)?"
        r"(?P<count>\d+)(?![\w]|[.,]\d)",
        re.I,
    ),
    re.compile(rf"{_NAME}\s*[=:]?\s*(?:from\s+)?{_OLD}{_ARROW}(?:{_NAME.replace('?P<name>', '')}\s*)?{_COUNT}", re.I),
    re.compile(rf"(?<![\w=])(?:from\s+)?{_OLD}(?:{_ARROW}|\s+-\s*>?\s*){_COUNT}[- ]?(?:way\s+)?{_NAME}", re.I),
    re.compile(
        r"\b(?P<name>tensor|pipeline)\s*(?:=|to|at|down to|up to|back to)\s*(?P<count>\d+)\b"
        r"(?!\s*(?:x|%|times|ms|s)\b)",
        re.I,
    ),
    re.compile(rf"\b(?:if|suppose|say)\s+(?:the\s+|our\s+)?{_NAME}\s+(?:was|were|is|becomes?)\s+{_COUNT}", re.I),
)
_THINGS = r"(?P<unit>gpus?|chips?|tpus?|devices?|accelerators?|cores?|ranks?|ways?|nodes?|hosts?|servers?|machines?)\b"
_OVER = re.compile(
    rf"(?:\b(?P<verb>spread\w*|split\w*|shard\w*|distribut\w+|partition\w*|plac\w+|put\w*)\s+(?:the\s+|our\s+|all\s+|\d+\s+)*)?"
    rf"(?<![\w=])(?P<before>\d+\s+)?(?P<name>experts?|tensor|pipeline|fsdp|tp|pp|ep|cp|sequences?|context)\b{_OF_AXIS}*\s+(?:are\s+|is\s+|out\s+)*"
    rf"(?P<over>over|across|among|between|on|onto|within|spans|span|spanning)\s+(?:only\s+|just\s+|all\s+)*{_COUNT}(?:\s+{_THINGS})?",
    re.I,
)
_EITHER = re.compile(
    rf"{_NAME}\s*[=:]?\s*{_COUNT}\s*(?P<or>or|vs\.?|versus|and|/)\s*(?P<second>\d+)\b(?!\s*(?:[a-z%]|\d|[.,]\d))", re.I
)
_SWAPPED = re.compile(
    r"\b(?:swap\w*|trad(?:e|ing)|replac(?:e|ing)|exchang\w+)\s+(?:the\s+|our\s+)?(?P<old>tp|pp|ep|cp|tensor|pipeline)"
    rf"{_OF_AXIS}*\s+(?:for|with|by|against)\s+(?P<new>tp|pp|ep|cp|fsdp|tensor|pipeline)(?![\w=]){_OF_AXIS}*(?!\s*=?\d)",
    re.I,
)
_INSTEAD = re.compile(
    r"(?P<written>(?<![\w=-])(?:tensor|pipeline|tp|pp|ep|cp|dp|fsdp|model|seq|data|expert|stage)\s*[=:]?\s*\d+)\s+"
    r"(?:instead of|rather than|in place of)\s+(?:the\s+|our\s+)?"
    rf"(?P<old>tp|pp|ep|cp|fsdp|data|tensor|pipeline){_OF_AXIS}*(?![\w=])(?!\s*[=:]?\s*\d)",
    re.I,
)
"""A degree in place of an axis: "cp=2 instead of pp"."""
_LACKED = (
    r"(?:no|without(?: any)?|zero|minus)\s+(?P<lacked>tensor|pipeline|tp|pp|ep|cp|context|expert)"
    r"(?:[- ]?(?:parallel\w*|stages?))*(?![\w=-])(?!\s*[=:]?\s*\d)"
)
_HAD = (
    r"(?P<had>(?<![\w=-])(?:tensor|pipeline|tp|pp|ep|cp|dp|fsdp|model|seq|data|expert|stage|replica)"
    r"(?:[- ]parallel\w*)?\s*[=:]?\s*\d+)"
)
_JOINED = r"\s*,?\s*(?:(?:and|but|just|only|with|&|\+)\s+)*"
_WITHOUT = (re.compile(f"{_HAD}{_JOINED}{_LACKED}", re.I), re.compile(f"{_LACKED}{_JOINED}{_HAD}", re.I))
"""An axis that a plan is to lack, beside a degree that it has: "tp8 no pp"."""
_LIMITS = re.compile(
    r"\b(?:must|keep\w*|stays?|needs?|have to|has to|can ?not|can't|never|at (?:most|least)|max\w*|min\w*|please"
    r"|for us)\b",
    re.I,
)
"""Words of a limit, which is read clause by clause."""
_WITHIN = re.compile(
    r"\b(?P<must>must|ha(?:s|ve) to|needs? to|should|can only)\s+"
    r"(?:stay|remain|be|fit)\s+(?:within|in|inside|on)\s+(?:(?:a|one|the|our)\s+)?(?:single\s+)?"
    r"(?:nodes?|hosts?|servers?|nvlink domain)\b",
    re.I,
)
"""As wide as a node: "tp must stay within a node"."""
_HYBRID = re.compile(r"\bhsdp\s*(?:of\s+|at\s+|=\s*)?(\d+)\s*[x×]\s*(\d+)\b", re.I)
"""Replicas, and devices that each is sharded over."""
_HYBRID_BY_NODE = re.compile(
    r"\bhsdp\b(?!\s*(?:of\s+|at\s+|=\s*)?\d+\s*[x×])[^.?!]{0,30}?\b(?:(?:shard\w*|fsdp)\s+(?:inside|within|in|over)\s+(?:(?:a|the|each|one"
    r"|every)\s+)?node|replicat\w*\s+(?:across|between|over)\s+(?:the\s+)?nodes)\b",
    re.I,
)
"""Replicas over the nodes, each sharded inside of one."""
_NODES = re.compile(r"node|host|server|machine", re.I)
_NEEDED = re.compile(
    r"\b(?:need(?:ed)?|necessary|required|pointless|overkill|excessive|wasteful|useless|too much|mistake|waste"
    r"|dumb|stupid"
    r"|silly|nonsense|bad idea|worth it|buying us (?:any|some)thing)\b",
    re.I,
)
_LONG = {"tp": "tensor", "pp": "pipeline", "ep": "expert", "cp": "context"}
_WRITTEN = re.compile(r"(?<![\w=-])(?P<name>tp|pp|ep|cp)\s*=?\s*(?P<count>\d+)\b(?![.,]?\d)", re.I)


_OWN = re.compile(rf"(?<![\w=-])(?P<name>{'|'.join(WORDS)})\s*[=:]?\s*(?:from\s+)?(?P<old>\d+){_ARROW}{_COUNT}", re.I)
"""Any name of an axis, with the degree that it has now: "seq 8 to 2"."""


_EXPERTS_OF_ONE = re.compile(
    rf"{_COUNT}\s+experts?\s*(?:/|per|on (?:an?|each)|each|an?)\s*(?:chip|device|core|gpu|tpu|rank)\b", re.I
)
"""How many experts lie on one device."""


def with_degrees_written(text: str, study: Study) -> str:
    """The text with each change of a degree as the degree that it leads to; the rest stays as it is."""
    text = _OWN.sub(lambda match: _from_now(match, study), text)
    text = _EXPERTS_OF_ONE.sub(lambda match: _experts_of_one(match, study), text)
    text = _OVER.sub(lambda match: _spread(match, study), text)
    text = _SWAPPED.sub(lambda match: _swapped(match, study), text)
    each = chips_per_node(study.slice.chip) if study.slice else None
    text = _WITHIN.sub(lambda match: f"{match['must']} be at most {each}" if each else match.group(), text)
    text = _INSTEAD.sub(lambda match: f"{_equals(match['written'])} {match['old']}=1", text)
    text = _without(text)
    text = _HYBRID_BY_NODE.sub(lambda match: _by_node(match, study), text)
    text = _HYBRID.sub(lambda match: f"replica={_count(match[1])} fsdp={_count(match[2])}", text)
    text = _EITHER.sub(lambda m: f"{m['name']}={_count(m['count'])} or {m['name']}={m['second']}", text)
    for pattern in _MOVED:
        text = pattern.sub(lambda match: f"{match['name']}={_count(match['count'])}", text)
    for pattern in _SCALED:
        text = pattern.sub(lambda match: _scaled(match, study), text)
    return _unneeded(text, study)


def _equals(written: str) -> str:
    """ "seq 4" as ``seq=4``."""
    return re.sub(r"\s*[=:]?\s*(?=\d)", "=", written, count=1)


def _by_node(match: re.Match[str], study: Study) -> str:
    """ "HSDP, shard inside the node" on 8 nodes of 8 is ``replica=8 fsdp=8``."""
    hardware = study.slice
    each = chips_per_node(hardware.chip) if hardware else None
    if hardware is None or not each or hardware.devices <= each or hardware.devices % each:
        return match.group()
    return f"replica={hardware.devices // each} fsdp={each}"


def _without(text: str) -> str:
    """ "tp8 no pp" is ``tp8 pp=1``; another axis that is lacked may follow."""
    if _LIMITS.search(text):
        return text
    for pattern in _WITHOUT:
        while (match := pattern.search(text)) is not None:
            text = f"{text[: match.start()]}{match['had']} {match['lacked']}=1{text[match.end() :]}"
    return text


def _experts_of_one(match: re.Match[str], study: Study) -> str:
    """ "Two experts per chip" of eight is ``expert=4``."""
    model, each = study.experiment.model, _count(match["count"])
    experts = model.experts if model is not None else 0
    return f"expert={experts // each}" if each and experts and experts % each == 0 else match.group()


def _spread(match: re.Match[str], study: Study) -> str:
    """ "The experts over 8 GPUs" is the degree of expert parallelism; "64 experts on 8 GPUs" is another run."""
    name, count = match["name"].lower(), _count(match["count"])
    loose = match["over"].lower() in {"on", "between", "within", "onto"}
    long = name not in {"tp", "pp", "ep", "cp"}
    if (match["before"] and not match["verb"]) or (long and loose and not match["verb"]):
        return match.group()
    if name.startswith(("sequence", "context")) and not (match["verb"] and match["unit"]):
        return match.group()
    if match["unit"] and _NODES.match(match["unit"]):
        each = chips_per_node(study.slice.chip) if study.slice else None
        if each is None:
            return match.group()
        count *= each
    return f"{'expert' if name.startswith('expert') else name.removesuffix('s')}={count}"


def _from_now(match: re.Match[str], study: Study) -> str:
    axis = _axis(match["name"], study)
    is_now = study.plan is not None and study.plan.degree(axis) == int(match["old"][:9])
    return f"{axis}={_count(match['count'])}" if is_now else match.group()


def _scaled(match: re.Match[str], study: Study) -> str:
    factor = next(value for words, value in _FACTORS.items() if re.fullmatch(rf"(?:{words}).*", match["factor"], re.I))
    axis = _axis(match["name"], study)
    degree = study.plan.degree(axis) * factor if study.plan else 0
    return f"{axis}={degree:.0f}" if degree >= 1 and degree == int(degree) else match.group()


def _swapped(match: re.Match[str], study: Study) -> str:
    """ "Swap CP for TP": one axis gets the devices of another one; FSDP takes what is freed anyway."""
    old, new = _axis(match["old"], study), _axis(match["new"], study)
    moved = study.plan.degree(old) if study.plan else 1
    if moved < 2 or study.plan is None or old == new:
        return match.group()
    return f"{new}={study.plan.degree(new) * moved} {old}=1"


def _unneeded(text: str, study: Study) -> str:
    """ "Is tp2 needed" asks of the axis as it runs; degrees beside it that are those of now say nothing new."""
    needed = _NEEDED.search(text)
    if study.plan is None or needed is None or (needed.group().lower() == "need" and not is_question(text)):
        return text
    found = [m for m in _WRITTEN.finditer(text) if study.plan.degree(_axis(m["name"], study)) == _count(m["count"]) > 1]
    for place, match in reversed(list(enumerate(found))):
        name = f"{_LONG[match['name'].lower()]} parallelism" if place == 0 else ""
        text = text[: match.start()] + name + text[match.end() :]
    return text


def _axis(name: str, study: Study) -> Axis:
    """The axis of a name; "DP" is the kind of data parallelism that the run has."""
    axis = WORDS[name.lower()]
    own = study.plan is not None and study.plan.degree("replica") == 1 and study.plan.degree("data") > 1
    return "data" if axis == "replica" and own else axis


def _count(text: str) -> int:
    return _NUMBERS.get(text.lower()) or int(text[:9])
