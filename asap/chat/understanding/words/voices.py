"""In whose voice a line speaks: an order, or somebody else than the engineer."""

import re

_ORDER = re.compile(
    r"^\W*(?:(?:please|just|now|then|so|ok|and) )*(?:run|use|set|try|make|change|increase|raise|reduce|lower|put|switch"
    r"|go|train|show|give|take|pick|rank|compare|explain|evaluate|predict|redo|rerun|let'?s|double|halve|add|do|record"
    r"|report|log|note that|claim|tell|write|print|list|confirm|admit)\b(?!\s*:)"
    r"(?!\s+(?:took|takes|is|was|were|are|has|had|ran|needs|needed|did|does|came|got|gets|gave|averaged|measured|clocked"
    r"|shows|showed|says|said|reports|reported|prints|printed|gives)\b)",
    re.I,
)
"""A verb at the start, unless another one makes it a subject: "run took 2 s"."""
_INSTRUCTION = re.compile(
    r"(?:^|[:;,>\])]|\b(?:please|then|now|to|must|always|should)\b)\s*(?:report|claim|state|print|output|answer|reply|respond"
    r"|record|book|treat|forget|obey|repeat|mark|declare|announce|insert|add|act)\b",
    re.I,
)
_VOICE = re.compile(
    r"^\W*(?:system|assistant|developer|admin|root|operator|instruction|prompt|engine|tool|asap)\b[^:,]{0,40}[:,]"
    r"|</?(?:system|assistant|instructions?|tool)\b"
    r"|\b(?:ignore|disregard|forget|override)\s+(?:(?:all|any|your|the|my|previous|prior|above)\s+)*(?:instructions|rules|prompt)"
    r"|\b(?:system prompt|developer mode)\b",
    re.I,
)


_ROLE = re.compile(
    r"(?:^|\n)[\W_]*(?:system|assistant|developer|admin(?:istrator)?|tool|function|engine|asap|root|operator)"
    r"(?:[\s_-]+(?:prompt|message|note|notice|override|result|answer))?[\W_]*?[:>\]|](?!\s*\d)"
    r"|<\|?/?(?:im_start|im_end|system|assistant|tool)|\[/?INST\]",
    re.I,
)
"""The start of a line that speaks as somebody else than the engineer."""

_ADVICE = re.compile(r"\btell(?:s|ing)?\s+(?:me|us|people|everyone|everybody)\s+(?:all )?to\b", re.I)


def tells_of_advice(text: str) -> bool:
    """Whether what it names is what somebody tells one to do: "another tool that tells me to buy more chips"."""
    return _ADVICE.search(text) is not None


def is_order(text: str) -> bool:
    """Whether a clause tells to do something."""
    return _ORDER.search(text) is not None or _INSTRUCTION.search(text) is not None


def pretends(text: str) -> bool:
    """Whether a line speaks with the voice of the system, or about its instructions: it is never a fact."""
    return any(pattern.search(text) for pattern in (_VOICE, _ROLE))
