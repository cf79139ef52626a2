"""Logs in what carries them: prefixes, containers, archives, broken and very long lines."""

import bz2
import gzip
import io
import json
import lzma
import re
import textwrap
import zipfile

import pytest

from asap.core.errors import ConfigError
from asap.experiments.logs import text as texts
from asap.experiments.logs.read import is_log, read_log
from tests.cases import cases, kept
from tests.experiments.test_logs import FORMS, KNOWN, MEGATRON, said


def each(dress):
    return lambda text: "\n".join(dress(line) for line in text.splitlines()).encode()


def zipped(text):
    with zipfile.ZipFile(packed := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("job/train.log", text)
    return packed.getvalue()


NOW = "2025-01-02T03:04:05.123456789Z"
CARRIERS = {
    **{name: each(line.format) for name, line in kept(__file__)["CARRIERS"].items()},
    "docker": each(lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": NOW})),
    "cloudwatch": lambda text: json.dumps({"events": [{"message": one} for one in text.splitlines()]}, indent=1),
    "google": lambda text: json.dumps([{"textPayload": line} for line in text.splitlines()], indent=2).encode(),
    "docker, of ranks": lambda text: CARRIERS["docker"](CARRIERS["srun"](text).decode()),
    "fence": lambda text: f"### A question\n\n```shell\n{text}\n```\n".encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16, appended": lambda text: text.encode("utf-16-le"),
    "utf-8 of windows": lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"),
    "gz": lambda text: gzip.compress(text.encode()),
    "bz2": lambda text: bz2.compress(text.encode()),
    "xz": lambda text: lzma.compress(text.encode()),
    "zip": zipped,
}


@pytest.mark.parametrize("carry", CARRIERS.values(), ids=list(CARRIERS))
def test_the_same_log_says_the_same_whatever_carries_it(carry, write, monkeypatch):
    for form in FORMS[::3]:
        carried = write(carry(form["text"]), "carried.log")
        assert said(carried) == said(write(form["text"])), form["name"]
    monkeypatch.setattr(texts, "CHUNK", 4096)
    assert said(carried) == said(write(form["text"])), "in pieces"


@cases("name, carrier")
def test_a_log_is_known_in_what_carries_it(name, carrier, write):
    assert is_log(write(CARRIERS[carrier](MEGATRON), name))


def test_of_several_files_in_a_zip_one_is_asked_for(write, tmp_path):
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("0.log", "a")
        archive.writestr("1.log", "b")
    with pytest.raises(ConfigError, match="holds 2 files"):
        read_log(tmp_path / "logs.zip")


BROKEN = {
    f"at {width} columns": lambda text, width=width: re.findall(f".{{1,{width}}}", text) for width in (60, 80, 132)
}
BROKEN |= {f"by words in {width}": lambda text, width=width: textwrap.wrap(text, width) for width in (60, 100)}


@pytest.mark.parametrize("lines", BROKEN.values(), ids=list(BROKEN))
@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
@pytest.mark.parametrize(
    "name", ["torchtitan 2025, configuration, colours, out of memory", "XLA counts more than there is"]
)
def test_the_figures_of_a_message_that_is_broken_are_read(lines, prefix, name, write):
    before, message = re.fullmatch(
        r"(?s)(.*\n|)(?:\[rank3\]: )?([^\n]*?(?:OutOfMemoryError|RESOURCE_EXHAUSTED)[^\n]*)\n.*", KNOWN[name]["text"]
    ).groups()
    broken = f"\n[rank4]: another line\n{prefix}".join(lines(message))
    whole, ending = (read_log(write(f"{before}{text}\n")).ending for text in (prefix + message, prefix + broken))
    assert ending.model_copy(update={"line": whole.line}) == whole
    assert whole.capacity_bytes


def test_a_log_whose_newest_line_stands_first_has_the_same_steps(write):
    line = " iteration {n}/ 9000 | elapsed time per iteration (ms): 2{n:04d}.0 | global batch size:   128 |"
    lines = [line.format(n=n) for n in range(10, 400, 10)]
    oldest, newest = (read_log(write("\n".join(order))) for order in (lines, lines[::-1]))
    assert (newest.measured, newest.runs) == (oldest.measured, 1)


def test_a_step_that_every_rank_prints_counts_once(write):
    doubled = "\n".join(f"{line}\n{line}" if "iteration" in line else line for line in MEGATRON.splitlines())
    assert read_log(write(doubled)).measured.step.steps == read_log(write(MEGATRON, "one.log")).measured.step.steps


@pytest.mark.parametrize("before", ["", "DEBUG another line of a library\n" * 50_000], ids=["at once", "late"])
def test_very_long_logs_are_read_behind_their_beginning(before, write, monkeypatch):
    monkeypatch.setattr(texts, "CHUNK", 1 << 16)
    line = " iteration {n}/ 9000 | elapsed time per iteration (ms): 2{n:04d}.0 | global batch size:   128 |\n"
    rest = "".join(line.format(n=n) for n in range(100, 6000))
    end = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    reading = read_log(write(before + MEGATRON + rest + end))
    assert reading.blocks[0].values["global_batch_size"] == 128
    assert reading.measured.step.median == pytest.approx(23.05, rel=0.01)
    assert reading.measured.step.steps > 1000
    assert reading.ending.kind == "out_of_memory"
