"""Command substitutions that write a path in another way: ``$(realpath models/x)``, ``$(cd models/x && pwd)``."""

import re

from asap.experiments.shell.words import unquoted

_ERRORS = re.compile(r"\s*2>\s*(?:/dev/null|&1)")
_SAME = re.compile(r"(?:realpath|readlink)(?:\s+-[\w-]+)*\s+(?P<path>\S+)|(?:echo|printf\s+'?%s'?)\s+(?P<said>\S+)")
_ENTERED = re.compile(r"cd\s+(?:--\s+)?(?P<path>\S+)\s*&&\s*pwd(?:\s+-[PL])?")
_BEGINS = re.compile(r"\s*(?:realpath|readlink|echo|printf|cd)\s")
_BESIDE = re.compile(r"[`$]\(|`|[;<>]")


def writes_path(text: str, start: int) -> bool:
    """Whether the commands of a substitution begin like one that does."""
    return _BEGINS.match(text, start) is not None


def path_of(inner: str) -> str | None:
    """What a substitution stands for, as far as a path is the same however it is written; ``None`` for any other.

    Args:
        inner: the commands, with the variables that are known. Of several that are tried one after the other, all have
            to write the same path.
    """
    tried = [_ERRORS.sub("", one).strip() for one in inner.split("||")]
    if any(_BESIDE.search(one) for one in tried):
        return None
    paths = {_path(one) for one in tried}
    return paths.pop() if len(paths) == 1 else None


def _path(command: str) -> str | None:
    found = _ENTERED.fullmatch(command) or _SAME.fullmatch(command)
    return None if found is None else unquoted(next(path for path in found.groups() if path is not None))
