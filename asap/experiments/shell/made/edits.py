"""Edits of a text: substitutions of sed, ``s/STAGE/3/``, and assignments of yq and jq, ``.training.steps = 8``."""

import json
import re
from typing import Any

from asap.core.errors import AsapError
from asap.experiments.files.yaml_text import parse_yaml

_DELIMITERS = "/|#,@:"
_LITERAL = r"[\w\s\"':,@%#<>{}=/-]|\\[./]"
_PATTERN = re.compile(rf"\^?(?:{_LITERAL}|\.\*|\[0-9\](?:\*|\\?\+)|\\s\*|\[\[:(?:space|blank):\]\]\*)+\$?")
_TOKENS = re.compile(r"\.\*|\[0-9\](?:\*|\\?\+)|\\s\*|\[\[:(?:space|blank):\]\]\*|\\.|\^|\$|.", re.DOTALL)
_WILD = {
    ".*": ".*",
    "[0-9]*": r"\d*",
    r"[0-9]\+": r"\d+",
    "[0-9]+": r"\d+",
    r"\s*": r"\s*",
    "[[:space:]]*": r"\s*",
    "[[:blank:]]*": r"[ \t]*",
    "^": "^",
    "$": "$",
}
_ANCHORS, _MOST_WILD = "^$", 1
_ASSIGNMENT = re.compile(r"\s*((?:\.[A-Za-z_][\w-]*|\.\"[\w -]+\")+)\s*=\s*(.+?)\s*", re.ASCII | re.DOTALL)
_KEY = re.compile(r"\.(?:([\w-]+)|\"([^\"]+)\")")
_LONGEST, _LONGEST_WILD, _LONGEST_LINE = 1_000_000, 100_000, 400


def is_substitution(word: str) -> bool:
    """Whether a word is a substitution of sed."""
    return len(word) > 3 and word[0] == "s" and word[1] in _DELIMITERS and word.count(word[1]) >= 3


def substituted(text: str, edit: str) -> str | None:
    """The text after a substitution of plain words, in which ``.*`` and numbers may stand; ``None`` for any other."""
    _, old, new, flags = (*edit[1:].split(edit[1]), "")[:4]
    if flags not in ("", "g") or not _PATTERN.fullmatch(old) or "\\" in new or "&" in new:
        return None
    tokens = _TOKENS.findall(old)
    wild = sum(token in _WILD and token not in _ANCHORS for token in tokens[:-1])
    lines = text.split("\n")
    if wild > _MOST_WILD or len(text) + text.count(old) * len(new) > _LONGEST:
        return None
    if any(token in _WILD for token in tokens) and (len(text) > _LONGEST_WILD or max(map(len, lines)) > _LONGEST_LINE):
        return None
    pattern = re.compile("".join(_WILD.get(token) or re.escape(token.removeprefix("\\")) for token in tokens), re.ASCII)
    found = "\n".join(pattern.sub(lambda _: new, line, count=0 if flags else 1) for line in lines)
    return found if len(found) <= _LONGEST else None


def assigned(text: str, edit: str) -> str | None:
    """The text of a mapping after assignments, as JSON; ``None`` where one is none of a plain value."""
    try:
        values, _ = parse_yaml(text, "edit")
        for part in edit.split("|"):
            found = _ASSIGNMENT.fullmatch(part)
            if found is None or "$" in found[2] or not isinstance(values, dict):
                return None
            _put(values, [bare or quoted for bare, quoted in _KEY.findall(found[1])], json.loads(found[2]))
        return json.dumps(values)
    except (AsapError, ValueError, TypeError):
        return None


def _put(values: dict[str, Any], keys: list[str], value: Any) -> None:
    """Set a value below its keys; raises TypeError where one on the way is no mapping."""
    for key in keys[:-1]:
        values = values.setdefault(key, {})
        if not isinstance(values, dict):
            raise TypeError(key)
    values[keys[-1]] = value
