"""A thing for which the limit of the last line holds as well: "seq cannot move" · "batch neither"."""

import re

from asap.evidence.claims import Claim
from asap.evidence.fact import ABSENT, StatedFact
from asap.plans import AXES

_THING = r"(?:the |our |my )?(?P<{name}>[a-z][\w-]*(?: (?:size|length|parallel\w*|axis|policy|degree))?)"
_ALSO = re.compile(
    rf"^\W*(?:(?:and|oh|also|ok)\W+)*(?:{_THING.format(name='first')},?\s+"
    r"(?:neither|either|as well|too|likewise|same|ditto)"
    rf"|nor {_THING.format(name='second')}"
    rf"|(?:same|likewise|ditto|that goes)(?: thing)?(?: goes| holds)? (?:for|with|on|to) {_THING.format(name='third')}"
    r"(?:,? (?:as well|too))?)\W*$",
    re.I,
)


def with_limit_of_before(text: str, latest: tuple[StatedFact, ...]) -> str:
    """The text as a limit of the kind that the last line stated; as it is where that stated none."""
    found = _ALSO.match(text)
    limit = latest[-1] if latest and all(fact.claim is Claim.CONSTRAINT for fact in latest) else None
    if found is None or limit is None:
        return text
    thing = found["first"] or found["second"] or found["third"]
    if limit.bound == "inside":
        return f"{thing} must stay inside {'the node' if limit.value else 'the slice'}"
    if limit.keeps is not None or limit.about not in {*AXES, *ABSENT}:
        return f"{thing} must stay as it is" if limit.bound is None else text
    return f"no {thing} for us" if limit.bound is None and not limit.value else text
