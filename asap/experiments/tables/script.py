"""Scripts that start a program with a table: the files that they name, and settings on the command."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UnreadError
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, below_variable, find_named, missing
from asap.experiments.processes import add_processes, set_devices
from asap.experiments.shell import Command, Start, environment_of, has_substitution, options, words
from asap.experiments.tables.reader import plain_name, read_table
from asap.stacks.registry import commanded, folder_of, irrelevant, score
from asap.stacks.spec import Command as CommandWords
from asap.stacks.spec import Spec
from asap.stacks.stack_settings import dotted
from asap.stacks.words import word_keys

_FILES = (".yml", ".yaml", ".json", ".toml")
_BESIDE = "lay it beside the script, or give it as --config"
_OF_NODE = ("nproc_per_node", "nproc", "npernode")  # options of launchers that say devices of a node
_ASSIGNED = re.compile(r"\+*([A-Za-z_][\w.]*)=(.*)", re.ASCII | re.DOTALL)


def starts(command: Command) -> bool:
    """Whether a command starts a stack that has a table."""
    return _stack_of(command) is not None


def is_setting(key: str) -> bool:
    """Whether an override is a setting of one of the stacks: these are in sections, as ``trainer.mp``."""
    known = {word for spec in commanded() for word in spec.words}
    return any(plain_name(spec, key) in known for spec in commanded())


def read_table_script(started: Start, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a script starts.

    Raises:
        ConfigError: a file that it names is not there, or what :func:`read_table` raises.
        UsageError: an override is not ``key=value``.
    """
    start, path = started.command, started.path
    spec = _stack_of(start)
    assert spec is not None
    _check(spec, start, path)
    said: dict[str, Any] = {}
    documents = [found for named in _files(spec, start) if (found := _document(spec, named, started)) is not None]
    for document in documents:
        said |= dotted(document.values)
    given = _settings(spec, start)
    of_file = _command(spec).variable is not None
    if not said and (of_file or not given):
        place = "Python, without a file that it names" if of_file else "its program"
        reason = f"starts {spec.name} with settings that stand in {place}, which is not read"
        raise UnreadError(reason, where=started.where, hint=spec.prints or None)
    models = spec.model.name.keys if spec.model.name else ()
    undecided = frozenset(key for key, value in given.items() if has_substitution(value) and key not in models)
    said |= {key: value for key, value in given.items() if key not in undecided}
    said = {key: value for key, value in said.items() if plain_name(spec, key) not in undecided}
    alone = (pattern := _command(spec).alone) and re.search(pattern, start.text)
    known = set_devices(1, experiment) if alone else add_processes(started, experiment)
    read = read_table(spec, _add_node(spec, said, start), path, overrides, known, undecided)
    of_workload = {key for words in spec.workload.values() for key in word_keys(*words)}
    if others := sorted(undecided - (spec.words - of_workload)):
        note = f"set by a variable whose value is not said: {', '.join(plain(key, 60) for key in others)}"
        read = read.knowing(note)
    return read


def _check(spec: Spec, start: Command, path: Path) -> None:
    """Raise ConfigError where the program does something else than train all parameters of a decoder on tokens."""
    for pattern, reason in _command(spec).wrong.items():
        if (found := re.search(pattern, start.text)) is not None:
            shown = plain(found[1] if found.re.groups else found[0], 60).strip()
            hint = "give a run that trains all parameters of a decoder on tokens"
            raise ConfigError(f"starts {shown}: {reason}", where=f"{path}:{start.line}", hint=hint)


def _add_node(spec: Spec, said: Mapping[str, Any], start: Command) -> dict[str, Any]:
    """The settings with the devices of a node, which the launcher is told."""
    key = spec.axes.node.key(said) if spec.axes.node else None
    each = next((one.words[0] for one in options(start.text) if one.name in _OF_NODE and one.words), None)
    return dict(said) if key is None or each is None or said.get(key) is not None else {**said, key: each}


def _stack_of(command: Command) -> Spec | None:
    return next((one for one in commanded() if _starts(_command(one), command)), None)


def _starts(known: CommandWords, command: Command) -> bool:
    if known.signs and not any(sign.replace("_", "-") in command.text or sign in command.text for sign in known.signs):
        return False
    if re.search(known.program, command.text) is None:
        return False
    said = {_strip_prefix(known, option.name) for option in options(command.text)} if known.signs else set[str]()
    return not known.signs or len(said & {*known.signs}) >= known.least


def _strip_prefix(known: CommandWords, name: str) -> str:
    return next((name.removeprefix(each) for each in known.prefixes if name.startswith(each)), name)


def _settings(spec: Spec, start: Command) -> dict[str, str]:
    """What the command says of settings: options, ``key=value``, and what its first word names."""
    known, rest = _command(spec), _rest(spec, start)
    given = {option.name: " ".join(option.words) or "true" for option in options(rest)}
    given |= {found[1]: found[2].strip("\"'") for word in words(rest) if (found := _ASSIGNED.fullmatch(word))}
    first = next(iter(words(rest)), "-")
    if known.named and not first.startswith("-") and "=" not in first:
        given.setdefault(known.named, first)
    read = spec.words | irrelevant(folder_of(spec))
    given = {plain_name(spec, _strip_prefix(known, key)): value for key, value in given.items()}
    every = bool(irrelevant(folder_of(spec))) and not known.positional and not known.variable
    given = {key: value for key, value in given.items() if key not in known.config}
    return {key: value for key, value in given.items() if every or "." in key or key in read}


def _rest(spec: Spec, start: Command) -> str:
    """What follows the program."""
    found = re.search(_command(spec).program, start.text)
    return start.text[found.end() :] if found else ""


def _command(spec: Spec) -> CommandWords:
    assert spec.command is not None
    return spec.command


def _files(spec: Spec, start: Command) -> list[str]:
    """Files of settings, in the order in which later ones win."""
    rest, command = _rest(spec, start), _command(spec)
    named = [one.words[0] for one in options(rest) if one.name in command.config and one.words]
    named += [found[2] for word in words(rest) if (found := _ASSIGNED.fullmatch(word)) and found[1] in command.config]
    if command.positional:
        found = [word for word in words(rest) if word.endswith(_FILES) and not word.startswith("-") and "=" not in word]
        named += found[:1] if spec.axes.node else found
    if not named and command.variable and (said := environment_of(start).get(command.variable)):
        named = [said]
    named = list(dict.fromkeys(name.strip("\"'") for name in named))
    return named or ([command.by_default] if command.by_default else [])


def _document(spec: Spec, named: str, started: Start) -> Document | None:
    """The file of that name; ``None`` where a repository's own, which counts where none is named, is not there."""
    start, path, command = started.command, started.path, _command(spec)
    below = below_variable(named)
    forms = command.places if not below.endswith(_FILES) else ()
    places = [below, *(form.format(below) for form in forms)]
    readable = [] if has_substitution(below) else places
    found = next((one for place in readable if (one := find_named(place, path, started.files)) is not None), None)
    if found is None and named == command.by_default:
        return None
    if found is None:
        shown = below if has_substitution(below) else named
        raise missing(f"starts {spec.name} with", shown, path, "; ".join(filter(None, (_BESIDE, spec.prints))))
    document = found.document() if found.path.suffix in _FILES else None
    said = {plain_name(spec, key): value for key, value in dotted(document.values if document else {}).items()}
    known = document is not None and (found.path.suffix == ".toml" or score(spec.files, said))
    if document is None or (spec.files.needs and not known):
        reason = f"starts {plain(named, 80)}, settings of {spec.name} of a kind that is not read"
        raise ConfigError(reason, where=f"{path}:{start.line}", hint=spec.prints or None)
    return document
