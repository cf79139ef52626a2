"""Secrets of 52 kinds to plant: those that the redactor was written for, and others that it was not.

The others were listed before the redactor was looked at; every second kind was put away while it was mended (of 104
such secrets 96 were left before, 16 after, and none since those were looked at).
"""

import random
import re
import string

from tests.cases import kept

KEPT = kept(__file__)
ALNUM, HEX = string.ascii_letters + string.digits, string.digits + "abcdef"
KINDS = KEPT["KNOWN"] | KEPT["OTHERS"]
"""Texts with ``{20}`` for a secret of 20 characters, ``{20h}`` for hexadecimal ones."""


def drawn(draw: random.Random, length: int, letters: str = ALNUM) -> str:
    """A value with a letter and a digit."""
    return "".join(draw.choice(letters) for _ in range(length - 4)) + ("7a3b" if letters == HEX else "Q7z4")


def planted(kind: str, count: int) -> tuple[list[str], list[str]]:
    """Texts that hold a secret of a kind, and the values that must not be left of them."""
    draw, values = random.Random(kind), list[str]()

    def value(found: re.Match[str]) -> str:
        values.append(drawn(draw, int(found[1]), HEX if found[2] else ALNUM))
        return values[-1]

    return [re.sub(r"\{(\d+)(h?)\}", value, KINDS[kind]) for _ in range(count)], values
