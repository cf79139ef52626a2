"""A training log read once: its last run, with settings, measurements, hardware and ending."""

import lzma
import math
import re
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError, ConfigError, NotFoundError, UsageError
from asap.core.progress import report
from asap.core.secrets import strip_secrets
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import read_document, unwrap
from asap.experiments.logs.checks import contradictions, figures_of
from asap.experiments.logs.endings import ending_of
from asap.experiments.logs.formats import Form, table
from asap.experiments.logs.machine import degrees_of_shape, hardware_of
from asap.experiments.logs.measured import Sizes, measured, step_index
from asap.experiments.logs.reading import FLATTENED, LogReading, SettingsBlock
from asap.experiments.logs.scan import Found, Scan, scan, scan_text
from asap.experiments.logs.settings import look_up, settings_of
from asap.experiments.logs.text import lines_of, number, open_log
from asap.experiments.logs.values import command_of, is_flattened, scalar, values_of
from asap.experiments.observed import FEWEST, Measured
from asap.stacks.megatron.sections import BRIDGE, NEMO, dialect
from asap.stacks.registry import claimant, folder_of, instead_of_log
from asap.stacks.stack_settings import dotted

SUFFIXES = (".log", ".out", ".err", ".stdout", ".stderr")
_OTHERS = (".yaml", ".yml", ".json", ".toml", ".sh", ".py", ".gin", ".slurm", ".sbatch", ".jsonl", ".pb")
_OF_ROWS = (".jsonl", ".csv", ".tsv")  # what trackers export metrics as
_SAVED = (".yaml", ".yml", ".json")
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_PEEK, _BEGINNING = 256 << 10, 4 << 20
_MOST_FILES, _MOST_LOGS = 4000, 256  # of a folder: files that are looked for, and logs that are looked into
_KEPT = ((b'"log_history"', b'"global_step"'), (b'"current_steps"', b'"elapsed_time"'))
"""What the files have in which the Trainer and LLaMA-Factory keep what they logged."""
_OF_LOGS_ALONE = ("arguments", "fields")  # grammars of blocks that no other kind of file has
_OF_NEOX = frozenset(("attention_config", "global_num_gpus", "user_script", "text_gen_type"))
_SHARD = ("mesh.dp_shard_mod_ep", "mesh.dp_shard_in_ep")  # in torchtitan with experts, in 2025, the parts of dp_shard
_BENEATH = ("any", "mlperf", "deepspeed")  # what prints beside a program that trains
_BACK, _LATELY = 5, 8  # ranks print steps out of order by fewer, and the same one so many lines later
_AXES = re.compile(r"[\[(]([^\[\]()]*)[\])],? ?(?:and sizes )?\[([\d, ]+)\]")
_NAMED_AXES = re.compile(r"\b([a-z]\w*)=(\d{1,7})\b")
_BATCHES = {"micro_batch", "accumulation"}  # what programs say before a first step, and of an evaluation not
_WHOLE = ("steps_done", "optimization_steps")  # steps of a run, which may have ended early
_BARE_KEY = re.compile(r"\w+:")
_CALLED = re.compile(r"\b(?:(\w+)\((?=\w+=|$)|(\w+Config) \{|(\w+ config))|\*{3,} (Experiment) configuration")


def is_log(path: Path) -> bool:
    """Whether a file is a training log: by its name, else by lines that only a training log has."""
    suffixes = [suffix.casefold() for suffix in path.suffixes[-2:]]
    packed = bool(suffixes) and suffixes[-1] in _PACKED
    suffix = (suffixes[-2] if len(suffixes) > 1 else "") if packed else suffixes[-1] if suffixes else ""
    if suffix in SUFFIXES or (packed and suffix == ".txt"):
        return True
    if suffix in _OTHERS and suffix not in (".json", ".jsonl"):
        return False
    try:
        with open_log(path) as stream:
            head = stream.read(_PEEK)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, AsapError):
        return False
    if any(all(sign in head for sign in signs) for signs in _KEPT):
        return True
    lines = lines_of(head)
    if b"\0" in lines[:4096] or (suffix == ".json" and lines.strip() == head.strip()):
        return False
    found = scan_text(head)
    printed = any(block.kind in _OF_LOGS_ALONE for block in found.blocks)
    if suffix in _OF_ROWS and sum(1 for _ in found.steps) > 1:
        return True
    return not head.startswith(b"#!") and bool(
        found.parameters or printed or sum(not one[0].general for one in found.steps) > 1
    )


def log_of_folder(folder: Path) -> tuple[Path, int] | None:
    """The log below a folder that says most of a run, of several the newest, and how many there are."""
    found = (path for path in islice(folder.rglob("*"), _MOST_FILES) if path.is_file())
    logs = [path for path in found if not path.name.startswith(".") and is_log(path)]
    if not logs:
        return None
    newest = sorted(logs, key=lambda path: -path.stat().st_mtime)
    return max(newest[:_MOST_LOGS], key=_says), len(logs)


def _says(path: Path) -> int:
    """How much of a run the beginning of a log says: settings before steps."""
    with open_log(path) as stream:
        found = scan_text(stream.read(_BEGINNING))
    return 2 * bool(found.blocks or found.parameters or found.statements) + bool(found.steps)


def read_log(path: Path) -> LogReading:
    """What a log says of its last run; reports the share of the file that was read, of a packed one at most all of it.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it cannot be read.
    """
    size = path.stat().st_size if path.is_file() else 0
    return reading_of(scan(path, lambda read: report(f"reading {path.name}", min(1.0, read / max(size, 1)))), path)


def read_resolved(path: Path) -> LogReading:
    """What a log says, or settings that a run saved: ``args.json``, ``hparams.yaml``, a tracker's ``config.yaml``.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it cannot be read, or holds nothing of a run.
        UsageError: it is neither.
    """
    if is_log(path):
        reading = read_log(path)
        ended = reading.ending.kind != "running"
        if not (reading.blocks or reading.statements or ended or reading.measured != Measured()):
            raise ConfigError("holds nothing of a run", where=str(path), hint=instead_of_log(None))
        doubts = contradictions(reading, settings_of(reading), Experiment(id="log"))
        notes = (*(f"contradicts itself: {one}" for one in doubts), *reading.notes)
        return reading.model_copy(update={"notes": notes})
    if path.suffix in _SAVED:
        values = strip_secrets(unwrap(read_document(path).values))
        block = SettingsBlock(kind="file", line=1, complete=True, values=values)
        return LogReading(schema="asap.log/1", file=path.name, stack=_stack_of_file(values, path), blocks=(block,))
    if not path.exists():
        raise NotFoundError("no such file", where=str(path))
    hint = f"`asap analyze {path}` reads a configuration"
    if path.suffix in ("", ".sh", ".bash"):
        hint += f", `asap resolve -- bash {path}` catches what a script starts"
    raise UsageError("is neither a log nor settings that a run saved", where=str(path), hint=hint)


def _stack_of_file(values: Mapping[str, Any], path: Path) -> str | None:
    """The program whose settings a run saved."""
    of_megatron = {NEMO: "nemo", BRIDGE: "megatron-bridge"}.get(dialect(values) or "")
    with suppress(ConfigError):
        table_of = None if of_megatron else claimant(dotted(values), str(path))
        of_megatron = of_megatron or (table_of and folder_of(table_of))
    return of_megatron or next((stack for key, stack in table("settings")["of_stack"].items() if key in values), None)


def reading_of(found: Scan, path: Path) -> LogReading:
    """What the lines of a log say of its last run."""
    numbers = [index for _, fields, *_ in found.steps if (index := step_index(fields)) is not None]
    is_reversed = sum(after < before for before, after in pairwise(numbers)) > max(1, len(numbers) / 2)
    cuts = [] if is_reversed else _cuts(found)  # the newest line stands first, as collectors export them
    happened = [one[3] for one in found.steps[-1:]] + [one.offset for one in found.endings[-1:]]
    while len(cuts) > 1 and cuts[-1][1] > max(happened, default=0):
        cuts.pop()  # what prints settings again, and neither trains nor fails
    last_before, start = cuts[-1] if cuts else (-1, 0)
    notes: list[str] = []
    if cuts:
        begun = [(one.offset, one.line) for one in found.blocks] + [(one[3], one[2]) for one in found.steps]
        line = min((line for offset, line in begun if offset >= start), default=1)
        notes.append(f"{path.name} holds {len(cuts) + 1} runs; the last is read, from line {line}")
    blocks = _blocks(found, start) or _blocks(found, 0)
    statements = _statements(found.statements, last_before) or _statements(found.statements, -1)
    blocks = tuple(_overridden(block, statements.get("overrides", "")) for block in blocks)
    statements |= degrees_of_shape(statements.get("mesh_shape", ""), blocks)
    steps = [one for one in found.steps if one[3] >= start][:: -1 if is_reversed else 1]
    stack = _stack(found, blocks)
    is_training = stack is not None or any({"loss", "titled"} & one[1].keys() for one in steps)
    if not (blocks or statements.keys() - {"trainer"} or is_training):
        steps = [one for one in steps if not one[0].bar]  # anything draws progress bars
    if not blocks:
        statements = _alike(fields for offset, fields in found.settings if offset > last_before) | statements
    totals = [one for one in found.totals if one[3] >= start]
    figures = figures_of(steps)
    said = {key: str(value) for block in blocks if block.kind == "maxtext" for key, value in block.values.items()}
    names = table("settings")["last_step"]["names"]
    counts = [count for block in blocks for name in names if (count := look_up(block.values, name))]
    said |= {"steps": str(counts[-1])} if counts else {}
    ending = ending_of([one for one in found.endings if one.offset >= start], steps, totals, said | statements)
    memory_bytes = ending.capacity_bytes or figures.get("capacity_bytes")
    notes += _printed_twice(found, start, path.name)
    if found.thinned > 1:
        notes.append(f"one in {found.thinned} steps is read, as there are very many")
    batches = [batch for one in steps if (batch := number(one[1].get("global_batch", "")))]  # some runs ramp it up
    reading = LogReading(
        schema="asap.log/1", file=path.name, stack=stack, blocks=blocks, statements=statements,
        hardware=hardware_of(found, statements, memory_bytes), figures=figures,
        global_batch_of_steps=int(batches[-1]) if batches else None,
        ending=ending, runs=len(cuts) + 1, lines=found.lines, notes=tuple(notes),
    )  # fmt: skip
    said = settings_of(reading)
    tokens = said.global_batch * said.sequence if said.global_batch and said.sequence else None
    clock = figures.get("step_by_clock") if blocks or stack or said.model_dump(exclude_none=True) else None
    counts = {name: number(statements.get(name, "")) for name in ("hours_so_far", "batches_so_far", *_WHOLE)}
    if not clock and (hours := counts["hours_so_far"]) and (batches := counts["batches_so_far"] or 0) >= FEWEST:
        clock = 3600 * hours / batches
    sizes = Sizes(tokens, said.global_batch, said.devices, clock, next(filter(None, map(counts.get, _WHOLE)), None))
    return reading.model_copy(update={"measured": measured(steps, totals, sizes)})


def _cuts(found: Scan) -> list[tuple[int, int]]:
    """Where in the log another run begins: settings come again behind steps, or steps count from the start again. Each
    with the last step before it, behind which single lines may state settings of the new run."""
    cuts: list[tuple[int, int]] = []
    settings = sorted([*(one.offset for one in found.blocks), *(one[0] for one in found.parameters)])
    for place, (before, after) in enumerate(pairwise(found.steps)):
        between = settings[bisect_right(settings, before[3]) : bisect_left(settings, after[3])]
        step, last = step_index(after[1]), step_index(before[1])
        again = before[0] is after[0] and step is not None and last is not None and step < last - _BACK
        lately = (step_index(one[1]) for one in found.steps[max(0, place - _LATELY) : place])  # other ranks lag
        again = again and not (after[0].bar or any(step == one for one in lately))
        again = again and not (number(after[1].get("epoch", "")) or 0) > (number(before[1].get("epoch", "")) or 0)
        if between or again:
            cuts.append((before[3], between[0] if between else after[3]))
    said = [(one.offset, one.form.read(one.text)) for one in found.statements if isinstance(one.form, Form)]
    batches = (offset for offset, fields in said if _BATCHES & fields.keys())
    late = min((one for one in (*settings, *batches) if found.steps and one > found.steps[-1][3]), default=0)
    if any(one.offset < late for one in found.endings):
        cuts.append((found.steps[-1][3], late))
    return cuts


def _blocks(found: Scan, start: int) -> tuple[SettingsBlock, ...]:
    """Blocks of the run that begins at an offset; of one kind and title the last, which is what ran."""
    kept: dict[tuple[str, str], SettingsBlock] = {}
    for raw in found.blocks:
        if raw.offset < start or not (values := values_of(raw)):
            continue
        named = _CALLED.search(raw.title)
        title = next((word for word in named.groups() if word), "") if named else ""
        title = title or (raw.title.partition(":")[0] if _BARE_KEY.match(raw.title) else "")
        title = title or (next(iter(values)) if raw.kind == "json" else "")  # several mappings may be printed
        kind = "deepspeed" if raw.kind == "arguments" and "DeepSpeed" in raw.title else raw.kind
        kind = FLATTENED if is_flattened(raw) else kind
        kept[kind, title] = SettingsBlock(
            kind=f"{kind}: {title}" if title else kind, line=raw.line, complete=raw.complete, values=values,
            command=command_of(raw.lines) if raw.kind == "command" else "",
        )  # fmt: skip
    if parameters := [one for one in found.parameters if one[0] >= start]:
        values = {key: value for _, _, key, value in parameters}
        kept["maxtext", ""] = SettingsBlock(
            kind="maxtext", line=parameters[0][1], complete=len(values) > 200, values=values
        )
    return tuple(sorted(kept.values(), key=lambda one: one.line))


def _printed_twice(found: Scan, start: int, name: str) -> list[str]:
    """A note where a run prints its arguments twice, and otherwise the second time: the later ones count."""
    printed = [raw for raw in found.blocks if raw.kind == "arguments" and raw.offset >= start]
    printed = [raw for raw in printed if "DeepSpeed" not in raw.title]
    if len(printed) < 2 or printed[-1].lines == printed[0].lines:
        return []
    return [f"{name} prints its settings in lines {printed[0].line} and {printed[-1].line}; the later ones are read"]


def _statements(lines: Iterable[Found], behind: int) -> dict[str, str]:
    """Fields that single lines behind an offset state; the last one counts."""
    said: dict[str, str] = {}
    for one in lines:
        if one.offset <= behind or not isinstance(one.form, Form):
            continue
        if one.form.axes:
            said |= _degrees(one.text)
        new = {name: text if "=" in text else text.replace(",", "") for name, text in one.form.read(one.text).items()}
        said = new | said if one.form.first else said | new
        said |= one.form.sets
    return {name: plain(text, 200) for name, text in said.items()}


def _alike(lines: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Settings that lines say once, or always alike."""
    said: dict[str, set[str]] = {}
    for name, text in (item for fields in lines for item in fields.items()):
        said.setdefault(name, set()).add(text.replace(",", ""))
    return {name: text for name, (text, *others) in said.items() if not others}


def _overridden(block: SettingsBlock, overrides: str) -> SettingsBlock:
    """The model's own configuration with what a program says that it changes: ``n_embd=8192,n_layer=64``."""
    if not overrides or "model_type" not in block.values:
        return block
    changed = dict(each.split("=", 1) for each in overrides.split(",") if "=" in each)
    return block.model_copy(update={"values": block.values | {key: scalar(text) for key, text in changed.items()}})


def _degrees(text: str) -> dict[str, str]:
    """``with ['dp_shard', 'tp'], [4, 2]`` and ``with parallelism: dp_shard=4, tp=2`` as one field an axis."""
    if (found := _AXES.search(text)) is None:
        return {f"mesh.{name}": size for name, size in _NAMED_AXES.findall(text)}
    names = [name.strip(" '\"") for name in found[1].split(",")]
    sizes = [size.strip() for size in found[2].split(",") if size.strip()]
    degrees = {f"mesh.{name}": size for name, size in zip(filter(None, names), sizes, strict=False)}
    parts = [int(degrees[part]) for part in _SHARD if degrees.get(part, "").isdigit()]
    return ({"mesh.dp_shard": str(math.prod(parts))} if len(parts) == len(_SHARD) else {}) | degrees


def _stack(found: Scan, blocks: Sequence[SettingsBlock]) -> str | None:
    """The program, by its settings, else by the form of its steps, else by its statements."""
    for block in blocks:
        if block.kind == "maxtext":
            return "maxtext"
        if block.kind == "command" and block.values.keys() >= {"num_layers", "micro_batch_size"}:
            return "megatron"
        if block.kind.startswith("arguments") or "pipe_parallel_size" in block.values:
            return "gpt-neox" if block.values.keys() & _OF_NEOX or block.kind.startswith("json") else "megatron"
    lines = [(one.form, one.text) for one in found.statements if isinstance(one.form, Form)]
    said = [form for form, text in lines if form.sets or not form.fields or form.read(text)]
    forms = [one[0].stack for one in (*found.steps, *found.totals) if not one[0].bar]
    forms += [form.stack for form in said]
    for beneath in _BENEATH:
        forms = [stack for stack in forms if stack != beneath] or forms
    if "trainer" in forms and not {"megatron", "torchtitan"} & {*forms}:
        return "trainer"
    if any(block.kind.startswith("yaml: Experiment") for block in blocks):
        return "nemo"
    counted = Counter(stack for stack in forms if stack != "any")
    anyones = any(one[0].general for one in found.steps)  # another program may take the same options
    said = {key for block in blocks for key in block.values if not anyones}
    of_keys = next((stack for key, stack in table("settings")["of_stack"].items() if key in said), None)
    return counted.most_common(1)[0][0] if counted else of_keys
