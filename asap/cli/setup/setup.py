"""``asap config`` and ``asap doctor``: settings, and whether ASAP can work here."""

from pathlib import Path
from typing import Annotated

import typer

from asap.cli.shared.output import Form, Plain, console, print_json, print_rows, print_table, warn
from asap.cli.shared.progress import progress

app = typer.Typer(no_args_is_help=True, help="Show and set the settings of the agents.")


@app.command()
def show(format: Form = Plain.TERMINAL) -> None:
    """Show each setting, its value and where it comes from."""
    from asap.agents.settings import Settings, origin_of, read_settings

    settings = read_settings()
    fields = Settings.model_fields.items()
    rows = ((name, getattr(settings, name), origin_of(name), field.description or "") for name, field in fields)
    print_rows(format, settings, ("setting", "value", "from", "meaning"), rows)


@app.command("set")
def set_value(
    name: Annotated[
        str, typer.Argument(help="A setting, as `asap config show` lists it; retries.attempts for one in it.")
    ],
    value: Annotated[str, typer.Argument(help="Its value.")],
) -> None:
    """Set a value in the user's file. The rest of the file stays as it is."""
    from asap.agents.settings import set_setting

    print(f"{name} set in {set_setting(name, value)}")


@app.command()
def path() -> None:
    """Show the files that settings are read from. The first that exists counts."""
    from asap.agents.settings import setting_files

    rows = (
        (file, "is read" if read else "exists" if file.is_file() else "does not exist")
        for file, read in setting_files()
    )
    print_table(("file", "state"), rows)


_MARKS = {"ok": ("✓", "green"), "optional": ("·", "yellow"), "problem": ("✗", "red")}


def doctor(
    bundle: Annotated[Path | None, typer.Option(help="Also write a report for a bug, without keys and names.")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="First mend the stores: rebuild them, or move what is damaged aside.")
    ] = False,
    format: Form = Plain.TERMINAL,
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
