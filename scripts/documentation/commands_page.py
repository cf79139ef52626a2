"""The page of commands, written from the commands: each with its summary, its subcommands and lines to type."""

import textwrap
from collections.abc import Iterator
from typing import Any

from documentation.pages import ROOT

PAGE = ROOT / "docs" / "commands.md"
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
