"""``asap map``: check, format, explain programs of the mapping language, and count what they choose from."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.output import Form, Plain, Verbosity, console, print_json, print_table, verbosity, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asap.compiler.program_facts import ProgramFacts
    from asap.experiments import Experiment
    from asap.mapping.check import Checked
    from asap.mapping.explain import Laid
    from asap.mapping.language.feedback import Feedback

app = typer.Typer(no_args_is_help=True, help="Shard by tensor and layer, in programs (docs/mapping.md).")

File = Annotated[Path, typer.Argument(help="A program of the mapping language.")]
Of = Annotated[
    str | None,
    typer.Option(
        "--experiment", help="Check against the model and hardware of an experiment, a configuration or a log."
    ),
]
Model = Annotated[str | None, typer.Option(help="Check against a model: llama2-70b.")]
Hardware = Annotated[str | None, typer.Option(help="Check against a machine: v5e:4x4, v5p-512.")]
Llm = Annotated[str | None, typer.Option(help="Language model that proposes; default: the built-in proposer.")]

_BAD_INPUT = 4


@app.command()
def check(
    file: File,
    experiment: Of = None,
    model: Model = None,
    hardware: Hardware = None,
    repair: Annotated[bool, typer.Option("--repair", help="Write the repairs into the file.")] = False,
    form: Form = Plain.TERMINAL,
) -> None:
    """List what is wrong with a program. Each error has its place and what to do about it."""
    from asap.mapping.check import CheckReport

    text, checked = _checked(file, _facts(experiment, model, hardware))
    found, decisions = checked.feedback, len(checked.program.decisions)
    if form is Plain.JSON:
        print_json(CheckReport(valid=not found, decisions=decisions, feedback=found, unchecked=checked.unchecked))
    else:
        _print_feedback(file, found)
        for missing in checked.unchecked:
            warn(f"not checked: {missing}")
        if not found:
            print(f"{decisions} decisions, nothing wrong")
    if repair and found:
        from asap.core.feedback import repaired
        from asap.core.files import write_atomically

        write_atomically(file, repaired(text, found))
        warn(f"repaired: {sum(each.repair is not None for each in found)} of {len(found)}; check again")
    if found:
        raise typer.Exit(_BAD_INPUT)


@app.command("format")
def format_file(
    file: File,
    write: Annotated[bool, typer.Option("--write", help="Write it into the file.")] = False,
    form: Form = Plain.TERMINAL,
) -> None:
    """Print a program in its one form. Single spaces; order and comments stay."""
    from asap.core.files import write_atomically
    from asap.mapping.check import FormatReport
    from asap.mapping.language.format import format_program
    from asap.mapping.language.parse import parse

    program, wrong = parse(_read(file))
    _stop_if_wrong(file, wrong)
    text = format_program(program)
    if write:
        write_atomically(file, text)
    elif form is Plain.JSON:
        print_json(FormatReport(text=text))
    else:
        print(text, end="")


@app.command()
def explain(
    file: File, experiment: Of = None, model: Model = None, hardware: Hardware = None, form: Form = Plain.TERMINAL
) -> None:
    """A program in plain words, and how every tensor lies under it."""
    from asap.mapping.axis_rules import rules_text
    from asap.mapping.explain import kept_in_words, predicted_in_words

    facts = _facts(experiment, model, hardware)
    _, checked = _checked(file, facts)
    _stop_if_wrong(file, checked.feedback)
    found = facts.explained(checked.program)
    if form is Plain.JSON:
        print_json(found)
        return
    print_table(("line", "decision", "meaning"), [(row.line, row.decision, row.meaning) for row in found.lines])
    for title, rows in (("tensor", found.parameters), ("activation", found.activations)):
        if rows:
            print()
            _print_laid(title, rows)
    if found.kept:
        print(f"\n{kept_in_words(found.kept)}")
    for line in predicted_in_words(found):
        print(line)
    if facts.target is None:
        warn("give --model or --experiment to see how each tensor lies")
    elif found.maxtext_refusal:
        warn(f"MaxText cannot say this: {found.maxtext_refusal}")
    elif found.maxtext_rules:
        print(f"\nMaxText: {rules_text(found.maxtext_rules)}")


@app.command()
def space(
    file: File, experiment: Of = None, model: Model = None, hardware: Hardware = None, form: Form = Plain.TERMINAL
) -> None:
    """Show the decisions around a program. For each, how many options there are."""
    from asap.core.units import exact
    from asap.mapping.space import space as space_of

    facts = _facts(experiment, model, hardware)
    target, machine = facts.both("asap map space")
    _, checked = _checked(file, facts)
    _stop_if_wrong(file, checked.feedback)
    found = space_of(checked.program, target, machine, facts.constraints)
    if form is Plain.JSON:
        print_json(found)
        return
    rows = [
        (row.decision, row.times, f"{row.options:,}", f"{row.valid:,}", "; ".join(row.chosen) or "the usual rule")
        for row in found.choices
    ]
    print_table(("decision", "times", "options", "valid", "chosen"), rows)
    print(f"programs: 10^{exact(found.options_log10)}, valid 10^{exact(found.valid_log10)}; not counted: "
          f"{', '.join(found.not_counted)}")  # fmt: skip


@app.command()
def write(
    experiment: Annotated[str, typer.Argument(help="An experiment ID, a configuration or a log.")],
    plan: Annotated[str | None, typer.Option(help="Another plan than the one on record.")] = None,
    hardware: Annotated[str | None, typer.Option(help="Chips of the run: v5e-256, h100-64.")] = None,
) -> None:
    """Print the plan of an experiment as a program. Uses its own logical axis rules where it has them (MaxText)."""
    from asap.compiler.program_facts import experiment_program

    text, left_out = experiment_program(_experiment(experiment, hardware), plan)
    print(text, end="")
    if left_out:
        warn(f"rules of MaxText that the language has no words for: {', '.join(left_out)}")


@app.command()
def optimize(
    file: File,
    hardware: Annotated[str, typer.Option(help="The machine: v5e:4x4.")],
    budget: Annotated[int, typer.Option(min=1, help="Maximum number of programs to try.")] = 10,
    llm: Llm = None,
    write: Annotated[bool, typer.Option("--write", help="Write the best program into the file.")] = False,
    form: Form = Plain.TERMINAL,
) -> None:
    """Find a faster program of a distributed algorithm. Each is run on virtual devices, then compiled."""
    from asap.cli.plans.optimize import agent_proposer, checked_model
    from asap.core.files import write_atomically
    from asap.core.units import format_percent, format_seconds
    from asap.hardware import resolve_hardware
    from asap.optimize.by_mapping import in_brief, optimize_program
    from asap.optimize.session import Session
    from asap.optimize.table import tries_table
    from asap.sharding_memory import new_session_name

    text, machine, model = _read(file), resolve_hardware(hardware).slice, checked_model(llm)
    settings = {"program": text, "on": hardware, "budget": budget, "model": model}
    found = optimize_program(
        text, machine, budget, lambda: Session.start(new_session_name(), settings), say=warn,
        proposer=agent_proposer(model, budget),
    )  # fmt: skip
    if form is Plain.JSON:
        print_json(found)
    elif verbosity() is not Verbosity.QUIET:
        console(sys.stderr).print(tries_table(in_brief(found.tries)))
    if form is not Plain.JSON and found.best is not None and found.best_seconds is not None:
        print(found.best.strip())
        saved = f", {format_percent(found.gain)} less than the first" if found.gain else ""
        for line in (
            f"modelled time {format_seconds(found.best_seconds)}{saved}; {found.stopped.statement}",
            *found.learnt,
        ):
            print(f"# {line}")
    if found.best is None:
        raise typer.Exit(5)
    if write:
        write_atomically(file, found.best.strip() + "\n")


def _facts(experiment: str | None, model: str | None, hardware: str | None) -> "ProgramFacts":
    from asap.compiler.program_facts import program_facts

    return program_facts(_experiment(experiment, hardware) if experiment else None, model, hardware)


def _experiment(name: str, hardware: str | None) -> "Experiment":
    from asap.experiments import ExperimentStore
    from asap.experiments.create import Statement, amend
    from asap.study.open_study import open_record

    return open_record(name, ExperimentStore(), lambda record: amend(record, Statement(hardware=hardware)))


def _read(file: Path) -> str:
    from asap.experiments.files.documents import read_text

    return read_text(file, kind="mapping program")


def _checked(file: Path, facts: "ProgramFacts") -> "tuple[str, Checked]":
    from asap.mapping.check import check as check_program

    text = _read(file)
    return text, check_program(text, facts.target, facts.hardware)


def _stop_if_wrong(file: Path, found: "Sequence[Feedback]") -> None:
    if found:
        _print_feedback(file, found)
        raise typer.Exit(_BAD_INPUT)


def _print_feedback(file: Path, found: "Sequence[Feedback]") -> None:
    from asap.core.text import plain

    for each in found:
        print(plain(f"{file}:{each}"))


def _print_laid(title: str, rows: "Sequence[Laid]") -> None:
    table = [
        (
            row.tensor,
            row.layers or "",
            " x ".join(str(length or "?") for length in row.shape),
            f"({', '.join('+'.join(axes) or '-' for axes in row.axes)})",
            row.share or "",
            ", ".join(str(line) for line in dict.fromkeys(row.lines) if line),
        )
        for row in rows
    ]
    print_table((title, "layers", "shape", "split over", "on a device", "line"), table)
