"""Words of a figure that is wanted, and was not measured: "need 2k tok/s/chip", "we have to hit 45 % mfu"."""

import re

_WISHES = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|so|but|and|well|hm+|now)\W+)*(?:i |we |you |they |boss |mgmt |management |customer )*"
    r"(?:'?d )?(?:really |just |only |at least )*(?:need|want|require|must|have to|has to|gotta|got to|should"
    r"|would like|like|aim|shoot|target|looking)(?:s|ing)?\b"
    r"|\b(?:i|we|they|boss|management|customer) (?:really |just |only )*(?:needs?|wants?|requires?|must|have to|has to"
    r"|gotta|got to)\b"
    r"|\b(?:target(?:ed)?(?: is)?|goal(?: is)?|sla)\b",
    re.I,
)
NEEDED = re.compile(
    r"\b(?:we|i) need\b|\b(?:memory|hbm|mem) budget\b|\bmay (?:not|go)\b"
    r"|\b(?:obviously|clearly|surely|certainly|definitely|of course|for certain)\b",
    re.I,
)
"""Words of a wish, or of emphasis, that state a constraint where something is kept: "we need tp 8 to stay"."""


def wishes_figure(text: str) -> bool:
    """Whether it says what is to be reached."""
    return _WISHES.search(text) is not None
