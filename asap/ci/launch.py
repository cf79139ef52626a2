"""Launch scripts: the configuration and the ``key=value`` overrides of a MaxText command, read without running it.

Variables are replaced where the script itself gives them a plain value; an override that still holds a variable or a
substitution is left out, and named.
"""

import re
import shlex
from dataclasses import dataclass

SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")

_COMMAND = re.compile(r"(?i)(?:^|[./])maxtext[\w./]*[./]train(?:_compile)?(?:\.py)?$")
_ASSIGNMENT = re.compile(
    r"\s*(?:export\s+|readonly\s+|local\s+)?([A-Za-z_]\w*)=(\"[^\"$`]*\"|'[^']*'|[^\s\"'$`;&|]*)\s*(?:#.*)?$"
)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::?-([^}$`]*))?\}|([A-Za-z_]\w*))")
_OVERRIDE = re.compile(r"[A-Za-z_]\w*=")
_ENDS = frozenset(";&|<>()")
_HARDWARE = ("--tpu-type", "--device-type")
_SLICES = "--num-slices"
_LONGEST_NESTING = 3
_LONGEST_COMMAND = 300
_LONGEST_LINE = 20_000
_LONGEST_VALUE = 200


@dataclass(frozen=True)
class Launch:
    """One MaxText command of a script."""

    config: str | None
    overrides: tuple[str, ...]
    line: int
    hardware: str | None = None
    slices: int | None = None
    unknown: tuple[str, ...] = ()


def read_launch(script: str) -> Launch | None:
    """The first MaxText command of a script; ``None`` if it has none."""
    known: dict[str, str] = {}
    for number, line in _joined(script):
        assignment = _ASSIGNMENT.fullmatch(line) if len(line) <= _LONGEST_LINE else None
        if assignment:
            known[assignment[1]] = assignment[2].strip("\"'")
            continue
        line = _expand(line[:_LONGEST_LINE], known)[:_LONGEST_LINE]
        launch = _command(line, number) if "maxtext" in line.casefold() else None
        if launch is not None:
            return launch
    return None


def _joined(script: str) -> list[tuple[int, str]]:
    """Lines with their continuations, by the number of the first."""
    lines: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, line in enumerate(script.splitlines(), 1):
        start = start if pending else number
        if line.endswith("\\"):
            pending += line[:-1] + " "
        else:
            lines.append((start, pending + line))
            pending = ""
    return [*lines, (start, pending)] if pending else lines


def _expand(line: str, known: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1] or found[3]
        text = known.get(name, found[2] if found[2] is not None else found[0])
        return text if len(text) <= _LONGEST_VALUE else found[0]

    return _VARIABLE.sub(value, line)


def _command(line: str, number: int, depth: int = 0) -> Launch | None:
    words = _words(line)
    commands = (i for i, word in enumerate(words) if len(word) <= _LONGEST_COMMAND and _COMMAND.search(word))
    start = next(commands, None)
    if start is None:
        nested = (word for word in words if depth < _LONGEST_NESTING and " " in word and "maxtext" in word.casefold())
        found = next((launch for word in nested if (launch := _command(word, number, depth + 1))), None)
        return found and _with_hardware(found, words)
    arguments = []
    for word in words[start + 1 :]:
        if set(word) <= _ENDS:
            break
        arguments.append(word)
    config = next((word for word in arguments if word.endswith((".yml", ".yaml")) and "=" not in word), None)
    overrides = [word for word in arguments if _OVERRIDE.match(word)]
    unknown = tuple(word.partition("=")[0] for word in overrides if _is_open(word))
    return _with_hardware(
        Launch(
            config=None if config and _is_open(config) else config,
            overrides=tuple(word for word in overrides if not _is_open(word)),
            line=number,
            unknown=unknown,
        ),
        words,
    )


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return line.split()


def _with_hardware(launch: Launch, words: list[str]) -> Launch:
    options = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        key, separator, value = word.partition("=")
        if key in (*_HARDWARE, _SLICES):
            options[key] = value if separator else following
    hardware = next((options[key] for key in _HARDWARE if key in options and not _is_open(options[key])), None)
    slices = options.get(_SLICES, "")
    return Launch(
        config=launch.config,
        overrides=launch.overrides,
        line=launch.line,
        hardware=launch.hardware or hardware,
        slices=launch.slices or (int(slices) if re.fullmatch(r"[1-9]\d{0,4}", slices, re.ASCII) else None),
        unknown=launch.unknown,
    )


def _is_open(word: str) -> bool:
    return "$" in word or "`" in word
