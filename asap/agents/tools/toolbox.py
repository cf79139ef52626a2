"""The queries as tools of a language model: made of their one declaration, typed, read-only. It needs no google-adk."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Annotated, Any, ParamSpec, get_args, get_origin

from pydantic import ValidationError, validate_call
from pydantic.fields import FieldInfo

from asap.agents.grounding.catalogue import Catalogue, Catalogues
from asap.answers.inquiries import Inquiries
from asap.answers.registry import QUERIES, complaint, query
from asap.core.errors import AsapError, UsageError
from asap.core.secrets import environment_secrets
from asap.core.secrets import without as strip_secrets
from asap.core.text import plain
from asap.experiments import Experiment
from asap.experiments.create import Statement
from asap.reports.answers.compact import table, to_compact
from asap.reports.phrases import written

Parameters = ParamSpec("Parameters")
Answer = dict[str, Any]

LONGEST_NAME = 160


def answering(tool: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Check the arguments of a tool; an error of ASAP becomes an answer that says what to do."""
    checked = validate_call(tool)

    @wraps(tool)
    def answer(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        try:
            return answering_errors(lambda: checked(*args, **kwargs))
        except ValidationError as error:
            return failure(UsageError(complaint(error), where=tool.__name__, hint="correct the arguments"))

    return answer


def answering_errors(find: Callable[[], Answer]) -> Answer:
    """What is found, made harmless; an error of ASAP as an answer."""
    try:
        return harmless(find())
    except AsapError as error:
        return failure(error)


def failure(error: AsapError) -> Answer:
    """An error as a tool reports it."""
    place = f"{error.where}: " if error.where else ""
    answer = {"error": f"{place}{error.message}", "kind": type(error).__name__}
    return harmless(answer | ({"hint": error.hint} if error.hint else {}))


def harmless(value: Any, keep: Callable[[str], str] = plain) -> Any:
    """Plain JSON without control characters and secrets.

    Args:
        value: what is made harmless.
        keep: what of each string is kept: one line, unless lines have a meaning.
    """
    return _harmless(value, keep, environment_secrets())


def _harmless(value: Any, keep: Callable[[str], str], secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return keep(strip_secrets(value, secrets))
    if isinstance(value, Mapping):
        return {plain(key, LONGEST_NAME): _harmless(item, keep, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_harmless(item, keep, secrets) for item in value]
    return value


Tool = Callable[..., Answer]

EXPERIMENT = "experiment"
ExperimentId = Annotated[str, FieldInfo(description="ID of the experiment")]
Expression = Annotated[
    str,
    FieldInfo(description="references, numbers, units and signs between blanks: now.step_time - 1.step_time"),
]
Target = Annotated[
    str,
    FieldInfo(
        description="path of a training log, configuration, launch script, profile, trace or run folder; tracker's run"
    ),
]
Hardware = Annotated[str | None, FieldInfo(description="chips of the run, where the file does not say: h100-64")]
StepTime = Annotated[str | None, FieldInfo(description="the measured step, if the run has one: 2.31s, or its log")]
RUN = ("run", "health", "bottleneck", "operations", "operation", "roofline", "flags", "capture", "trace")
PLANS = (
    "candidates", "predict", "compare", "explain", "memory", "line", "what_if", "sweep", "solve", "settings", "worth",
    "plausible", "next_test", "verify",
)  # fmt: skip
LIBRARY = ("precedents", "ideas", "notes", "define")
CHOICE = ("predict", "compare", "operation", "settings", "verify")
FACTS = ("record", "retract", "facts")
LEFT_OUT = {"source", "url", "summary"}
"""Fields that a model can do without: an ID stands for them, or a title says them in short."""


class Toolbox:
    """All tools over the runs that are open, by purpose, and what they answered."""

    def __init__(self, inquiries: Inquiries, catalogues: Catalogues | None = None):
        self._inquiries = inquiries
        self.catalogues = Catalogues() if catalogues is None else catalogues
        made = {name: tool_of(name, inquiries, self.catalogues) for name in QUERIES}
        self.run = tuple(made[name] for name in RUN)
        self.plans = (*(made[name] for name in PLANS), self.compute)
        self.library = tuple(made[name] for name in LIBRARY)
        self.choice = (*(made[name] for name in CHOICE), self.compute)
        self.critique = (made["predict"], made["memory"], made["precedents"])
        self.facts = tuple(made[name] for name in FACTS)

    @property
    def all(self) -> tuple[Tool, ...]:
        """Every tool that changes nothing."""
        return (self.list_experiments, *self.run, *self.plans, *self.library)

    @answering
    def list_experiments(self) -> Answer:
        """List the experiments on record: ID, model, hardware, plan."""
        return {"experiments": table([_listed(record) for record in self._inquiries.store.list().experiments])}

    @answering
    def compute(self, experiment: ExperimentId, expression: Expression) -> Answer:
        """Compute a figure from figures that tools gave, with its unit and interval."""
        return computed(self.catalogues.of(self._inquiries.of(experiment).id), expression)

    @answering
    def open(self, target: Target, hardware: Hardware = None, step_time: StepTime = None) -> Answer:
        """Open a run that is on no record, to ask about it by the ID that the answer has."""
        return {EXPERIMENT: self._inquiries.open(target, Statement(hardware=hardware, step_time=step_time)).id}


def computed(catalogue: Catalogue, expression: str) -> Answer:
    """A derived figure as a tool gives it; raises like :meth:`asap.agents.grounding.catalogue.Catalogue.compute`."""

    figure = catalogue.compute(expression)
    return {"value": written(figure), "provenance": figure.provenance.value, "reference": f"{{{expression}}}"}


def tool_of(name: str, inquiries: Inquiries, catalogues: Catalogues, experiment: str | None = None) -> Tool:
    """A query as a function of the query's fields, and of the experiment where none is given; errors become answers
    that say what to do."""
    fields = QUERIES[name].model_fields
    bound = {} if experiment is None else {EXPERIMENT: experiment}
    names = (*(() if bound else (EXPERIMENT,)), *fields)

    def call(*args: object, **kwargs: object) -> Answer:
        given = {**dict(zip(names, args, strict=False)), **kwargs, **bound}
        return answering_errors(partial(_answer, inquiries, catalogues, name, given))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = " ".join((QUERIES[name].__doc__ or "").split())
    parameters = [] if bound else [_parameter(EXPERIMENT, ExperimentId)]
    parameters += [_parameter(field, _type(info), info) for field, info in fields.items()]
    parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
    call.__signature__ = inspect.Signature(parameters, return_annotation=Answer)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": Answer}
    return call


def _answer(inquiries: Inquiries, catalogues: Catalogues, name: str, arguments: dict[str, object]) -> Answer:
    given = dict(arguments)
    experiment = given.pop(EXPERIMENT, None)
    if not isinstance(experiment, str):
        raise UsageError("needs the ID of an experiment", where=name, hint="list_experiments has them")
    asked = query(name, {field: value for field, value in given.items() if value is not None})
    found = asked.answer(inquiries.of(experiment))
    catalogues.of(experiment).record(name, found)
    return to_compact(found)


def _parameter(name: str, annotation: Any, info: FieldInfo | None = None) -> inspect.Parameter:
    default = inspect.Parameter.empty if info is None or info.is_required() else info.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _type(info: FieldInfo) -> Any:
    """The type of a field with its constraints; JSON has lists, not tuples."""
    annotation = info.annotation
    if get_origin(annotation) is tuple:
        annotation = list[get_args(annotation)[0]]
    return Annotated[annotation, FieldInfo(description=info.description), *info.metadata]


def _listed(record: Experiment) -> dict[str, Any]:
    model, hardware = record.model, record.hardware
    return {
        EXPERIMENT: record.id,
        "model": model.name if model else None,
        "hardware": hardware.name or hardware.chip,
        "devices": hardware.devices,
        "plan": str(record.plan) if record.plan else None,
    }
