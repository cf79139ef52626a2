"""Expansions that change a value: ``${MODEL##*/}``, ``${NAME%.sh}``, ``${SIZE^^}``, ``${NAME//-/_}``."""

import re

_LONGEST = 500
_CUT = re.compile(r"(##?|%%?)(.+)", re.DOTALL)
_REPLACED = re.compile(r"/(/?)([^/#%][^/]*)/([^/&]*)", re.DOTALL)
_OF_CASE = {",,": str.lower, "^^": str.upper, "^": lambda value: value[:1].upper() + value[1:]}
_QUOTED = re.compile(r"\"[^\"*?\[]*\"|'[^'*?\[]*'")
_UNREAD = re.compile(r"[\\$`\"'(]")
"""Within a pattern or value: what has a meaning that is not looked into."""
_GLOB = re.compile(r"[*?\[]")
_PART = re.compile(r"\*|\?|\[\w-\w\]|[^*?\[]")
"""Of a pattern: any text, any character, one of a range, or itself."""


def edited(value: str, edit: str) -> str | None:
    """What an expansion makes of a value; ``None`` where it is not one of these.

    Args:
        value: of the variable.
        edit: what stands after the name, with the variables that are known.
    """
    if len(value) > _LONGEST or len(edit) > _LONGEST or _UNREAD.search(value):
        return None
    if edit in _OF_CASE:
        return _OF_CASE[edit](value)
    edit = _QUOTED.sub(lambda found: found[0][1:-1], edit)
    if _UNREAD.search(edit):
        return None
    if (cut := _CUT.fullmatch(edit)) is not None:
        return _without(value, cut[1], cut[2])
    if (replaced := _REPLACED.fullmatch(edit)) is not None and not _GLOB.search(replaced[2]):
        return value.replace(replaced[2], replaced[3], -1 if replaced[1] else 1)
    return None


def _without(value: str, kind: str, pattern: str) -> str | None:
    """A value without the shortest part at its start (``#``) or end (``%``) that matches; doubled, the longest."""
    parts: list[str] = _PART.findall(pattern)
    if "".join(parts) != pattern or parts.count("*") > 1:
        return None
    from_end = kind[0] == "%"
    any_ = ".*?" if len(kind) == 1 else ".*"
    signs = {"*": any_, "?": "."}
    written = [part if len(part) > 1 else signs.get(part, re.escape(part)) for part in parts]
    if not from_end:
        return re.sub(f"^{''.join(written)}", "", value, count=1, flags=re.DOTALL)
    return re.sub(f"^{''.join(written[::-1])}", "", value[::-1], count=1, flags=re.DOTALL)[::-1]
