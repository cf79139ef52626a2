"""``asap doctor``: whether ASAP can work here."""

from pathlib import Path
from typing import Annotated

import typer

from asap.cli.shared.output import Plain, console, print_json, warn
from asap.cli.shared.progress import progress

_MARKS = {"ok": ("✓", "green"), "optional": ("·", "yellow"), "problem": ("✗", "red")}


def doctor(
    bundle: Annotated[Path | None, typer.Option(help="Also write a report for a bug, without keys and names.")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="First mend the stores: rebuild them, or move what is damaged aside.")
    ] = False,
    format: Annotated[Plain, typer.Option(help="Output format.")] = Plain.TERMINAL,
) -> None:
    """Check that everything ASAP needs is there and works. Covers Python, packages, XProf, the TPU compiler,
    Chroma, keys, home, disk and each store. Exit code 4 on a problem."""
    from asap.doctor.report import bug_report, run_checks

    if repair:
        from asap.doctor.storage import repair as mended

        for line in mended():
            warn(line)
    with progress() as show:
        checks = run_checks(show)
    if format is Plain.JSON:
        print_json({"schema": "asap.doctor/1", "checks": checks})
    else:
        from rich.table import Table
        from rich.text import Text

        from asap.core.text import plain

        table = Table.grid(padding=(0, 2))
        for check in checks:
            mark, style = _MARKS[check.state]
            table.add_row(Text(mark, style=style), Text(check.name), Text(plain(check.found)))
            if check.fix is not None:
                table.add_row("", "", Text(f"→ {plain(check.fix)}", style=style))
        console().print(table)
    if bundle is not None:
        from asap.core.files import write_output

        write_output(bundle, bug_report(checks))
        print(f"report for a bug: {bundle}; read it before you share it")
    if any(check.state == "problem" for check in checks):
        raise typer.Exit(4)
