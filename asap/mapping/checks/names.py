"""Names that nothing has: axes, tensors, dimensions, coordinates; and layers beyond the last."""

from collections.abc import Iterable, Iterator

from asap.core.text import plain
from asap.mapping.coverage import Line, Target, Tensor, matches
from asap.mapping.language.expression import variables
from asap.mapping.language.feedback import Code, Feedback, Position, delete_line, feedback, nearest, replace
from asap.mapping.language.program import Decision, IndexMap, Mesh, Order, Program, Setting, Sharding, Word
from asap.plans.axes import MEANINGS, WORDS

_SHOWN = 40


def check_names(program: Program, target: Target | None) -> Iterator[Feedback]:
    """Names that nothing has, and layers that the model does not have."""
    if target is not None and program.mesh is not None:
        for degree in program.mesh.degrees:
            if degree.axis.text not in target.axes:
                yield _unknown("axis", degree.axis, target.axes)
    axes = program.mesh.axes if program.mesh else ()
    for line in program.decisions:
        if isinstance(line, Sharding) and (program.mesh or not program.unread):
            yield from (_unknown("axis", axis, axes) for axis in line.axes if axis.text not in axes)
        if target is not None and isinstance(line, Line):
            yield from _check_line(line, target)
    order = program.order
    if order is not None and isinstance(order.by, IndexMap):
        known = [parameter.text for parameter in order.by.parameters]
        for variable in variables(order.by.expression):
            if variable.name not in known:
                yield _unknown("coordinate", Word(variable.name, variable.at), known)


def _check_line(line: Line, target: Target) -> Iterator[Feedback]:
    tensors = target.tensors(line.keyword)
    for name in line.names:
        if not any(matches(name.text, tensor.name) for tensor in tensors):
            yield _no_tensor(line.keyword, name, tensors, target)
    if (layers := line.layers) is not None and not layers.first.value <= layers.last.value < target.layers:
        last = target.layers - 1
        first = min(layers.first.value, layers.last.value, last)
        found = f"layers {layers.first.value}..{layers.last.value} of a model with layers 0..{last}"
        right = f"{first}..{min(max(layers.first.value, layers.last.value), last)}"
        yield feedback(Code.LAYERS_OUTSIDE, layers.at, found, f"write {right}", repair=replace(layers.at, right))
        return
    yield from _check_places(line, target, tensors)


def _check_places(line: Line, target: Target, tensors: Iterable[Tensor]) -> Iterator[Feedback]:
    """Whether what the names and the layers leave is anything, and has the dimension."""
    named = [tensor for tensor in tensors if not line.names or any(matches(n.text, tensor.name) for n in line.names)]
    layers = line.layers
    left = [
        tensor
        for tensor in named
        if layers is None or any(layers.first.value <= layer <= layers.last.value for layer in tensor.layers)
    ]
    if named and not left and layers is not None:
        where = (
            f"no such tensor lies in layers {layers.first.value}..{layers.last.value} of {plain(target.name, _SHOWN)}"
        )
        yield feedback(Code.NO_SUCH_TENSOR, layers.at, where, "leave the layers out", repair=delete_line(line.at.line))
    dimensions = {dimension.name for tensor in left for dimension in tensor.dimensions if dimension.name}
    if left and isinstance(line, Sharding) and line.dimension.text not in dimensions:
        yield _unknown("dimension", line.dimension, sorted(dimensions))


def _no_tensor(keyword: str, name: Word, tensors: Iterable[Tensor], target: Target) -> Feedback:
    known = sorted({tensor.name for tensor in tensors})
    kind = "activation" if keyword == "constrain" else "tensor"
    found = f"{plain(target.name, _SHOWN)} has no {kind} {plain(name.text, _SHOWN)}"
    return _suggest(Code.NO_SUCH_TENSOR, name.at, found, nearest(name.text.replace("*", ""), known), known)


def _unknown(kind: str, name: Word, known: Iterable[str]) -> Feedback:
    known, found = list(known), f"there is no {kind} {plain(name.text, _SHOWN)}"
    axis = WORDS.get(name.text.lower()) if kind == "axis" else None
    if axis in known:
        advice = f"write {axis} ({MEANINGS[axis]})"
        return feedback(Code.UNKNOWN_NAME, name.at, found, advice, repair=replace(name.at, axis))
    return _suggest(Code.UNKNOWN_NAME, name.at, found, nearest(name.text, known), known)


def _suggest(code: Code, at: Position, found: str, near: str | None, known: list[str]) -> Feedback:
    if near:
        return feedback(code, at, found, f"did you mean {near}?", repair=replace(at, near))
    advice = f"there are {', '.join(known)}" if known else "say the mesh first: mesh data=4 model=4"
    return feedback(code, at, found, advice, repair=delete_line(at.line))


def check_once(program: Program) -> Iterator[Feedback]:
    """Two lines that decide the same thing differently."""
    first: dict[str, Decision] = {}
    for decision in program.decisions:
        subject = _subject(decision)
        earlier = first.setdefault(subject, decision) if subject else decision
        if earlier != decision:
            found = f"{subject} is decided on line {earlier.at.line}, and differently here"
            yield feedback(
                Code.CONTRADICTION, decision.at, found, "remove one of them", other=earlier.at,
                repair=delete_line(decision.at.line),
            )  # fmt: skip


def _subject(decision: Decision) -> str | None:
    if isinstance(decision, Setting):
        return decision.keyword
    return {Mesh: "mesh", Order: "order"}.get(type(decision))
