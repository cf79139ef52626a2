"""What the program says to type can be typed: each command and option in its texts is one of today's."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from asap.cli.app import COMMANDS, OPTIONS, app, renamed

ROOT = Path(__file__).resolve().parents[2]
ROOT_COMMAND: Any = typer.main.get_command(app)
_TYPED = re.compile(r"\basap ((?:-- )?[a-z][\w-]*(?: (?:[^\s`;:,.()\"']+(?:\.[^\s`;:,.()\"']+)*|\"[^\"]*\"|'[^']*'))*)")


def texts() -> Iterator[tuple[str, str]]:
    """Every string of the code and every template that names the program; what is filled in stands as X."""
    for path in sorted((ROOT / "asap").rglob("*")):
        if path.suffix not in {".j2", ".md", ".py"} or path.name == "renamed.py":
            continue
        if "asap " not in (text := path.read_text(encoding="utf-8")):
            continue
        if path.suffix != ".py":
            yield path.name, text
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.JoinedStr):
                parts = (str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values)
                yield path.name, "".join(parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.name, node.value


TYPED = sorted({(name, found[1]) for name, text in texts() for found in _TYPED.finditer(text)})


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that words begin with, and the rest of them."""
    command = ROOT_COMMAND
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def options_of(command: Any) -> set[str]:
    """Its options as they are typed."""
    return {option for parameter in command.params for option in parameter.opts} | {"--help"}


@pytest.mark.parametrize(("name", "typed"), TYPED, ids=[f"{name}: {typed[:60]}" for name, typed in TYPED])
def test_a_command_that_is_shown_exists_with_its_options(name, typed):
    command, rest = command_of(typed.split())
    assert command is not ROOT_COMMAND, f"asap {typed}"
    if hasattr(command, "commands") and command.name not in {"optimize", "ci"} and rest:
        assert not rest[0].islower(), f"asap {typed}: no such subcommand"
    options = options_of(command).union(*map(options_of, getattr(command, "commands", {}).values()))
    before = rest[: rest.index("--")] if "--" in rest else rest
    assert {word.partition("=")[0] for word in before if word.startswith("--")} <= options, f"asap {typed}"


@pytest.mark.parametrize("old", COMMANDS)
def test_an_old_command_works_and_says_the_new_one(old):
    words, said = renamed([*old.split(), "X"])
    command, rest = command_of(words)
    assert (command is not ROOT_COMMAND, rest, len(said)) == (True, ["X"], 1)
    assert f"`asap {COMMANDS[old]}`" in said[0]


@pytest.mark.parametrize(("command", "old"), [(command, old) for command, all in OPTIONS.items() for old in all])
def test_an_old_option_works_and_says_the_new_one(command, old):
    new = OPTIONS[command][old]
    words, said = renamed([*command.split(), f"{old}=x", "--", old])
    assert words[-3:] == [f"{new}=x", "--", old]
    assert len(said) == 1
    found = command_of(command.split())[0]
    known = options_of(found).union(*map(options_of, getattr(found, "commands", {}).values()))
    assert new in known
    assert old not in known - {"--model"}  # of `asap map`: an architecture


def test_alone_it_says_three_things_to_type(asap):
    lines = asap().out.splitlines()
    assert len(lines) == 3
    for line in lines:
        assert command_of(line.split()[1:])[0] is not ROOT_COMMAND or "--help" in line


def test_a_command_with_an_old_name_runs(asap):
    assert asap("--quiet", "memory", "list").err == ""
    done = asap("memory", "list")
    assert done.code == 0
    assert "`asap sessions`" in done.err
