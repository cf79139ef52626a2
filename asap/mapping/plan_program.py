"""A plan as a short program, and the plan of a program."""

from collections import Counter
from typing import get_args

from asap.core.errors import PlanError
from asap.mapping.coverage import Coverage, Target, value_of
from asap.mapping.language.grammar import STATES
from asap.mapping.language.parse import parse
from asap.mapping.language.program import Decision, Keyword, Mesh, Program, Setting, TensorSetting
from asap.plans import AXES, Plan, Remat
from asap.plans import Mesh as Degrees
from asap.plans.axes import Network
from asap.plans.plan import OF_WORKLOAD
from asap.plans.remat import Offload, Policy, RecomputedLayers, RecomputedModules, SavedTensors, StatePrecision

_OF_PLAN: tuple[Keyword, ...] = ("microbatches", "pipeline_repeats", "loss_chunks", "first_moment", "weight_precision")


def plan_text(plan: Plan) -> str:
    """A plan as a program. What the plan leaves unknown, the program does not say.

    Raises:
        PlanError: the language has no word for a setting of the plan.
    """
    unsaid = [name for name in OF_WORKLOAD if name not in _OF_PLAN and getattr(plan, name) is not None]
    if unsaid:
        raise PlanError(f"a mapping program has no line for {unsaid[0]}", where=str(plan))
    if isinstance(plan.remat, RecomputedLayers | RecomputedModules):
        raise PlanError(
            f"a mapping program has no line for remat={plan.remat}", hint="give a --plan with remat=none or remat=full"
        )
    terms = [term.split("=", 1) for term in str(plan).split()]
    degrees = " ".join(f"{key}={value}" for key, value in terms if key.removeprefix("dcn.") in AXES)
    lines = [f"mesh {degrees or 'data=1'}"]
    for key, value in terms:
        if key == "offload":
            lines.append(f"place {', '.join(value.split('+'))} on pinned_host")
        elif key.removeprefix("dcn.") not in AXES:
            lines.append(f"{key} {value}")
    return "".join(f"{line}\n" for line in lines)


def plan_program(plan: Plan) -> Program:
    """A plan as a program."""
    return parse(plan_text(plan))[0]


def plan_of(program: Program) -> Plan:
    """The plan of a program: its mesh and what it says for all layers.

    Raises:
        PlanError: no line says the mesh, or its axes are not those of plans.
    """
    mesh = program.mesh
    if mesh is None:
        raise PlanError("no line says the mesh", hint="add one: mesh data=16 model=4")
    if unknown := [axis for axis in mesh.axes if axis not in AXES]:
        raise PlanError(f"a plan has no axis {unknown[0]}", where=f"line {mesh.at}", hint=f"it has {', '.join(AXES)}")
    said = {keyword: setting for keyword in _OF_PLAN if (setting := program.setting(keyword))}

    def count(keyword: Keyword) -> int | None:
        return said[keyword].counts[0].value if keyword in said else None

    def precision(keyword: Keyword) -> StatePrecision | None:
        word = said[keyword].word if keyword in said else None
        return next((each for each in get_args(StatePrecision) if each == word), None)

    return Plan(
        ici=_degrees(mesh, "ici"),
        dcn=_degrees(mesh, "dcn"),
        microbatches=count("microbatches"),
        pipeline_repeats=count("pipeline_repeats") or 1,
        loss_chunks=count("loss_chunks"),
        first_moment=precision("first_moment"),
        weight_precision=precision("weight_precision"),
        remat=_remat(program),
        offload=_offload(program),
    )


def beyond_plan(program: Program) -> tuple[Decision, ...]:
    """The decisions of a program that its plan does not say."""
    return tuple(decision for decision in program.decisions if not _is_in_plan(decision))


def _is_in_plan(decision: Decision) -> bool:
    if isinstance(decision, Mesh) or (isinstance(decision, Setting) and decision.keyword in _OF_PLAN):
        return True
    if isinstance(decision, TensorSetting) and decision.layers is None:
        return decision.keyword == "remat" or _is_of_states(decision)
    return False


def _is_of_states(decision: Decision) -> bool:
    return (
        isinstance(decision, TensorSetting)
        and decision.keyword == "place"
        and all(name.text in STATES for name in decision.names)
    )


def policy_of(text: str) -> Policy:
    """A policy by its name, or by the tensors that it keeps."""
    return Remat(text) if text in tuple(Remat) else SavedTensors.parse(text)


def _remat(program: Program) -> Policy | None:
    lines = [line for line in program.decisions if isinstance(line, TensorSetting) and line.keyword == "remat"]
    return next((policy_of(line.value.text) for line in lines if line.layers is None), None)


def _offload(program: Program) -> tuple[Offload, ...]:
    lines = [line for line in program.decisions if isinstance(line, TensorSetting) and _is_of_states(line)]
    on_host = {name.text: None for line in lines if line.value.text == "pinned_host" for name in line.names}
    return tuple(state for name in on_host for state in STATES if state == name)


def _degrees(mesh: Mesh, network: Network) -> Degrees:
    return Degrees(**{each.axis.text: each.degree.value for each in mesh.degrees if each.network == network})


def layers_by_policy(program: Program, target: Target, otherwise: Policy) -> dict[Policy, int]:
    """Rematerialisation → number of layers that have it; ``otherwise`` is that of layers no line speaks of."""
    coverage, found = Coverage(target, "remat", program), Counter[Policy]()
    for bit, line in coverage.holding().items():
        first, last = coverage.places[bit].layers or (0, -1)
        found[policy_of(*value_of(line))] += last - first + 1
    if left := target.layers - found.total():
        found[otherwise] += left
    return dict(found)
