"""What pages show of the code: every command, the grammar of the mapping language, pictures of reports.

python -m documentation.generated [EXPERIMENT [FILE]] draws the report as a page, by Chromium (Debian: chromium and
chromium-driver).
"""

import base64
import os
import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from asap.mapping.language.grammar import GRAMMAR
from documentation.pages import ROOT

COMMANDS_PAGE = ROOT / "docs" / "commands.md"
EXIT_CODES = """\
## Exit codes

0 done, 1 a policy of `asap ci` is violated, 2 usage, 3 not found, 4 bad input, 5 insufficient evidence, 6 a model or a
service failed, 7 internal error, 130 interrupted. The reason is one line on standard error.
"""


def commands_page() -> str:
    """The text of ``docs/commands.md``."""
    return "\n".join([*_head(), *_panels(), EXIT_CODES])


def _head() -> list[str]:
    return [
        "# Commands",
        "",
        "Written from the commands by `scripts/docs update`. `asap COMMAND --help` and the",
        "[command line reference](reference/cli.md) have every option. A run is named by its ID on record, or by its",
        "log, configuration, launch script or profile ([what is read](reads.md)).",
        "",
    ]


def _panels() -> Iterator[str]:
    import typer

    from asap.cli.app import app
    from asap.cli.examples import examples

    root: Any = typer.main.get_command(app)
    for heading, names in root.panels().items():
        yield f"## {heading}\n"
        for name in names:
            command = root.commands[name]
            yield f"### asap {name}\n\n{_wrapped(command.help or '')}\n"
            inner = getattr(command, "commands", {})
            if inner:
                rows = [f"| `asap {name} {n}` | {one.get_short_help_str(100)} |" for n, one in inner.items()]
                yield "\n".join(["| command | |", "|---|---|", *rows]) + "\n"
            yield "```sh\n" + "\n".join(examples(name)) + "\n```\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120)


GRAMMAR_PAGE = ROOT / "docs" / "mapping.md"
_GRAMMAR_BLOCK = re.compile(r"(?<=```ebnf\n).*?(?=```)", re.DOTALL)
_RULE = re.compile(r"^[?!]?(\w+)(?:\.\d+)?:\s*(.*)$")


def ebnf() -> str:
    """Every rule and every terminal, a line each; between two of them there may be spaces."""
    lines = ["program ::= line (NEWLINE line)*"]
    for line in re.sub(r"\n +\|", " |", GRAMMAR).splitlines():
        if found := _RULE.match(line):
            name, body = found.groups()
            lines.append(f"{name} ::= {_terminal(body) if body.startswith('/') else _rule(body)}")
    return "".join(f"{line}\n" for line in lines)


def published() -> str:
    """The grammar on the page."""
    found = _GRAMMAR_BLOCK.search(GRAMMAR_PAGE.read_text(encoding="utf-8"))
    return found.group() if found else ""


def update_page() -> None:
    """Write the grammar into its page."""
    text = GRAMMAR_PAGE.read_text(encoding="utf-8")
    GRAMMAR_PAGE.write_text(_GRAMMAR_BLOCK.sub(lambda _: ebnf(), text), encoding="utf-8")


def _rule(body: str) -> str:
    """Without the names of alternatives; what is optional as ``(…)?``."""
    without_names = re.sub(r"\s*->\s*\w+", "", body)
    quoted = re.split(r'("[^"]*")', without_names)
    return "".join(part if part.startswith('"') else part.replace("[", "(").replace("]", ")?") for part in quoted)


def _terminal(expression: str) -> str:
    """A regular expression as character classes and strings."""
    parts = re.findall(r"\[[^\]]*\][*+]?|\\.|\.\*|.", expression.strip("/"))
    named = {".*": "[^#xA]*"}
    return " ".join(part if part[0] == "[" else named.get(part) or f'"{part[-1]}"' for part in parts)


PICTURE = ROOT / "docs" / "analyze.svg"
EXPERIMENT = "llama-8b-tensor-16"
WIDTH = 150


def draw() -> str:
    """The picture as SVG, of an analysis in the home that the environment names."""
    from rich.console import Console

    from asap.agents.workflow.analyze import analyze
    from asap.experiments import ExperimentStore
    from asap.reports.terminal import print_analysis

    analysis = analyze(EXPERIMENT, store=ExperimentStore(), session="example").analysis
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, highlight=False, emoji=False)
    print_analysis(analysis, console)
    picture = console.export_svg(title=f"asap analyze {EXPERIMENT}", unique_id="asap")
    return re.sub(r"[ \t]+$", "", picture, flags=re.M)


REPORT_PICTURE = ROOT / "docs" / "report.png"
REPORT_EXPERIMENT = "cpu-8dev"
PAGE_WIDTH, PAGE_HEIGHT = 1200, 1720


def draw_page(experiment: str, page: Path) -> None:
    """Write the page of an experiment, in the home that the environment names."""
    from asap.agents.workflow.analyze import analyze
    from asap.cli.analysis.report import write_report
    from asap.experiments import ExperimentStore

    write_report(analyze(experiment, store=ExperimentStore(), session="example").stored, page)
    page.write_text(page.read_text("utf-8").replace(str(ROOT), "…"), "utf-8")


def photograph(page: Path, picture: Path) -> None:
    """The upper part of a page as PNG, light."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver: Any = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        size = {"width": PAGE_WIDTH, "height": PAGE_HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(page.as_uri())
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        picture.write_bytes(base64.b64decode(shot["data"]))
    finally:
        driver.quit()


def main(arguments: list[str]) -> None:
    experiment = arguments[0] if arguments else REPORT_EXPERIMENT
    with tempfile.TemporaryDirectory() as home:
        os.environ["ASAP_HOME"] = home
        page = Path(home) / "report.html"
        draw_page(experiment, page)
        photograph(page, Path(arguments[1]) if len(arguments) > 1 else REPORT_PICTURE)


if __name__ == "__main__":
    main(sys.argv[1:])
