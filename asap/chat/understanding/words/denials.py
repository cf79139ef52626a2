"""What a line that denies something comes to.

A claim that is not believed is asked about; what was never stated is taken back, or put right by what is said instead.
"""

import re

_LEAD = r"^\W*(?:(?:no|nope|nah|but|and|so|ok|well|hm+|sorry|wait|hey)\W+)*"
_BE = r"(?:is|are|was|were|'s|'re|isn't|aren't|has|have|had|takes?|needs?|uses?|fits?|would|will|can|could|should)"
_DISBELIEVED = re.compile(
    rf"{_LEAD}(?:i|we)\s+(?:(?:really|just|still|simply)\s+)*(?:do ?n[o']?t|do not|can ?not|can'?t|hardly)\s+"
    rf"(?:(?:really|quite)\s+)?(?:buy|believe|accept|see|get)\s+(?:that |how |why )?"
    rf"(?P<claim>(?!you\b)[^.?!]*?{_BE}\b.*)$",
    re.I,
)
_OF_PROPOSAL = re.compile(
    r"(?!.*\b(?:slower|worse|behind|longer)\b).*\b(?:proposals?|plans?|options?|number|first|second|third|best|[1-3])\b",
    re.I,
)
_DENIED = re.compile(
    rf"{_LEAD}(?:i|we)\s+(?:didn'?t|did not|never)\s+(?:say|said|mean|meant|claim\w*|state\w*|wrote|write)\s+"
    r"(?:that\s+)?(?P<said>[^,;.]+?)(?:\s*(?:[,;.]|--?)\s*(?P<right>.+))?$",
    re.I,
)
_INSTEAD = re.compile(r"^(?:(?:only|just|but|rather|it'?s|(?:i|we) (?:said|meant|mean))\s+)+", re.I)
_SUBJECT = re.compile(
    r"\b(?:tensor|pipeline|tp|pp|ep|cp|dp|fsdp|offload\w*|remat\w*|accumulat\w+|batch|sequence|hbm|mfu|throughput|crash\w*"
    r"|oom)\b|\bout of memory\b",
    re.I,
)
_THAT = re.compile(r"\W*(?:that|this|it|so|anything like (?:that|it|this))\W*", re.I)

_JUDGED = (
    r"(?:(?:way|totally|quite|just|completely|clearly|simply|much)\s+)*(?:wrong|off|mistaken|incorrect|bs"
    r"|not (?:right|true)|bullshit|nonsense|too (?:high|low|much|optimistic|pessimistic|good))"
)
_SAID_WRONG = re.compile(
    rf"{_LEAD}(?:(?:you are|you're|ur|your)\s+{_JUDGED}\s+(?:about|on|with|there on)\s+(?:the |our )?"
    r"(?P<about>hbm|mfu|memory)"
    r"|(?:(?:your|the|that|those)\s+)?(?P<figure>\d+(?:\.\d+)?\s?[a-z%]{1,4})(?:\s+(?P<of>mfu|hbm))?"
    rf"\s+(?:is|are|was)\s+{_JUDGED})"
    r"\s*[,;.-]+\s*(?:no,?\s*)?(?:it'?s|it is|that'?s|(?:i|we) (?:see|saw|get|got|have|measured?|clocked))\s+"
    r"(?P<right>(?:(?:really|actually|more like|about|around|only)\s+)*\d.*)$",
    re.I,
)
"""A figure that is said to be wrong, with the right one: "10.4 s is wrong, its 8.9"."""


def as_question(text: str) -> str:
    """A claim on the run that is not believed as the question why it holds: "i don't buy that we're compute bound".

    Doubt of a proposal stays doubt: it is answered with what the order rests on.
    """
    found = _DISBELIEVED.match(text)
    if found is None:
        return text
    claim = found["claim"].rstrip(" .!?")
    return f"I do not believe that {claim}" if _OF_PROPOSAL.match(claim) else f"why {claim}?"


def as_meant(text: str) -> str:
    """A denial of what was understood as what is meant: "i didn't say no tp, just not more than 2".

    Where nothing is said instead, what was understood is taken back.
    """
    if (wrong := _SAID_WRONG.match(text)) is not None:
        figure = f"{wrong['figure']} {wrong['of'] or ''}?" if wrong["figure"] else f"{wrong['about']}:"
        return f"{figure} we got {wrong['right']}"
    found = _DENIED.match(text)
    if found is None:
        return text
    if _THAT.fullmatch(found["said"]) and found["right"] is None:
        return "undo that"
    if (subject := _SUBJECT.search(found["said"])) is None:
        return text
    if found["right"] is None:
        return f"drop the {subject.group()} thing"
    right = _INSTEAD.sub("", found["right"])
    return right if _SUBJECT.search(right) else f"{subject.group()} {right}"
