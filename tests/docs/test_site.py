"""The site builds without a warning: no dead link, no page that cannot be found; and its reference is whole."""

import re
import subprocess
import sys

import pytest
from markdown_it import MarkdownIt

from asap.core.errors import AsapError
from asap.plans.axes import AXES, axis_of
from documentation.pages import ROOT, pages
from documentation.reference import (
    VARIABLES,
    cli_page,
    commands,
    documents_page,
    judgements_page,
    numbers,
    settings_page,
)


@pytest.mark.process
def test_the_site_builds_strictly(tmp_path):
    pytest.importorskip("mkdocs", reason="extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in ("index.html", "guide/index.html", "reference/cli/index.html", "reference/schemas/asap.ci-3.json"):
        assert (tmp_path / "site" / page).is_file()


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_files_lead_somewhere(page):
    reference = ROOT / "docs" / "reference"  # written when the site is built, which checks it
    for target in links(page.read_text(encoding="utf-8")):
        path = (page.parent / target.partition("#")[0]).resolve()
        assert path.is_file() or path.parent == reference, f"{page.name}: {target}"


def test_links_are_found_in_text_and_pictures():
    assert links("[a](b.md#c) ![d](e.svg) [f](https://example.org) `[g](h.md)` [i](#j)") == ["b.md#c", "e.svg"]


def links(text: str) -> list[str]:
    """The relative links and pictures of a page."""
    inline = [child for token in MarkdownIt().parse(text) for child in token.children or ()]
    targets = [str(child.attrs.get("href") or child.attrs.get("src") or "") for child in inline]
    return [target for target in targets if target and not re.match(r"[a-z]+:|#", target)]


def test_the_reference_has_every_command_once():
    names = [name for name, _ in commands()]
    assert len(names) == len(set(names))
    assert {"asap", "asap analyze", "asap sessions replay", "asap ci comment"} <= set(names)
    assert cli_page().count("Usage: asap") == len(names)


def test_the_reference_has_every_environment_variable():
    read = re.compile(r"[\"'](ASAP_[A-Z_]+)[\"']")
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "asap").rglob("*.py")]
    named = {name for text in texts for name in read.findall(text)} - {"ASAP_ACTION"}  # a place in a template
    own = {name for name in VARIABLES if name.startswith("ASAP_")}
    assert named | {"ASAP_MODEL"} == own  # which is read as ASAP_<FIELD>
    assert not [name for name in VARIABLES if not any(name in text for text in texts)]


def test_tables_of_the_reference_hold_together():
    for page in (documents_page(), settings_page(), judgements_page()):
        rows = [line for line in page.splitlines() if line.startswith("|")]
        assert rows
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {3, 5, 6}


def test_every_number_says_where_it_comes_from_or_is_a_judgement():
    assert not [f"{one.place} {one.name}" for one in numbers() if not one.said]
    judged = [one for one in numbers() if re.search(r"\b[Jj]udgement\b", one.said)]
    assert judgements_page().count("\n| `") == len(judged) > 100


def test_the_architecture_names_every_room():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in (ROOT / "asap").glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)/` \|", text, re.M)) == rooms


def test_the_table_of_axes_is_how_plans_are_read():
    text = (ROOT / "docs" / "concepts" / "axes.md").read_text(encoding="utf-8")
    rows = [re.findall(r"`(\w+)`", line) for line in text.splitlines() if line.startswith("| `")]
    assert [row[0] for row in rows] == list(AXES)
    for axis, *words in rows:
        assert {axis_of(word) for word in words} == {("ici", axis)}


def test_the_page_of_commands_names_every_exit_code():
    def codes(error):
        return {error.exit_code}.union(*(codes(below) for below in error.__subclasses__()))

    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").partition("## Exit codes")[2]
    assert codes(AsapError) <= {int(code) for code in re.findall(r"\b\d+\b", text)}
