"""Where a command's output goes, which is none of its arguments: ``--bf16 > train.log 2>&1``."""

import re

_TARGET = r"[ \t]*(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'|;&()<>])+"
_REDIRECTION = re.compile(
    r"(?P<quoted>\"(?:\\.|[^\"\\])*\"|'[^']*')"
    rf"|(?<![^\s\"'])(?:[\d&]?>{{1,2}}(?:&[\d-]|{_TARGET})|\d?<(?![<(]){_TARGET})",
    re.DOTALL,
)
_OPTION = re.compile(r"(?:^|\s)--[A-Za-z]")


def without_redirections(text: str) -> str:
    """A command without its redirections; a quoted text stays as it is, unless it is a command itself."""
    return _REDIRECTION.sub(_left, text) if ">" in text or "<" in text else text


def _left(found: re.Match[str]) -> str:
    quoted = found["quoted"]
    if not quoted:
        return ""
    return f"{quoted[0]}{without_redirections(quoted[1:-1])}{quoted[-1]}" if _OPTION.search(quoted) else quoted
