"""Secrets in text: by their form, by the name before them, and by the values of this process's environment."""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from asap.core.text import REDACTED, redact

_OF_TOKENS = (
    "access|auth|refresh|bearer|api|id|session|security|oauth|deploy|private|hub|hf|git(?:hub|lab)|slack|bot|user"
)
_SECRET_NAME = re.compile(
    r"(?:(?:api|access|private|secret|account|encryption|signing)_?key|secret|password|passwd|pwd"
    r"|(?:^|db|user|root|admin|smtp|mysql|postgres|redis|ssh|my)pass"
    rf"|passphrase|authorization|credentials?|cookie|signature|(?:^|{_OF_TOKENS})_?token)$"
)
_NAME = (
    r"(?:api|access|private|secret|account|encryption|signing)[_-]?key|secret|password|passwd|passphrase|authorization"
    rf"|(?:{_OF_TOKENS})[_-]?token|(?<![\w-])(?<!per )token|(?:db|user|root|admin|smtp|mysql|redis|ssh)_?pass"
)
_ASSIGNED = re.compile(
    rf"(?i)(?={_NAME})(?:"  # looked for once, as few places have a name
    rf"((?:{_NAME})[\\\"']{{0,3}}[ \t]{{0,9}}=[ \t]{{0,9}}[\\\"']{{0,3}})(?![\\\"'])[^\s\"'\\,;&}}]+"  # name=value
    rf"|((?:{_NAME})[\\\"']{{0,3}}[ \t]{{0,9}}:[ \t]{{0,9}}[\\\"']{{1,3}})[^\s\"'\\][^\"'\\\n]*"  # name: "value"
    rf"|((?:{_NAME}):[ \t]{{0,9}}[>|][+-]?[ \t]{{0,9}}\n[ \t]{{1,99}})\S+"  # name: > and the value below
    rf"|((?:{_NAME}):[ \t]{{0,9}})[^\s\"'\\,;&}}]+(?=[ \t]*(?:#|,|;|}}|[\"']|\\n|$))"  # name: value, and no more
    rf"|((?:{_NAME}):)[^\s\"'\\,;&}}]+)",  # name:value
    re.MULTILINE,
)
_TOLD = re.compile(
    r"(?i)(\b(?:password|passphrase|passwd|secret(?: key)?|api key|access key|auth(?:entication)? token|token"
    r"|passwort|kennwort|mot de passe|contraseña|senha|parola|wachtwoord|пароль|密码)"
    r"(?:[ \t]*(?:is|was|will be|are|lautet|ist|est|es|é|è|和|是)\b|[ \t]*:)[ \t]+[\"'`]?)"
    r"(?=[^\s\"'`]{0,99}[0-9])(?=[^\s\"'`]{0,99}[A-Za-z])[^\s\"'`,;]{6,}"
)
"""In prose: only what has both digits and letters, as "the token is cut" tells none."""
_OPTION = re.compile(
    r"(?i)(--(?:[\w-]{0,40}-)?(?:password|passwd|token|api-key|secret|secret-key|access-key)"
    r"[ \t]+[\"']?)(?!-)[^\s\"']{6,}"
    r"|(\blogin[ \t]+\S{1,99}[ \t]+password[ \t]+)\S+"  # .netrc
    r"|(\bsshpass[ \t]+-p[ \t]*[\"']?)[^\s\"']+"
    r"|((?<!\S)-u[ \t]+[\w.@-]{1,60}:)[^\s\"']+"  # curl
    r"|(\bBasic[ \t]+)[0-9A-Za-z+/]{12,}={0,2}"
    r"|(\blogin[ \t]+)(?=[A-Za-z_-]{0,99}[0-9])[\w-]{20,}"
    r"|((?-i:\b[A-Z][A-Z0-9_]{0,40}(?:KEY|TOKEN|SECRET|PASSWORD))(?:[ \t]+|[ \t]*[=:][ \t]*)[\"']?)"
    r"(?=[^\s\"']{0,99}[0-9])(?=[^\s\"']{0,99}[A-Za-z])[^\s\"']{16,}"  # ENV NAME value
)
_RUN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{24,512}(?![A-Za-z0-9])")
_MANGLED = re.compile(r"L[bi]\d+E|EEE|ENS|NS\d|^I[A-Z]")
"""Names of C++ as compilers write them, which are in profiles and traces."""
_MIXED = 0.42
"""Share of neighbours of different classes (lower, upper, digit) from which a run of letters is random: of random ones
62 % in the mean, of names in public profiles and traces at most 0.5, with one digit (measured 2026-11-28)."""
_IN_ADDRESS = re.compile(
    r"((?<=://)[^/\s:@]{0,200}:)[^/\s@]{1,500}(?=@)"
    r"|((?<=https://)|(?<=http://))[^/\s:@]{8,500}(?=@)"
    r"|([?&](?:sig|se_sig|signature|x-amz-(?:signature|security-token|credential)|x-goog-(?:signature|credential)"
    r"|(?:access_|auth_|id_|refresh_)?token|api[_-]?key|apikey|key|client_secret|secret|password|code)=)[^&\s\"'#]+",
    re.IGNORECASE,
)
_SETTING = re.compile(r"(\W{0,200}([\w.-]{1,200})[\"']?\s{0,9}[:=]\s{0,9})\S")
_PATTERNS = (_ASSIGNED, _TOLD, _OPTION, _IN_ADDRESS)
_NO_SECRET = re.compile(
    r"(?i)[-+]?\d{1,12}(?:\.\d{1,9})?[a-z%]{0,3}|\$\{?[^}]{0,200}\}?.{0,9}|\{[^}]{0,99}\}?|<[^>]{0,99}>"
    r"|\*{1,99}|x{1,8}|null|none|true|false|yes|no|str|string|not|unset|os\..{0,200}|required|optional"
)
"""A figure, a variable, a place for a value, a type."""
_SHORTEST_SECRET = 8
_OF_SHELLS = ("PWD", "OLDPWD")
"""Folders, and no passwords."""


def redacted(text: str) -> str:
    """``text`` without keys, passwords and the secret values of this process's environment."""
    return without(text, environment_secrets())


def redacted_setting(line: str) -> str:
    """A line of a configuration, or of a difference of two, without the whole value of a key that names a secret."""
    found = _SETTING.match(line)
    return f"{found[1]}{REDACTED}" if found and names_secret(found[2]) else redacted(line)


def without(text: str, secrets: tuple[str, ...]) -> str:
    """``text`` without some values, and without what looks like a secret."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    text = redact(text)
    for pattern in _PATTERNS:
        text = pattern.sub(_struck, text)
    return _RUN.sub(lambda found: REDACTED if _is_random(found[0]) else found[0], text)


def _is_random(run: str) -> bool:
    """Whether letters and digits follow each other as in a key, and in no name."""
    classes = ["l" if each.islower() else "u" if each.isupper() else "d" for each in run]
    changes = sum(one != other for one, other in pairwise(classes))
    known = len(set(classes)) == 3 and classes.count("d") > 1
    return known and changes >= _MIXED * len(run) and not _MANGLED.search(run)


def _struck(found: re.Match[str]) -> str:
    """What stands before a secret, without it; figures, places for values, and types are none."""
    before = next((group for group in found.groups() if group is not None), "")
    value = found[0][len(before) :]
    return found[0] if REDACTED in value or _NO_SECRET.fullmatch(value) else f"{before}{REDACTED}"


def strip_secrets(value: Any) -> Any:
    """Plain JSON with every text redacted."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {key: REDACTED if _holds_secret(key, item) else strip_secrets(item) for key, item in value.items()}
    return [strip_secrets(item) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def names_secret(name: str) -> bool:
    """Whether what goes by a name is a secret."""
    return _SECRET_NAME.search(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


def environment_secrets() -> tuple[str, ...]:
    """Secret values of this process's environment, the longest first."""
    named = {
        value
        for name, value in os.environ.items()
        if (names_secret(name) or name.upper().endswith("_KEY")) and name not in _OF_SHELLS
    }
    values = (value for value in named if len(value) >= _SHORTEST_SECRET)
    return tuple(sorted(values, key=len, reverse=True))


def _holds_secret(name: object, value: Any) -> bool:
    return isinstance(value, str) and bool(value) and names_secret(str(name)) and not _NO_SECRET.fullmatch(value)
