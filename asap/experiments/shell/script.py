"""The way through a script: what it sets as it goes, the branches that it takes, and the commands that it comes to."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from asap.core.numbers import digits
from asap.experiments.files.documents import read_text
from asap.experiments.files.named_file import Brought, below_variable, find_brought
from asap.experiments.shell.branches import Branches
from asap.experiments.shell.chosen import with_chosen
from asap.experiments.shell.conditions import holds
from asap.experiments.shell.functions import arguments_of, functions_of
from asap.experiments.shell.lines import LONGEST_LINE, Line, logical_lines
from asap.experiments.shell.slurm import slurm_variables
from asap.experiments.shell.variables import expand, has_substitution
from asap.experiments.shell.words import simple_commands, unquoted, written_words

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.ASCII | re.DOTALL)
_DEFAULT = re.compile(r":\s+\"?\$\{([A-Za-z_]\w*):?=(.*?)\}\"?", re.ASCII | re.DOTALL)
_OPTION = re.compile(r"(?:^|\s)--[a-z]")
_DECLARING = frozenset(("export", "readonly", "local", "declare", "typeset"))
_SILENT = frozenset(("echo", "printf", "unset", "shift", "set"))
_FILLS = re.compile(r"^(?:echo|printf)\s.*>\s*\S+\.(?:ya?ml|json|toml|conf)[\"']?\s*$", re.DOTALL)
"""Text that is printed into a configuration is none of a command, and makes its file."""
_DEEPEST_EVAL = 3
_SOURCE = re.compile(r"^[ \t]*(?:source|\.)[ \t]+(.+?)[ \t]*$", re.MULTILINE)


@dataclass
class Scope:
    """Variables, as they are when a command is reached."""

    variables: dict[str, str | None] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    fixed: dict[str, str] = field(default_factory=dict)
    """Those that are ``readonly``: nothing changes them."""
    functions: dict[str, tuple[Line, ...]] = field(default_factory=dict)
    """Bodies of functions that can be called."""
    evaluates: int = 0
    """How deep ``eval`` is within ``eval``."""
    evaluated: int = 0
    """Characters that it was given so far."""

    def environment(self) -> dict[str, str]:
        """What commands find in their environment, in the order in which a script says it."""
        known = {name: value for name, value in self.variables.items() if value is not None}
        return {name: value for name, value in known.items() if name in self.exported}

    def assign(self, name: str, value: str, appended: bool, certain: bool) -> None:
        """Remember a value; one that only a run can tell makes the name open, an addition that may not be made its
        rest."""
        if name in self.fixed:
            return
        before = self.variables.get(name, "")
        if appended:
            value = "" if before is None else before + value
        is_open = _is_substituted(value) or (appended and before is None)
        if not certain and before and value.startswith(before):
            value = f"{before} ${{{name}}}"
        elif not certain:
            is_open = value != self.variables.get(name)
        self.variables[name] = None if is_open else value

    def shift(self, by: int) -> None:
        """Leave out the first arguments."""
        given = [
            self.variables[key] or "" for key in sorted(filter(str.isdigit, self.variables), key=int) if key != "0"
        ]
        if given:
            self.variables = {key: value for key, value in self.variables.items() if not key.isdigit() or key == "0"}
            self.variables |= arguments_of(given[by:])


def _is_substituted(value: str) -> bool:
    """Whether only a run can tell a value; of several arguments those without a substitution are known."""
    return ("$(" in value or "`" in value) and _OPTION.search(value) is None


@dataclass(frozen=True)
class Command:
    """A simple command, or an assignment, with the variables replaced that are known."""

    text: str
    written: str
    """As the script has it."""
    line: int
    certain: bool
    """Whether it is run: no condition before it is undecided."""
    scope: Scope
    """Shared by all commands: read it before the next one."""
    assigns: bool = False
    document: str = ""
    """The here-document of its line, with the variables replaced that are known."""
    cut: str = ""
    """What a comment in the middle of it keeps from it."""


def read_commands(script: str, known: Mapping[str, str] | None = None) -> Iterator[Command]:
    """Commands and assignments in the order of a script, without those of branches that it does not take.

    Args:
        script: its text.
        known: variables that it is started with; arguments are called ``1``, ``2``, …
    """
    given = dict(known or {})
    arguments = [given[name] for name in sorted(filter(str.isdigit, given), key=int) if name != "0"]
    all_ = {"@": " ".join(arguments)} if arguments else {}
    scope = Scope({"#": str(len(arguments)), **all_, **given}, set(given))
    branches = Branches()
    lines = [line for line in logical_lines(script) if len(line.text) <= LONGEST_LINE]
    scope.functions, rest = functions_of(lines)
    for line in rest:
        yield from _of_line(line, scope, branches)


def _called(name: str, given: list[str], certain: bool, scope: Scope) -> Iterator[Command]:
    """Commands of a function with its arguments, which it does not leave behind."""
    before = {key: value for key, value in scope.variables.items() if key.isdigit() or key in "#@"}
    arguments = arguments_of(given)
    scope.variables = {key: value for key, value in scope.variables.items() if key not in before} | dict(arguments)
    body, branches = scope.functions.pop(name), Branches()
    for line in body:
        for command in _of_line(line, scope, branches):
            yield command if certain else replace(command, certain=False)
    scope.functions[name] = body
    scope.variables = {key: value for key, value in scope.variables.items() if key not in arguments} | before


def _evaluated(said: list[str], number: int, certain: bool, scope: Scope) -> Iterator[Command]:
    """Commands of the text that ``eval`` is given."""
    scope.evaluates += 1
    scope.evaluated += sum(map(len, said))
    for command in _of_line(Line(number, " ".join(said)), scope, Branches()):
        yield command if certain else replace(command, certain=False)
    scope.evaluates -= 1


def _of_line(line: Line, scope: Scope, branches: Branches) -> Iterator[Command]:
    succeeded: bool | None = True
    decided = False
    for operator, part, start in simple_commands(line.text):
        command = branches.follow(operator, part, scope.variables)
        scope.variables |= scope.fixed
        reached: bool | None = True
        if operator == "&&":
            reached = succeeded
        elif operator == "||":
            reached = not succeeded if decided and succeeded is not None else None
        if not command or branches.taken is False or reached is False:
            continue
        decided = command.startswith("[")
        if decided:
            succeeded = holds(command, scope.variables)
            continue
        succeeded, decided = True, _ASSIGNMENT.fullmatch(command) is not None
        number = line.number + line.text.count("\n", 0, start + len(part) - len(part.lstrip()))
        yield from _run(command, number, branches.taken is True and reached is True, scope, line)


def _run(command: str, number: int, certain: bool, scope: Scope, line: Line) -> Iterator[Command]:
    document = line.document
    said = written_words(command)
    assigned = said[1:] if said[0] in _DECLARING else said
    assigned = [word for word in assigned if not word.startswith("-")] if said[0] in _DECLARING else assigned
    found = [_ASSIGNMENT.fullmatch(word) for word in assigned]
    default = _DEFAULT.fullmatch(command)
    if default is not None:
        if not scope.variables.get(default[1], ""):
            scope.assign(default[1], expand(unquoted(default[2]), scope.variables), False, certain)
        return
    if said[0] == "read":
        scope.variables |= dict.fromkeys(assigned[1:])
        names = [word for word in assigned[1:] if _NAME.fullmatch(word)]
        if document and "-d" in said and names:
            scope.assign(names[-1], expand(document.replace("\\\n", ""), scope.variables), False, certain)
    if said[0] in ("mapfile", "readarray"):
        scope.variables |= dict.fromkeys(word for word in said[1:] if _NAME.fullmatch(word))
    if said[:2] == ["set", "--"]:
        scope.variables |= arguments_of([unquoted(expand(word, scope.variables)) for word in said[2:]])
    if said[0] == "shift" and certain:
        scope.shift(digits(said[1]) or 1 if len(said) > 1 else 1)
    if said[0] in _SILENT:
        if _FILLS.search(printing := expand(command, scope.variables)):
            yield Command(printing, command, number, certain, scope, assigns=True)
        return
    if said[0] in scope.functions:
        yield from _called(said[0], [unquoted(expand(word, scope.variables)) for word in said[1:]], certain, scope)
        return
    if said[0] == "eval" and scope.evaluates < _DEEPEST_EVAL and scope.evaluated < LONGEST_LINE:
        yield from _evaluated([unquoted(expand(word, scope.variables)) for word in said[1:]], number, certain, scope)
        return
    if said[0] == "sbatch":
        scope.variables |= slurm_variables(said, scope.variables)
    taken, undecided = with_chosen(command, scope.variables)
    expanded = expand(taken, scope.variables)
    for options in undecided:
        yield Command(expand(options, scope.variables), options, number, False, scope)
    if not all(found) and said[0] not in _DECLARING:
        document = expand(document, scope.variables)
        yield Command(expanded, command, number, certain, scope, document=document, cut=line.cut)
        return
    for word, assignment in zip(assigned, found, strict=True):
        name = assignment[1] if assignment else word
        if assignment:
            value = expand(with_chosen(_value(assignment[3]), scope.variables)[0], scope.variables)
            scope.assign(name, value, bool(assignment[2]), certain)
            if said[0] == "readonly" and not has_substitution(value):
                scope.fixed.setdefault(name, value)
        scope.exported |= {name} if said[0] == "export" and not has_substitution(name) else set()
    yield Command(expanded, command, number, certain, scope, assigns=True)


def _value(written: str) -> str:
    """The text of a value; words of an array keep their quotes, with a space before them to append to others."""
    if written.startswith("(") and written.endswith(")"):
        return f" {written[1:-1]}"
    return unquoted(written)


def with_sources(text: str, folder: Path, brought: Brought | None = None, deeper: int = 3) -> str:
    """The script with the files that it sources and that come along with it, or lie beside it or where it says."""

    def inline(found: re.Match[str]) -> str:
        name = found[1].strip("\"'")
        places = (folder / name.rpartition("/")[2], folder / below_variable(name))
        path = next((place for place in places if place.is_file()), None)
        along = find_brought(name, brought or {})
        if along is None and path is not None:
            along = read_text(path)
        if not deeper or along is None:
            return found[0]
        return with_sources(along, folder, brought, deeper - 1)

    return _SOURCE.sub(inline, text)
