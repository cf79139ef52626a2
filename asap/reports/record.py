"""A record on one screen: what is known of a run, and what is not, with what that costs."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.core.units import format_percent
from asap.experiments import Experiment
from asap.plans.axes import MEANINGS
from asap.plans.degrees import FOLDED
from asap.plans.plan import AXES, Plan
from asap.reports.labels import batch_size, describe_hardware, describe_model, flag_sentences, flag_summary
from asap.stacks.launchers import contract_of, form_of, launch_lines, stack_of
from asap.study.flags import flags_of_record

UNKNOWN = "unknown"
LABEL_WIDTH = 15
_MOST_NOTES = 3
_MEMORY = (
    "precision",
    "weight_precision",
    "fsdp_upcasts",
    "optimizer",
    "zero_stage",
    "loss_chunks",
    "fused_linear_cross_entropy",
    "attention",
    "context_parallel",
    "sequence_parallel",
)
_MEMORY_KEYS = ("mu_dtype", "grad_dtype", "opt_type", "quantization", "remat_policy")
_COSTS = {
    "hardware": "no prediction, no plan is checked against the devices",
    "model": "predictions by ratios of a profile only, no HBM",
    "plan": "nothing can be proposed from a profile",
    "batch": "no prediction of the step",
    "sequence": "no prediction of the step",
    "remat": "the least recomputation that fits is assumed",
    "precision": "bf16 is assumed",
    "measured step": "predictions start from the architecture, with a wider interval",
    "profile": "no bottleneck can be measured",
}


def print_record(experiment: Experiment, console: Console) -> None:
    """Print a record; values wrap beside their labels."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=LABEL_WIDTH)
    grid.add_column(overflow="fold")
    for label, value in record_facts(experiment):
        grid.add_row(Text(label, style="bold cyan"), Text(value))
    console.print(Text(plain(experiment.id), style="bold"))
    console.print(grid)


def record_facts(experiment: Experiment) -> list[tuple[str, str]]:
    """Label and value, unknown ones last with what they cost. Plain text, not escaped."""
    plan, work = experiment.plan, experiment.workload
    facts = [
        ("description", experiment.description or ""),
        ("hardware", _hardware(experiment)),
        ("model", describe_model(experiment.model)),
        ("batch", _batch(experiment)),
        ("plan", f"{plan} ({_meaning(plan)})" if plan else UNKNOWN),
        (contract_of(work.framework).title.split()[0], _in_words(experiment)),
        ("numerics", ", ".join(_numerics(experiment)) or UNKNOWN),
        ("software", ", ".join(filter(None, (work.framework, experiment.code_version)))),
        ("flags", _flags(experiment)),
        ("measured", _measured(experiment)),
        ("unknown", "; ".join(f"{what}: {_COSTS[what]}" for what in _unknown(experiment)) or "nothing that counts"),
        ("notes", _notes(experiment.notes)),
    ]
    return [(label, plain(value)) for label, value in facts if value]


def _hardware(experiment: Experiment) -> str:
    found = experiment.hardware
    if not (found.name or found.chip or found.devices):
        return UNKNOWN
    named = found if found.name or found.chip else found.model_copy(update={"name": "unknown chip"})
    return describe_hardware(named, found.devices)


def _batch(experiment: Experiment) -> str:
    work = experiment.workload
    return batch_size(work) + (f", {work.tokens:,} tokens per step" if work.tokens else "")


def _meaning(plan: Plan) -> str:
    """What the axes are: ``FSDP 16, tensor parallelism 4``."""
    used = [f"{MEANINGS[axis]} {plan.degree(axis)}" for axis in AXES if plan.degree(axis) > 1]
    return ", ".join(used) or "one device"


def _in_words(experiment: Experiment) -> str:
    """The plan in the words of its stack."""
    plan, stack = experiment.plan, stack_of(experiment.workload.framework)
    if plan is None or experiment.workload.framework is None:
        return ""
    try:
        form: dict[str, object] = {FOLDED: experiment.workload.experts_over}
        form |= form_of(experiment.hyperparameters)
        return launch_lines(plan, stack, form).replace("\n", " ")
    except PlanError:
        return ""


def _numerics(experiment: Experiment) -> Iterable[str]:
    work, plan, settings = experiment.workload, experiment.plan, experiment.hyperparameters
    if plan is not None and plan.remat is not None:
        yield f"remat {plan.remat.value}"
    if plan is not None and plan.offload:
        yield f"offload {'+'.join(plan.offload)}"
    for field in _MEMORY:
        if (value := getattr(work, field)) not in (None, False):
            yield field.replace("_", " ") if value is True else f"{field.replace('_', ' ')} {value}"
    yield from (f"{key}={plain(settings[key], 30)}" for key in _MEMORY_KEYS if settings.get(key) not in (None, ""))


def _flags(experiment: Experiment) -> str:
    """What is set, and what is wrong with it for the plan on record."""
    review = flags_of_record(experiment)
    return " ".join([f"{flag_summary(review)}.", *flag_sentences(review)])


def _measured(experiment: Experiment) -> str:
    parts = [f"step {experiment.measured} ({experiment.measured.source})"] if experiment.measured else []
    parts += [f"profile {experiment.profile_path}"] if experiment.profile_path else []
    parts += [f"facts of {experiment.facts_path}"] if experiment.facts_path else []
    parts += [f"goodput {format_percent(experiment.goodput, 0)}"] if experiment.goodput else []
    return ", ".join(parts) or "nothing"


def _unknown(experiment: Experiment) -> list[str]:
    plan, work, model = experiment.plan, experiment.workload, experiment.model
    stated = {
        "hardware": experiment.hardware.chip,
        "model": model is not None and not model.missing(),
        "plan": plan,
        "batch": work.global_batch,
        "sequence": work.sequence_length,
        "remat": plan is None or plan.remat,
        "precision": work.precision,
        "measured step": experiment.measured or experiment.profile_path or experiment.facts_path,
        "profile": experiment.profile_path or experiment.facts_path,
    }
    return [what for what, known in stated.items() if not known]


def _notes(notes: tuple[str, ...]) -> str:
    rest = len(notes) - _MOST_NOTES
    return "; ".join(plain(note, 160) for note in notes[:_MOST_NOTES]) + (f"; {rest} more: --all" if rest > 0 else "")
