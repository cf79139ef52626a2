"""Launch scripts: the configuration and the ``key=value`` overrides of a MaxText command, read without running it.

Variables are replaced where the script itself gives them a plain value; an override that still holds a variable or a
substitution is left out, and named. Launchers around the command (xpk) say the hardware.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from asap.experiments.launch.launch import Launch
from asap.experiments.launch.shell import LONGEST_LINE, assignment, expand, has_substitution, logical_lines, words
from asap.flags.environment import is_performance_variable

SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")

_COMMAND = re.compile(r"(?i)(?:^|[./])maxtext[\w./]*[./]train(?:_compile)?(?:\.py)?$")
_RUNNER = re.compile(r"(?:^|[./])benchmarks[./]benchmark_runner(?:\.py)?$")
_OVERRIDE = re.compile(r"[A-Za-z_]\w*=")
_SHELL_OPERATORS = frozenset(";&|<>()")
_HARDWARE = ("tpu-type", "device-type")
_SLICES = ("num-slices", "num-nodes")
_MODEL = "model-name"
_ENVIRONMENT = "M_"
_DEEPEST_NESTING = 3
_LONGEST_COMMAND = 300


_Read = Callable[[str, int, Mapping[str, str]], Launch | None]


@dataclass(frozen=True)
class Call:
    """Another script that a script runs, with its arguments and the variables that it finds."""

    script: str
    known: Mapping[str, str]


def read_launch(script: str, known: Mapping[str, str] | None = None) -> Launch | None:
    """The MaxText command of a script; ``None`` if it has none.

    Of several, the one that leaves least open, else the first; the others are counted.

    Args:
        script: its text.
        known: variables that it is started with; arguments are called ``1``, ``2``, …
    """
    found = list(_launches(script, _maxtext_command, known))
    if not found:
        return None
    best = min(found, key=lambda launch: len(launch.unknown))
    return replace(best, others=len(found) - 1)


def read_benchmark(script: str) -> Launch | None:
    """The start of MaxText's benchmark runner in a script, with the name of the benchmark; ``None`` if it has none."""
    return next(_launches(script, _runner_command), None)


def read_call(script: str) -> Call | None:
    """The first call of another script; ``None`` if there is none."""
    known: dict[str, str] = {}
    for _, line in logical_lines(script):
        if (assigned := assignment(line)) is not None:
            _assign(known, assigned[0], expand(assigned[1], known))
            continue
        said = words(expand(line, known)) if ".sh" in line and len(line) <= LONGEST_LINE else []
        said = said[1:] if said[:1] in (["bash"], ["sh"], ["source"], ["."]) else said
        if said and said[0].endswith(SCRIPTS):
            arguments = {str(place): word for place, word in enumerate(said[1:10], 1) if not has_substitution(word)}
            return Call(said[0], {**known, **arguments})
    return None


def _launches(script: str, read: _Read, given: Mapping[str, str] | None = None) -> Iterator[Launch]:
    known, exported = dict(given or {}), set(given or {})
    for number, line in logical_lines(script):
        if len(line) > LONGEST_LINE:
            continue
        if (assigned := assignment(line)) is not None:
            name, value = assigned
            _assign(known, name, expand(value, known))
            exported |= {name} if line.lstrip().startswith("export") else set()
            continue
        folded = line.casefold()
        if "maxtext" in folded or "benchmark" in folded:
            launch = read(expand(line, known), number, {name: known[name] for name in exported & known.keys()})
            if launch is not None:
                yield launch


def _assign(known: dict[str, str], name: str, value: str) -> None:
    """Remember a value; one that only a run can tell makes the name open again, its text else stays."""
    if "$(" in value or "`" in value:
        known.pop(name, None)
    else:
        known[name] = value


def _maxtext_command(line: str, number: int, exported: Mapping[str, str], depth: int = 0) -> Launch | None:
    said = words(line)
    commands = (i for i, word in enumerate(said) if len(word) <= _LONGEST_COMMAND and _COMMAND.search(word))
    start = next(commands, None)
    if start is None:
        nested = (word for word in said if depth < _DEEPEST_NESTING and " " in word and "maxtext" in word.casefold())
        inner = (_maxtext_command(word.replace("\n", " ; "), number, exported, depth + 1) for word in nested)
        found = next((launch for launch in inner if launch), None)
        return found and _with_hardware(found, said)
    arguments = []
    for word in said[start + 1 :]:
        if set(word) <= _SHELL_OPERATORS:
            break
        arguments.append(word)
    config = next((word for word in arguments if word.endswith((".yml", ".yaml")) and "=" not in word), None)
    environment = _environment(said[:start], exported if depth == 0 else {})
    given = [word for word in arguments if _OVERRIDE.match(word)]
    keys = {word.partition("=")[0] for word in given}
    given += [f"{key}={value}" for key, value in _settings_of(environment) if key not in keys]
    strays = (word for word in arguments if word != config and not _OVERRIDE.match(word) and not word.isdigit())
    launch = Launch(
        config=None if config and has_substitution(config) else config,
        overrides=tuple(word for word in given if not has_substitution(word)),
        line=number,
        unknown=tuple(word.partition("=")[0] for word in given if has_substitution(word)),
        strays=tuple(word for word in strays if not has_substitution(word)),
        environment={name: value for name, value in environment.items() if value and is_performance_variable(name)},
    )
    return _with_hardware(launch, said)


def _runner_command(line: str, number: int, _: Mapping[str, str]) -> Launch | None:
    said = words(line)
    if not any(len(word) <= _LONGEST_COMMAND and _RUNNER.search(word) for word in said):
        return None
    name = _options(said).get(_MODEL)
    if name is None or has_substitution(name):
        return None
    return _with_hardware(Launch(None, (), number, benchmark=name), said)


def _environment(before: list[str], exported: Mapping[str, str]) -> dict[str, str]:
    """Variables of the command: those that the script exports, and those that are set on its line."""
    set_here = (word.partition("=") for word in before if _OVERRIDE.match(word))
    both = {**exported, **{name: value for name, _, value in set_here}}
    wanted = (name for name in both if name.startswith(_ENVIRONMENT) or is_performance_variable(name))
    return {name: _closed(both[name]) for name in wanted}


def _closed(value: str) -> str:
    return " ".join(word for word in value.split() if not has_substitution(word))


def _settings_of(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Settings that MaxText takes from variables called ``M_<KEY>``."""
    taken = ((name.removeprefix(_ENVIRONMENT).lower(), value) for name, value in environment.items())
    return [(key, value) for key, value in taken if f"{_ENVIRONMENT}{key.upper()}" in environment]


def _with_hardware(launch: Launch, said: list[str]) -> Launch:
    options = _options(said)
    hardware = next((options[key] for key in _HARDWARE if key in options and not has_substitution(options[key])), None)
    slices = next((options[key] for key in _SLICES if key in options), "")
    count = int(slices) if re.fullmatch(r"[1-9]\d{0,4}", slices, re.ASCII) else None
    return replace(launch, hardware=launch.hardware or hardware, slices=launch.slices or count)


def _options(said: list[str]) -> dict[str, str]:
    """Options of a launcher by their name, with hyphens and without the leading ones."""
    options = {}
    for word, following in zip(said, [*said[1:], ""], strict=True):
        key, separator, value = word.partition("=")
        if key.startswith("--"):
            options[key[2:].replace("_", "-")] = value if separator else following
    return options
