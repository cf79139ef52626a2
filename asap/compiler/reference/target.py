"""The reference step as a mapping program sees it: its tensors and activations by name. Needs no jax."""

from collections.abc import Iterator

from asap.compiler.reference.layout import DIMENSIONS, RULES
from asap.compiler.reference.parameters import Parameter, parameter_tree
from asap.compiler.reference.program_lines import NO_LINES, ProgramLines
from asap.compiler.reference.segments import first_layers, segments
from asap.core.errors import InsufficientEvidenceError
from asap.mapping.language.parse import parse
from asap.mapping.target import Dimension, Target, Tensor
from asap.models import Architecture, Workload
from asap.plans import AXES

RESIDUAL = ("batch", "sequence", "residual")
QUERY = ("batch", "heads", "sequence", None)
LOGITS = ("batch", "sequence", "vocabulary")


def mapping_target(model: Architecture, workload: Workload | None = None) -> Target:
    """What a program may say of the training step of a decoder.

    Raises:
        InsufficientEvidenceError: a shape is unknown, or the decoder is of an unsupported kind.
    """
    name = model.name or "the model"
    if model.is_mla:
        raise InsufficientEvidenceError("the reference step has no latent attention (MLA)", where=name)
    if missing := model.missing():
        raise InsufficientEvidenceError(f"the mapping needs to know {', '.join(missing)}", where=name)
    layers, workload = model.layers or 0, workload or Workload()
    activations = _activations(model, workload, layers)
    kept = "bf16" if workload.weight_precision == "bf16" else "fp32"
    return Target(name, AXES, tuple(_parameters(model)), activations, layers, kept)


def program_lines(text: str, model: Architecture, workload: Workload) -> ProgramLines:
    """What the lines of a checked program say of the step of a model."""
    return ProgramLines.of(mapping_target(model, workload), parse(text)[0]) if text else NO_LINES


def _parameters(model: Architecture) -> Iterator[Tensor]:
    parts = segments(model)
    tree = parameter_tree(model, parts)
    yield from (_tensor(name, found) for name, found in tree.items() if isinstance(found, Parameter))
    layers: dict[Tensor, list[int]] = {}
    for start, segment, block in zip(first_layers(parts), parts, tree["segments"], strict=True):
        length = len(segment.block)
        for offset, weights in enumerate(block):
            for name, found in weights.items():
                held = range(start + offset, start + length * segment.repeats, length)
                layers.setdefault(_tensor(name, found), []).extend(held)
    for tensor, held in layers.items():
        yield Tensor(tensor.name, tensor.dimensions, tuple(sorted(held)))


def _tensor(name: str, parameter: Parameter) -> Tensor:
    pairs = [pair for pair in zip(parameter.shape, parameter.names, strict=True) if pair[1] != "layers"]
    return Tensor(name, tuple(_dimension(length, dimension) for length, dimension in pairs))


def _activations(model: Architecture, workload: Workload, layers: int) -> tuple[Tensor, ...]:
    lengths = {
        "batch": workload.global_batch, "sequence": workload.sequence_length, "residual": model.d_model,
        "heads": model.heads, "vocabulary": model.vocab,
    }  # fmt: skip

    def activation(name: str, dimensions: tuple[str | None, ...], layers: tuple[int, ...]) -> Tensor:
        return Tensor(name, tuple(_dimension(lengths.get(each or ""), each) for each in dimensions), layers)

    all_layers = tuple(range(layers))
    return (
        activation("residual", RESIDUAL, all_layers),
        activation("query", QUERY, all_layers),
        activation("logits", LOGITS, ()),
    )


def _dimension(length: int | None, name: str | None) -> Dimension:
    return Dimension(DIMENSIONS.get(name, name), length, RULES[name]) if name else Dimension("", length)
