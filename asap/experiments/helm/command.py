"""Commands of Helm in a script: ``helm install run . -f values.yaml --set-file workload_launcher=launcher.sh``."""

import re
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.named_file import NamedFile, below_variable, find_named
from asap.experiments.helm.chart import machine_of_chart
from asap.experiments.helm.release import is_helm_values, is_value
from asap.experiments.helm.set_values import with_set, with_value
from asap.experiments.shell import has_substitution, read_commands
from asap.experiments.shell.words import unquoted, written_words

_VERBS = frozenset(("install", "upgrade", "template"))
_SETS = ("--set", "--set-string")
_FROM_FILE = "--set-file"
_VALUES = ("-f", "--values")
_OPTION = re.compile(r"(--?[a-z-]+)(?:=(.*))?", re.DOTALL)


def released_values(text: str, path: Path) -> tuple[dict[str, Any], str | None] | None:
    """The values that the first command of Helm gives a chart that starts a job, and the machine of the chart; ``None``
    where there is none.

    Raises:
        ConfigError: a file that it names is not there, or malformed.
        UsageError: what it sets is not ``key=value``.
    """
    for command in read_commands(text):
        said = [] if command.assigns else [unquoted(word) for word in written_words(command.text)]
        if said[:1] == ["helm"] and _VERBS & set(said):
            values = _values(_options(said), path)
            return (values, machine_of_chart(_chart(said), path)) if is_helm_values(values) else None
    return None


def with_file(values: dict[str, Any], setting: str, path: Path) -> dict[str, Any]:
    """Values with the text of a file on top, as ``key=FILE`` says it; raises like :func:`released_values`."""
    key, _, named = setting.partition("=")
    return with_value(values, key, _found(named, path).text, str(path))


def _values(options: list[tuple[str, str]], path: Path) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in options:
        if name in _VALUES:
            values = _merged(values, _found(text, path).document().values)
    for name, text in options:
        if name == _FROM_FILE and is_value(text.partition("=")[0]):
            values = with_file(values, text, path)
        elif name in _SETS:
            values = with_set(values, text, str(path))
    return values


def _chart(said: list[str]) -> str:
    """The chart that is installed: the last word that is no option, nor the value of one."""
    valued = (*_SETS, _FROM_FILE, *_VALUES, "-n", "--namespace", "--version", "--timeout")
    pairs = zip(["", *said], said, strict=False)
    return [word for before, word in pairs if not word.startswith("-") and before not in valued][-1]


def _options(said: list[str]) -> list[tuple[str, str]]:
    """Options with their values, in their order."""
    found = []
    for word, following in zip(said, [*said[1:], ""], strict=True):
        option = _OPTION.fullmatch(word)
        if option is not None and option[1] in (*_SETS, _FROM_FILE, *_VALUES):
            found.append((option[1], option[2] if option[2] is not None else following))
    return found


def _found(named: str, path: Path) -> NamedFile:
    """A file from the folder of the script or one above it; what a variable begins is looked for below both."""
    below = below_variable(named)
    found = None if has_substitution(below) else find_named(below, path)
    if found is None:
        reason = f"gives Helm {plain(named, 80)}, which is not there"
        raise ConfigError(reason, where=str(path), hint="lay it beside the file")
    return found


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = dict(base)
    for key, value in over.items():
        below = both.get(key)
        both[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return both
