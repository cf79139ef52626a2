"""``asap profile``: KPIs, operations and roofline of a profile."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.options import profile_path
from asap.cli.shared.output import Form, Plain, print_json, print_table, warn
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.profiles import Operation, Profile

app = typer.Typer(no_args_is_help=True, help="Read a profile: KPIs, operations, roofline.")

Path = Annotated[str, typer.Argument(help="Log directory, run folder, *.xplane.pb file, GPU trace or experiment.")]
Top = Annotated[int, typer.Option(min=1, help="Maximum number of operations to print.")]


@app.command()
def kpis(path: Path, form: Form = Plain.TERMINAL) -> None:
    """Step time, duty cycle, communication, idle and input."""
    from asap.core.units import format_percent, format_seconds
    from asap.reports.profile_facts import kpi_facts

    profile = _read(path)
    if form is Plain.JSON:
        print_json(profile.kpis)
    else:
        rows = kpi_facts(profile.kpis)
        for c in profile.kpis.collectives:
            time = f", {format_seconds(c.time_s)} per {profile.extent}" if c.time_s is not None else ""
            rows.append((c.kind, f"{format_percent(c.fraction)}{time}"))
        print_table(("KPI", "value"), rows)
    _print_warnings(profile)


@app.command()
def ops(
    path: Path,
    top: Top = 20,
    form: Form = Plain.TERMINAL,
) -> None:
    """Operations by self time, with totals by category and module. Shows occurrences, FLOP utilisation, memory
    bandwidth, shape, source."""
    from asap.reports.profile_facts import operation_columns, operation_row, total_rows

    profile = _read(path)
    if form is Plain.JSON:
        print_json(profile.operations[:top])
    else:
        print_table(operation_columns(profile.extent), map(operation_row, _told_apart(profile.operations[:top])))
        for sort, totals in (("category", profile.categories), ("module", profile.modules)):
            if totals:
                columns = ("time", f"per {profile.extent}", f"all operations of a {sort}")
                print_table(columns, total_rows(totals, profile.extent_s, top))
    _print_warnings(profile)


@app.command()
def roofline(
    path: Path,
    top: Top = 20,
    form: Form = Plain.TERMINAL,
) -> None:
    """Roofline of the program and of each operation. Sorted by what an operation would save on the roofline. Shows
    FLOPs, bytes, time, bound, efficiency."""
    from asap.reports.profile_facts import by_recoverable, roofline_columns, roofline_facts, roofline_row

    profile = _read(path)
    operations = by_recoverable(profile.operations)[:top]
    if form is Plain.JSON:
        print_json({"roofline": profile.roofline, "operations": operations})
    else:
        print_table(("program", "value"), roofline_facts(profile.roofline))
        print_table(roofline_columns(profile.extent), map(roofline_row, _told_apart(operations)))
    _print_warnings(profile)


def _told_apart(operations: "Sequence[Operation]") -> "list[Operation]":
    """Operations by names that are short and differ."""
    from asap.core.text import told_apart
    from asap.reports.profile_facts import NAME_WIDTH

    names = told_apart([one.name for one in operations], NAME_WIDTH)
    return [one.model_copy(update={"name": names[one.name]}) for one in operations]


def _read(path: str) -> "Profile":
    from asap.traces.recording import read_recording

    with progress() as show:
        return read_recording(profile_path(path), progress=show)


def _print_warnings(profile: "Profile") -> None:
    for warning in profile.warnings:
        warn(warning)
    for gap in profile.gaps:
        warn(f"missing: {gap.what}" + (f"; capture with {gap.capture}" if gap.capture else ""))
