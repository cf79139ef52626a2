"""The form of a stack's table: which setting means what, with its words, its default and what is refused."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from asap.stacks.rules import Rule
from asap.stacks.words import Meaning, Part, Word, Words

Layout = Literal["data", "replica", "hybrid"]
"""What devices that see different sequences do with parameters: share them, copy them, share copies in groups."""
Form = Literal["yaml", "options", "equals", "assigned", "switches", "toml"]
"""``key: value``, ``--key value``, ``--key=value``, ``key=value``, ``--key-name value`` with bare switches, TOML."""


class Axes(Part):
    """Settings of the degrees. Devices that no degree counts see different sequences."""

    replica: Word | None = None
    data: Word | None = None
    seq: Word | None = None
    model: Word | None = None
    expert: Word | None = None
    stage: Word | None = None
    expert_tensor: Word | None = Field(
        default=None, description="tensor parallelism inside of experts, by default none"
    )
    slices: Word | None = Field(default=None, description="copies of the parameters over slices")
    layout: Layout = Field(default="data", description="of the parameters, where no strategy says it")
    strategy: Word | None = Field(default=None, description="says the layout by its words")
    lays_out: Words = Field(default=(), description="settings that decide the layout before it, and are not written")
    node: Word | None = Field(default=None, description="devices over which a hybrid layout shards")
    needs: dict[str, str] = Field(default_factory=dict, description="axis → section without which it cannot be set")
    whole: bool = Field(default=False, description="whether the degrees say all devices")
    folded: bool = Field(default=False, description="whether experts lie over the devices of data parallelism")
    rest: tuple[str, ...] = Field(default=(), description="words that stand for no degree: -1, none, auto")
    said_beside_others: bool = Field(default=False, description="whether the data degree is said where another is")
    data_of_all: bool = Field(default=False, description="whether the data degree counts copies and shares together")
    uneven_stages: bool = Field(default=False, description="whether stages may have unequal numbers of layers")
    whole_kv_heads: bool = Field(default=False, description="whether tensor parallelism has to divide the KV heads")


class Batch(Part):
    """Settings of the batch; of two that are said the third follows."""

    whole: Word | None = Field(default=None, description="of a step, all devices")
    micro: Word
    accumulation: Word | None = None
    in_pipeline: Word | None = Field(default=None, description="the microbatch where there are several stages")
    unit: Literal["sequences", "tokens"] = "sequences"
    all_at_once: tuple[str, ...] = Field(default=(), description="words for a microbatch that is the whole batch")
    alone: tuple[str, ...] = Field(default=(), description="switches that go with one microbatch only")
    asked: bool = Field(default=False, description="whether a batch that the user says counts for the microbatches")


class Offload(Part):
    """Switches that together keep something in host memory."""

    keys: tuple[Word, ...]
    what: tuple[Literal["optimizer", "parameters", "activations"], ...]
    on: str = "true"
    off: str = "false"


class Width(Part):
    """Of the MLP where it is not said: a ratio of the model's, of which a share counts, scaled, in multiples."""

    ratio: Words = ()
    said: Words = Field(default=(), description="what counts in place of the ratio of the model's")
    share: Words = Field(default=(), description="such as 2/3")
    scale: Words = ()
    multiple: Words = ()
    down: bool = Field(default=False, description="whether it is rounded down to these")


class Model(Part):
    """What is trained: by name, by shapes, or by a section with the names of a Hugging Face ``config.json``."""

    name: Word | None = None
    beside: str = Field(default="", description="where else it may be said")
    config: str | None = Field(default=None, description="Hugging Face's file of the model, where it lies beside")
    shapes: dict[str, Words] = Field(default_factory=dict, description="field of the model → setting")
    families: dict[str, dict[str, Meaning]] = Field(
        default_factory=dict, description="kind of model → what it implies of fields that are not said"
    )
    family: Word | None = Field(default=None, description="says the kind of model")
    width: Width = Width()
    tokens: Words = Field(default=(), description="those of a tokenizer, where the vocabulary is not said")
    padding: tuple[Word, ...] = Field(default=(), description="numbers whose product the vocabulary is a multiple of")
    vocabulary: Word | None = Field(default=None, description="names a tokenizer, whose model has this vocabulary")
    section: str | None = Field(default=None, description="with the names of a Hugging Face config.json")
    flags: dict[str, str] = Field(default_factory=dict, description="switch of the section → model_type")
    renamed: dict[str, str] = Field(default_factory=dict, description="own name in the section → Hugging Face's")
    over: dict[str, Word] = Field(default_factory=dict, description="field that settings decide of any model")


class Refusal(Part):
    """Settings that make a run another one than is modelled."""

    keys: tuple[str, ...] = Field(default=(), description="names, or beginnings that end in a dot or an underscore")
    pattern: str | None = Field(default=None, description="of further names")
    reason: str = ""
    must: str = Field(default="", description="in place of a reason: what the value has to be")
    hint: str = "give a run that trains all parameters of a decoder on tokens"
    only: str = Field(default="", description="pattern of the values that do; none: any that is on")
    when: dict[str, str] = Field(default_factory=dict, description="counts only beside settings, as rules have them")
    unless: tuple[str, ...] = ("false", "none", "null", "0", "")

    def forbids(self, key: str, value: object) -> bool:
        """Whether a setting is one of them."""
        said = str(value).casefold()
        named = matches(self.keys, key) or (self.pattern is not None and re.search(self.pattern, key) is not None)
        return named and said not in self.unless and re.search(self.only, said) is not None


class Release(Part):
    """An earlier release or a fork, told by settings that no later one takes."""

    signs: tuple[str, ...]
    later: tuple[str, ...] = Field(description="settings that came after them")


class Files(Part):
    """By which keys a file is known."""

    needs: tuple[str, ...] = Field(default=(), description="all of them")
    own: tuple[str, ...] = Field(default=(), description="keys of this stack alone; each counts one")
    marks: dict[str, str] = Field(default_factory=dict, description="key → pattern of its value; each counts three")
    least: int = 1


class Command(Part):
    """By which command it is started."""

    program: str = Field(description="pattern of the text up to the settings")
    config: tuple[str, ...] = Field(default=(), description="options that name files of settings, and key=value after")
    positional: bool = Field(default=False, description="whether files are named without an option")
    places: tuple[str, ...] = Field(default=(), description="where a file lies that is named without an ending")
    variable: str | None = Field(default=None, description="of the environment, which names the file")
    by_default: str | None = Field(default=None, description="file of the repository that counts where none is named")
    signs: tuple[str, ...] = Field(default=(), description="options some of which make a command one of these")
    least: int = Field(default=2, description="how many of them")
    named: str | None = Field(default=None, description="key of what the first word without a dash names")
    prefixes: tuple[str, ...] = Field(default=(), description="beginnings of names that count for nothing")
    wrong: dict[str, str] = Field(default_factory=dict, description="pattern of a command → why it is not read")
    alone: str | None = Field(default=None, description="pattern of a command that starts one process")


class Spec(Part):
    """The table of a stack."""

    name: str
    framework: str = ""
    contract: str = Field(default="settings", description="its key in the overrides of asap.analysis")
    kin: Literal["jax", "fsdp", "megatron", "nemo"] | None = Field(
        default=None, description="whose constants its steps have"
    )
    splits_sequence: bool = Field(
        default=True, description="whether tensor parallelism splits the sequence between its blocks, where not said"
    )
    source: str
    release: str
    prints: str = Field(default="", description="what prints all settings, or where they are saved")
    capture: str = Field(default="", description="how a profile is captured")
    captures: dict[str, str] = Field(default_factory=dict, description="beside which settings, as rules have them")
    form: Form = "yaml"
    dashes: bool = Field(default=False, description="whether names may be written with dashes")
    pythonic: bool = Field(default=False, description="whether switches are Python's True and False")
    files: Files = Files()
    command: Command | None = None
    defaults: dict[str, Meaning] = Field(default_factory=dict, description="of settings, as the program has them")
    fixed: tuple[str, ...] = Field(default=(), description="settings that the program sets itself")
    axes: Axes
    batch: Batch
    recompute: Words = Field(default=(), description="each makes layers compute again what they did not keep")
    recompute_unsaid: Rule | None = Field(
        default=None, description="where it is not known what is recomputed, and what is said then"
    )
    offload: tuple[Offload, ...] = ()
    devices: tuple[Word, ...] = Field(default=(), description="numbers whose product is that of all devices")
    machine: Word | None = Field(default=None, description="names the cloud's kind of a node")
    cut: Word | None = Field(default=None, description="length at which sequences are cut that may be shorter")
    packed: tuple[str, ...] = Field(default=(), description="switches that fill sequences up to it")
    doubtful: dict[str, str] = Field(
        default_factory=dict, description="setting whose meaning hangs on the release → what it leaves open"
    )
    unmodelled: dict[str, dict[str, Meaning]] = Field(
        default_factory=dict,
        description="what settings that no prediction uses are likely to bring → each, and as it takes it; false: off",
    )
    rules_out: dict[str, dict[str, Meaning]] = Field(
        default_factory=dict, description="cause of a slow step → settings and values under which it is none"
    )
    workload: dict[str, Words] = Field(default_factory=dict, description="field of the workload → setting")
    fields: dict[str, Meaning] = Field(default_factory=dict, description="fields of the workload that no setting says")
    model: Model = Model()
    refused: tuple[Refusal, ...] = ()
    means: tuple[Rule, ...] = Field(default=(), description="settings that stand for others")
    rules: tuple[Rule, ...] = Field(default=(), description="what it refuses, needs or gives up, and what to know")
    deepspeed: str | None = Field(default=None, description="names a DeepSpeed configuration that shards the run")
    by_code: tuple[str, ...] = Field(default=(), description="settings that the stack's own code reads")
    switches: tuple[str, ...] = Field(default=(), description="options without a value")
    names: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="names that its code treats alike")
    renamed: dict[str, str] = Field(
        default_factory=dict, description="name of a fork or an earlier release → present one"
    )
    sections: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="section of a file → names in it")
    releases: tuple[Release, ...] = Field(default=(), description="the earliest first")
    remarks: dict[str, str] = Field(default_factory=dict, description="what who writes an argument has to know of it")

    @field_validator("unmodelled", mode="before")
    @classmethod
    def _all_off(cls, value: Any) -> Any:
        return {why: dict.fromkeys(keys, False) if isinstance(keys, list) else keys for why, keys in value.items()}

    @model_validator(mode="before")
    @classmethod
    def _framework(cls, values: Any) -> Any:
        return {"framework": values.get("name", "")} | values if isinstance(values, dict) else values

    def add_defaults(self, settings: Mapping[str, object]) -> dict[str, object]:
        """The settings with what the program takes where they say nothing."""
        return {**self.defaults, **{key: value for key, value in settings.items() if value is not None}}

    @cached_property
    def words(self) -> frozenset[str]:
        """Every setting that the table reads, found once."""
        named = {
            *self.by_code,
            *self.names.get("tensors", ()),
            *self.fixed,
            *self.packed,
            *self.defaults,
            *self.doubtful,
            *self.renamed,
        }
        named |= {key for keys in self.unmodelled.values() for key in keys}
        named |= {key for rule in self.rules if rule.notes for keys in rule.beside for key in keys.split("|")}
        return (
            frozenset(_keys(self.model_dump(exclude={"files", "command", "unmodelled", "rules_out", "rules", "means"})))
            | named
        )


def matches(names: tuple[str, ...], key: str) -> bool:
    """Whether a key is one of some names, or begins as one that ends in a dot or an underscore."""
    return any(key == name or (name.endswith((".", "_")) and key.startswith(name)) for name in names)


def _keys(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [
            *(key for key in part.get("keys", ()) if isinstance(key, str)),
            *part.get("alone", ()),
            *part.get("needs", {}).values(),
        ]
        return [*own, *(key for value in part.values() for key in _keys(value))]
    return [key for value in part for key in _keys(value)] if isinstance(part, list | tuple) else []
