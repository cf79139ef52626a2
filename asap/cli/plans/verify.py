"""``asap verify``: compile a plan with the real TPU compiler, without a TPU."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from asap.cli.shared import options as shared
from asap.cli.shared.output import Form, Plain, console, print_json, print_table, warn, warn_about_data
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.compiler.verification import Verification
    from asap.experiments import Experiment
    from asap.experiments.create import Statement
    from asap.mapping.language.program import Program
    from asap.plans import Plan


@shared.describes_run
def verify(
    experiment: Annotated[
        str, typer.Argument(help="An experiment ID or a configuration.", autocompletion=shared.experiments)
    ],
    overrides: shared.Overrides = None,
    *,
    stated: "Statement",
    plan: Annotated[list[str] | None, typer.Option(help='A plan, e.g. "data=8 model=4". Repeatable.')] = None,
    proposal: Annotated[
        int | None,
        typer.Option(min=1, help="The proposal of this rank in the latest session, or of the engine if there is none."),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="The plan on record and all proposals.")] = False,
    mapping: Annotated[
        Path | None, typer.Option(help="A program of the mapping language (asap map) instead of a plan.")
    ] = None,
    train_step: shared.TrainStep = None,
    maxtext: shared.MaxText = False,
    python: shared.Python = "",
    effort: Annotated[
        Literal["full", "reduced", "least"],
        typer.Option(help="Compiler effort. least is fastest: it reports HBM and collectives, but no step time."),
    ] = "full",
    flags: Annotated[
        str, typer.Option(help='Flags of the TPU compiler to add to those of the run: "--xla_…=true …".')
    ] = "",
    engine: shared.Engine = "local",
    time_limit: Annotated[str, typer.Option(help="Limit on each compilation: 90s, 30m.")] = "15m",
    memory_limit: Annotated[
        float, typer.Option(min=0.5, help="Limit on each compilation, in GiB of host memory.")
    ] = 8.0,
    format: Form = Plain.TERMINAL,
) -> None:
    """Compile the training step under a plan, without a TPU. Does it fit, which collectives does it run, how long
    is a step? For GPUs it is sharded, not compiled: only its collectives are known."""
    from asap.compiler.programs.options import CompileLimits, CompileOptions
    from asap.compiler.verify import verify as run_verification
    from asap.core.units import GIB
    from asap.experiments import ExperimentStore
    from asap.experiments.create import amend
    from asap.mapping.plan_program import plan_of
    from asap.study.open_study import open_record, opened_path

    store = ExperimentStore()
    record = open_record(experiment, store, lambda known: amend(known, stated), overrides or ())
    path = opened_path(experiment, store)
    program = _program(mapping, record, bool(plan or proposal or all)) if mapping else None
    limits = CompileLimits(shared.duration_s(time_limit), memory_limit * GIB)
    options = CompileOptions(train_step, maxtext, python, effort, engine, limits, tuple(flags.split()), program)
    with progress() as show:
        plans = [plan_of(program)] if program else _plans(record, plan or [], proposal, all, path)
        found = run_verification(record, plans, options, show)
    if format is Plain.JSON:
        print_json(found)
    else:
        for verification in found:
            _print(verification)
    code = max(_EXIT_CODES.get(verification.status, _BAD_INPUT) for verification in found)
    if code:
        raise typer.Exit(code)


def _program(file: Path, record: "Experiment", other_plans: bool) -> "Program":
    from asap.compiler.program_facts import program_facts
    from asap.core.errors import PlanError, UsageError
    from asap.experiments.files.documents import read_text
    from asap.mapping.check import check

    if other_plans:
        raise UsageError("--mapping says the plan itself: leave --plan, --proposal and --all out")
    facts = program_facts(record)
    checked = check(read_text(file, kind="mapping program"), facts.target, facts.hardware)
    for first in checked.feedback[:1]:
        place = f"{file}:{first.line}:{first.column}"
        raise PlanError(f"{first.code}: {first.explanation}", where=place, hint=first.suggestion)
    return checked.program


_BAD_INPUT = 4
_EXIT_CODES = {"compiled": 0, "sharded": 5, "crashed": 6, "timed_out": 6, "out_of_host_memory": 6}


def _plans(record: "Experiment", texts: list[str], proposal: int | None, all: bool, path: str | None) -> "list[Plan]":
    from asap.core.errors import InsufficientEvidenceError, NotFoundError
    from asap.plans import Plan

    plans = [Plan.parse(text).completed_by(record.plan) for text in texts]
    warn_about_data(texts, record.plan)
    if (all or not (plans or proposal)) and record.plan is not None:
        plans.append(record.plan)
    if proposal is not None or all:
        proposed = _proposed(record, path)
        if proposal is not None and proposal > len(proposed):
            raise NotFoundError(f"no proposal {proposal}: the analysis has {len(proposed)}", where="--proposal")
        plans += proposed if all else proposed[(proposal or 1) - 1 : proposal]
    if not plans:
        raise InsufficientEvidenceError("no plan is on record", where=record.id, hint='give one: --plan "data=16"')
    return list(dict.fromkeys(plans))


def _proposed(record: "Experiment", path: str | None) -> "list[Plan]":
    """The proposals of the latest session, as evidence has left them; without one, those of the engine."""
    from asap.chat.restore import restore
    from asap.core.errors import AsapError
    from asap.core.units import format_percent
    from asap.experiments import ExperimentStore
    from asap.sharding_memory.analyses import latest_session

    store, session = ExperimentStore(), latest_session(record.id, path)
    if session is None:
        return _engine_proposals(record, "no session has analysed it yet")
    try:
        conversation = restore(session, store)
    except AsapError as error:
        return _engine_proposals(record, f"the latest session cannot be read: {error}")
    analysed = conversation.inquiry.analysed.experiment
    if any(getattr(analysed, part) != getattr(record, part) for part in ("model", "workload", "hardware", "plan")):
        return _engine_proposals(record, f"session {session} analysed another model, workload, hardware or plan")
    steps = [candidate.prediction.relative_step_time for candidate in conversation.inquiry.proposals]
    gains = ", ".join(f"{rank}: {format_percent(each.value - 1)}" for rank, each in enumerate(steps, 1) if each)
    warn(f"proposals of session {session}" + (f", predicted step time against now {gains}" if gains else ""))
    return [candidate.plan for candidate in conversation.inquiry.proposals]


def _engine_proposals(record: "Experiment", reason: str) -> "list[Plan]":
    """What the engine proposes, without agents and without a session."""
    from asap.answers.inquiries import Inquiries
    from asap.experiments import ExperimentStore
    from asap.study.open_study import reopen_study

    warn(f"proposals of the engine alone: {reason}")
    studies = Inquiries(ExperimentStore())
    study = reopen_study(record, studies.store)
    studies.add(study)
    return [candidate.plan for candidate in studies.candidates(record.id).chosen]


def _print(found: "Verification") -> None:
    from asap.core.text import plain
    from asap.core.units import exact, format_bytes, format_seconds

    out = console()
    out.print(f"\n{plain(found.plan)} on {plain(found.hardware)}, {plain(found.program)}", style="bold")
    out.print(plain(found.verdict), style="green" if found.fits else "red")
    if found.memory:
        memory = found.memory
        peak = "HBM at its peak", memory.peak - memory.arguments
        title, rest = peak if not memory.host else ("Buffers, not all of them at once", memory.temporaries)
        out.print(f"{title}: arguments {format_bytes(memory.arguments)}, temporaries {format_bytes(rest)}")
    if found.step_time:
        out.print(f"step time {format_seconds(found.step_time.value)} (compiled: {found.step_time.source})")
    if found.calibrated_step_time:
        calibrated = found.calibrated_step_time
        ends = [format_seconds(end) for end in (calibrated.low, calibrated.high) if end is not None]
        out.print(f"calibrated {format_seconds(calibrated.value)} ({' to '.join(ends)}; {calibrated.source})")
    if found.collectives:
        print_table(
            ("collective", "mesh axis", "execution", "per step", "bytes", "busy", "exposed", "algorithm"),
            [
                (
                    row.kind, row.axes, row.execution, exact(row.count), format_bytes(row.size_bytes),
                    _time(row.busy_s), _time(row.exposed_s), ", ".join(row.algorithms),
                )
                for row in found.collectives
            ],
        )  # fmt: skip
    if found.compute:
        rows = [(r.category, exact(r.count), format_seconds(r.seconds), exact(r.unestimated)) for r in found.compute]
        print_table(("compute", "per step", "time", "unknown kernels"), rows)
    for title, lines in (("Differences from our prediction", found.differences), ("Notes", found.notes)):
        for line in (f"{title}:", *(f"- {text}" for text in lines)) if lines else ():
            out.print(plain(line))


def _time(seconds: float | None) -> str:
    from asap.core.units import format_seconds

    return "" if seconds is None else format_seconds(seconds)
