"""The grammar of a plan's text: ``data=16 seq=4 model=8 dcn.data=2 microbatches=8 remat=full``.

A term is ``key=value``, ``key: value``, ``--key value`` or an axis with its degree (``tp8 pp4``, ``tp8pp4``); keys are
words of any vocabulary in :mod:`asap.plans.axes`: ``fsdp=16 tensor=8``, ``tp=8 pp=4``, ``ici_fsdp_parallelism=16``,
``--tensor-model-parallel-size 8``.

``data`` alone is FSDP. Beside the word ``fsdp`` it can only be MaxText's, and is plain data parallelism (``replica``).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

from asap.core.errors import PlanError
from asap.core.text import plain
from asap.plans.axes import AXES, MEANINGS, axis_of
from asap.plans.remat import OF_PARTS, POLICIES, TENSORS, Offload, Optimizer, Policy, StatePrecision, read_policy

LONGEST = 1000
"""Characters; a plan with every axis under the longest names has fewer."""

SETTINGS = {
    "microbatches": "microbatches",
    "num_pipeline_microbatches": "microbatches",
    "gradient_accumulation_steps": "microbatches",
    "pipeline_repeats": "pipeline_repeats",
    "num_pipeline_repeats": "pipeline_repeats",
    "remat": "remat",
    "remat_policy": "remat",
    "offload": "offload",
    "sequence_parallel": "sequence_parallel",
    "loss_chunks": "loss_chunks",
    "num_vocab_tiling": "loss_chunks",
    "first_moment": "first_moment",
    "second_moment": "second_moment",
    "weight_precision": "weight_precision",
    "optimizer": "optimizer",
    "global_batch": "global_batch",
}
"""Words for what a plan says beside its axes."""
_CHOICES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("first_moment", "second_moment", "weight_precision"), get_args(StatePrecision)),
    "optimizer": get_args(Optimizer),
    "sequence_parallel": ("true", "false"),
}

_POLICIES = (
    f"one of {', '.join(POLICIES)}; or tensors out of {', '.join(TENSORS)}, as in key+value+host.query; or Megatron's"
    " modules, as in selective.layernorm+moe_act; or a share of the layers, as in full.1/2"
)

_FLAG = r"--[a-z][\w-]*"
_VALUE = r"[^\s,;{}]+"
_TERM = re.compile(
    rf"(?P<key>{_FLAG}|[a-z][\w.]{{0,80}})\s{{0,9}}[=:]\s*(?P<value>{_VALUE})"
    rf"|(?P<flag>{_FLAG})\s+(?P<given>(?!-){_VALUE})"
    r"|(?<![a-z_])(?P<short>[tdcpe]p)(?P<degree>\d{1,9})(?=[tdcpe]p\d|(?!\w))",
    re.IGNORECASE | re.ASCII,
)
_FILLER = re.compile(r"[\s,;{}]*")
_COUNT = re.compile(r"0*[1-9][0-9]{0,8}", re.ASCII)
_FSDP = re.compile(r"(?:(?:ici|dcn)\.)?fsdp", re.IGNORECASE)
_REPLICA = re.compile(r"(?:(?:ici|dcn)\.)?replica", re.IGNORECASE)
_DATA = re.compile(r"(?:(?:ici|dcn)\.)?data", re.IGNORECASE)
_MESH_WORD = re.compile(r"(?:(?:ici|dcn)\.)?(?:tensor|context|pipeline)", re.IGNORECASE)
_AXES = ", ".join(f"{axis} ({MEANINGS[axis]})" for axis in AXES)
_OF_RUN = ("batch", "sequence", "hardware", "network")
"""Options that say what runs, beside its plan."""
_HINT = f"axes are {_AXES}; settings are {', '.join(dict.fromkeys(SETTINGS.values()))}"


@dataclass(frozen=True)
class Term:
    """One ``key=value`` as written."""

    key: str
    value: str


def read_terms(text: str) -> list[Term]:
    """All terms of a text that holds nothing else; also ``{'model': 8, 'data': 16}`` as launchers print it.

    Raises:
        PlanError: there is something else in it, or nothing.
    """
    if len(text) > LONGEST:
        raise PlanError(f"is longer than any plan ({LONGEST} characters)", where=plain(text, 40))
    bare = text.replace("'", "").replace('"', "")
    if not _FILLER.fullmatch(_TERM.sub("", bare)) or not _TERM.search(bare):
        raise PlanError("is not a plan", where=text or "(empty)", hint='write it like "data=16 seq=4 model=8"')
    return [
        Term(found["key"] or found["flag"] or found["short"], found["value"] or found["given"] or found["degree"])
        for found in _TERM.finditer(bare)
    ]


def plan_fields(text: str) -> dict[str, Any]:
    """The fields of a plan: degrees under ``ici`` and ``dcn``, and settings.

    Raises:
        PlanError: an unknown word, an axis or setting given twice, or a value that it cannot have.
    """
    terms = read_terms(text)
    replicates = any(_FSDP.fullmatch(term.key) for term in terms)
    fields: dict[str, Any] = {"ici": {}, "dcn": {}}
    words: dict[tuple[str, str], str] = {}
    for term in terms:
        setting = SETTINGS.get(term.key.lower().lstrip("-").replace("-", "_"))
        place = axis_of(term.key)
        if setting is not None:
            place, (into, name, value) = ("", setting), (fields, setting, _setting(setting, term))
        elif place is not None:
            network, axis = place
            axis = "replica" if replicates and _DATA.fullmatch(term.key) else axis
            place, (into, name, value) = (network, axis), (fields[network], axis, _count(term))
        else:
            of_run = f"it is of the run: in a chat runs {term.key}=…, or what if {term.key}=…; else --{term.key}"
            hint = of_run if term.key in _OF_RUN else _HINT
            raise PlanError(f"unknown axis or setting {plain(term.key, 60)!r}", where=text, hint=hint)
        if place in words:
            both = words[place] if words[place] == term.key else f"{words[place]} and {plain(term.key, 60)}"
            raise PlanError(f"{name} is given twice ({both})", where=text)
        words[place] = plain(term.key, 60)
        into[name] = value
    return fields


def data_note(text: str, incumbent_replicas: int = 1) -> str | None:
    """What ``data`` was taken for, where the writer may have meant MaxText's plain data parallelism; else ``None``.

    Args:
        text: a plan that parses.
        incumbent_replicas: degree of plain data parallelism of the plan that runs.
    """
    keys = [term.key for term in read_terms(text)]
    word = next((key for key in keys if _DATA.fullmatch(key)), None)
    if word is None or any(_FSDP.fullmatch(key) or _REPLICA.fullmatch(key) for key in keys):
        return None
    if incumbent_replicas == 1 and not any(_MESH_WORD.fullmatch(key) for key in keys):
        return None
    other = word.lower().replace("data", "replica")
    return f"{word} is FSDP here (sharded parameters); plain data parallelism, MaxText's data, is {other}"


def _setting(name: str, term: Term) -> Any:
    if name == "remat":
        return _policy(term)
    if name == "offload" and term.value.casefold() == "none":
        return ()
    if name == "offload":
        return tuple(_choice(term.key, part, get_args(Offload)) for part in term.value.split("+"))
    if (choices := _CHOICES.get(name)) is not None:
        return _choice(term.key, term.value.lower(), choices)
    return _count(term)


def _policy(term: Term) -> Policy:
    """A named policy, tensors (``remat=key+value+host.query``), modules or a share of the layers."""
    try:
        return read_policy(term.value)
    except ValueError as error:
        parts = term.value.lower().startswith(OF_PARTS)
        raise PlanError(
            f"{term.key} cannot be {plain(term.value, 40)!r}", where="plan", hint=str(error) if parts else _POLICIES
        ) from error


def _count(term: Term) -> int:
    if not _COUNT.fullmatch(term.value):
        raise PlanError(f"{term.key} must be a positive integer, not {plain(term.value, 20)!r}", where="plan")
    return int(term.value)


def _choice(key: str, value: str, choices: Iterable[str]) -> str:
    if value not in choices:
        raise PlanError(f"{key} cannot be {plain(value, 40)!r}", where="plan", hint=f"one of {', '.join(choices)}")
    return value
