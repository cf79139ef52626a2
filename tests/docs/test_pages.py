"""What the pages show is true: their commands run and print what stands there, and all others are known."""

import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest
import typer

from asap.cli.app import app
from asap.compiler.mapped.failures import Code as CompilerCode
from asap.mapping.language.feedback import Code
from asap.mapping.language.parse import parse
from documentation.generated import GRAMMAR_PAGE, PICTURE, commands_page, draw, ebnf, published
from documentation.pages import ROOT, Command, commands, folder, insert_outputs, pages, run_page, shell_lines
from tests.cases import kept

PAGES = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages()}
RUN = [name for name, text in PAGES.items() if commands(text)]
LINES = [(name, line) for name, text in PAGES.items() for line in shell_lines(text)]


def asap_arguments(line: str) -> list[str] | None:
    """The arguments of the ``asap`` command in a line of shell."""
    words = shlex.split(line, comments=True)
    if "asap" not in words:
        return None
    rest = words[words.index("asap") + 1 :]
    return rest[: next((i for i, word in enumerate(rest) if word in {"|", "<", ">", "&&", "||"}), len(rest))]


ASAP_LINES = [(name, line) for name, line in LINES if asap_arguments(line) is not None]


@pytest.mark.process
@pytest.mark.parametrize("name", RUN)
def test_commands_of_a_page_run_and_print_what_it_shows(name, tmp_path, indexed_home):
    text = PAGES[name]
    shutil.copytree(indexed_home, tmp_path / "home")
    for command, code, printed in run_page(commands(text), folder(text), tmp_path):
        where = f"{name}:{command.line}: {command.text}\n{printed}"
        assert code == 0, where
        assert command.accepts(printed), f"{where}\nscripts/docs update writes what is printed now into the page"


@pytest.mark.parametrize(("name", "line"), ASAP_LINES, ids=[f"{name}: {line}" for name, line in ASAP_LINES])
def test_every_command_that_is_shown_is_known_with_its_options(name, line):
    command, arguments = typer.main.get_command(app), asap_arguments(line) or []
    while arguments and arguments[0] in getattr(command, "commands", {}):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    command.make_context(command.name, arguments)


def test_the_page_of_commands_is_written_from_the_commands():
    assert commands_page() == PAGES["docs/commands.md"], "scripts/docs update writes it anew"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_files_that_a_page_names_are_there(name):
    pattern = r"`((?:asap|scripts|tests|knowledge|docs|prompts|history_db)/[\w./-]*[\w/]|[a-z]+/[a-z_/]+\.py)`"
    named = re.findall(pattern, PAGES[name])
    assert all("NAME" in path or (ROOT / path).exists() or (ROOT / "asap" / path).exists() for path in named)


def test_the_accuracy_of_the_readme_is_that_of_its_page():
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", PAGES["README.md"].partition("## Accuracy")[2], re.MULTILINE)
    figures = [figure for row in rows[:4] for cell in row[1:] for figure in re.findall(r"[\d.]+ %", cell)]
    assert (len(figures), [one for one in figures if one not in PAGES["docs/accuracy.md"]]) == (10, [])


def test_every_script_is_named_on_a_page():
    kept = [path for path in (ROOT / "scripts").iterdir() if path.is_dir() or path.suffix in {"", ".py"}]
    pages = "".join(PAGES.values())
    assert not [path.name for path in kept if f"scripts/{path.name}" not in pages and path.name != "__pycache__"]


def test_every_script_finds_what_it_imports():
    for path in filter(Path.is_file, (ROOT / "scripts").iterdir()):
        if path.suffix == ".py" or path.read_bytes().startswith(b"#!/usr/bin/env python3"):
            runpy.run_path(str(path), run_name="imported")


PAGE = kept(__file__)["PAGE"]


def test_a_console_block_gives_commands_with_what_is_under_them():
    one, two = commands(PAGE)
    assert (one.text, one.shown, one.line) == ("asap one  # a comment", ("first", "...", "last"), 2)
    assert (two.text, two.shown, two.line) == ("asap two", (), 6)
    assert shell_lines(PAGE) == [one.text, two.text, "asap three"]


def test_a_gap_stands_for_any_number_of_lines_and_names_of_sessions_may_differ():
    (one, two) = commands(PAGE)
    assert one.accepts("first\nlast\n")
    assert one.accepts("first\nmore\nand more\nlast\n")
    assert not one.accepts("first\nlast\nmore\n")
    assert not one.accepts("another\nlast\n")
    assert two.accepts("anything")
    shown = Command("asap x", ("session 20260101-000000-abcdef, whole",), 1)
    assert shown.accepts("session 20261122-134632-925ca8, whole   \n")


def test_an_update_keeps_the_gap_where_it_was():
    (one, two) = commands(PAGE)
    outputs = {one.line: one.updated("1\n2\n3\n4\n"), two.line: two.updated("5\n")}
    assert insert_outputs(PAGE, outputs) == PAGE.replace("first", "1").replace("last", "4")


def test_a_block_that_begins_with_output_is_refused():
    with pytest.raises(ValueError, match="line 2"):
        commands("```console\nno command\n```\n")


@pytest.mark.slow
def test_the_picture_is_of_the_report_as_it_is_now(tmp_path, monkeypatch):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    monkeypatch.delenv("ASAP_MODEL", raising=False)
    assert draw() == PICTURE.read_text(encoding="utf-8"), "scripts/docs update draws it anew"


TEXT = GRAMMAR_PAGE.read_text(encoding="utf-8")


def test_the_published_grammar_is_that_of_the_parser():
    assert published() == ebnf()


def test_every_rule_is_defined_and_none_is_left_of_the_parsers_notation():
    rules = dict(line.split(" ::= ", 1) for line in ebnf().splitlines())
    for body in rules.values():
        bare = re.sub(r'"[^"]*"|\[[^\]]*\]', "", body)
        assert set(re.findall(r"\w+", bare)) <= {*rules, "NEWLINE"}
        assert not re.search(r"->|/|\[|\]", re.sub(r'"[^"]*"|\[[^\]]*\]', "", body))


def test_every_code_is_described():
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", TEXT, re.MULTILINE)) == set(Code) | set(CompilerCode)


def test_every_line_on_the_page_is_a_decision():
    rows = re.findall(r"^\| (`[a-z].*?) \| [a-z]", TEXT, re.MULTILINE)
    found = [span for row in rows for span in re.findall(r"`([a-z][^`]* [^`]*)`", row)]
    assert len(found) > 12
    for line in found:
        assert parse(line)[1] == (), line
