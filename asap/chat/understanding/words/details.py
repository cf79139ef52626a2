"""Whether a question asks for more than the short answer: "explain 1 in detail", "all the reasons, with sources"."""

import re

_DETAILS = re.compile(
    r"\b(?:details?|detailed|in (?:full|depth)|at length|thorough\w*|elaborate|everything|long version"
    r"|full (?:list|story)|all (?:of )?(?:the |its |their )?(?:reasons|costs|trade-?offs|pros|cons)"
    r"|sources?|citations?|cite\w*|references?)\b",
    re.I,
)


def wants_details(text: str) -> bool:
    """Whether it asks for all there is."""
    return _DETAILS.search(text) is not None
