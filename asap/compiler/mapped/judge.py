"""A mapping program of an algorithm, judged: checked, run on virtual devices, compiled, timed and explained."""

from dataclasses import dataclass
from typing import Literal

from asap.compiler.algorithms.build import BENCHMARKS
from asap.compiler.algorithms.choices import Choices, choices_of
from asap.compiler.algorithms.matmul import Problem
from asap.compiler.mapped.explain_schedule import explain_schedule
from asap.compiler.mapped.failures import compile_failure, wrong_result
from asap.compiler.mapped.virtual_run import differences, modelled
from asap.compiler.programs.options import DEFAULT_LIMITS, CompileLimits
from asap.compiler.programs.request import CompileOutcome, CompileRequest
from asap.compiler.toolchain.compile import compile_all
from asap.core.errors import BadInputError
from asap.core.feedback import Feedback
from asap.hardware import Slice
from asap.mapping.check import check
from asap.mapping.language.format import format_order
from asap.mapping.language.parse import parse
from asap.mapping.space import orders
from asap.plans import Plan


@dataclass(frozen=True)
class Judged:
    """What came of a program: modelled time in seconds, and the peak of the HBM in bytes, where there are any."""

    status: Literal["done", "rejected", "failed"]
    feedback: tuple[Feedback, ...]
    seconds: float | None = None
    hbm_bytes: int | None = None


def judge(text: str, hardware: Slice, problem: Problem | None = None, limits: CompileLimits = DEFAULT_LIMITS) -> Judged:
    """Judge a program; each step only if the one before found nothing.

    Args:
        text: the program.
        hardware: one slice of TPUs.
        problem: sizes to compile for; those of the benchmark by default.
        limits: on the compilation.

    Raises:
        BadInputError: the program chooses no algorithm, or the hardware has no TPU compiler.
    """
    found = check(text, None, hardware).feedback
    if found:
        return Judged("rejected", found)
    choices = read_choices(text, hardware)
    (difference,) = differences([text], hardware.topology or ())
    if difference.pattern:
        return Judged("rejected", (wrong_result(text, choices, difference),))
    (outcome,) = compile_all(
        [request_of(text, hardware, problem or BENCHMARKS[choices.algorithm].problem)], limits=limits
    )
    return judged(text, choices, outcome, hardware)


def read_choices(text: str, hardware: Slice) -> Choices:
    """The choices of a checked program.

    Raises:
        BadInputError: it chooses no algorithm.
    """
    program, _ = parse(text)
    if program.setting("algorithm") is None:
        reason = "the program chooses no algorithm"
        raise BadInputError(reason, where="algorithm", hint=f"write algorithm {' or '.join(BENCHMARKS)}")
    return choices_of(program, hardware.devices)


def request_of(text: str, hardware: Slice, problem: Problem) -> CompileRequest:
    """What the compiler is asked for.

    Raises:
        BadInputError: the hardware is no single slice of TPUs.
    """
    if hardware.topology is None or hardware.slices > 1 or hardware.chip.devices > 1:
        reason = "algorithms are compiled for one slice of chips with one device each"
        raise BadInputError(reason, where=hardware.chip.title, hint="try v5e:4x4")
    return CompileRequest(
        chip=hardware.chip.name, topology=hardware.topology, slices=1,
        plan=Plan.parse(f"data={hardware.devices}"), mapping=text, problem=problem,
    )  # fmt: skip


def judged(text: str, choices: Choices, outcome: CompileOutcome, hardware: Slice) -> Judged:
    """What the compiler's answer comes to, under the order of devices that the program says."""
    if outcome.status != "compiled" or outcome.effort != "full":
        timed_out = outcome if outcome.status != "compiled" else outcome.model_copy(
            update={"status": "timed_out", "message": outcome.full_effort_failure}
        )  # fmt: skip
        status = "failed" if timed_out.status in ("crashed", "timed_out", "out_of_host_memory") else "rejected"
        return Judged(status, (compile_failure(text, choices, timed_out),))
    program = modelled(outcome, hardware)
    said = parse(text)[0].order
    own = format_order(said) if said else "row"
    timeline = program.timeline(own)
    others = sorted(
        ((order, program.timeline(order).seconds) for order in orders(hardware.topology or ())),
        key=lambda each: each[1],
    )
    feedback = explain_schedule(text, choices, program, timeline, outcome, others)
    peak = outcome.memory.hbm_peak if outcome.memory else None
    return Judged("done", feedback, timeline.seconds, peak)
