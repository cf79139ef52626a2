"""Public threads, rebuilt: what came of the run is what we say of it, or ask for."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asap.core.errors import AsapError
from asap.core.units import GIB
from asap.evidence.effect import apply_outcomes
from asap.evidence.fact import Claim, StatedFact
from asap.experiments.create import Statement, create_experiment
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.proposals.selection.candidate import LIKELY, fit_odds
from asap.study.study import study_of

THREADS = tomllib.loads((Path(__file__).parents[1] / "data" / "threads.toml").read_text(encoding="utf-8"))["thread"]
NOT_CALM = ("likely to fit", "smallest change that fits", "Start with a setting", "does not fit", "it fits with")


def answered(thread: dict[str, Any], folder: Path) -> Iterator[tuple[str, Any]]:
    """What the advice on a thread says, in the words of the outcomes, and all of it as text."""
    first = folder / next(iter(thread["files"]))
    for name, text in thread["files"].items():
        (folder / name).write_text(text, encoding="utf-8")
    step = thread.get("step_time", "")
    said = Statement(
        hardware=thread["hardware"], slices=thread.get("slices"), network=thread.get("network"),
        step_time=str(folder / step) if step in thread["files"] else step or None,
    )  # fmt: skip
    try:
        record = create_experiment("run", said, config=first, overrides=thread.get("overrides", ()))
        told = [StatedFact(claim=Claim(claim), plan=None, words="as told") for claim in thread.get("told", ())]
        advice = propose(rank_candidates(study := apply_outcomes(study_of(record), told), priors={}), lambda *_: ())
    except AsapError as error:
        yield "text", f"{error.message} {error.hint}"
        yield "refused", True
        return
    statement, judged = advice.recommendation.statement, advice.judgement
    yield "text", advice.model_dump_json() + "".join(study.warnings)
    yield "hbm_gib", advice.incumbent.memory.total.value / GIB
    yield "died", fit_odds(advice.incumbent) < LIKELY and any(words in statement for words in NOT_CALM)
    yield "slower", judged is not None and judged.verdict == "slower" and statement.startswith(judged.advice)
    yield "questioned", judged is not None and judged.held_bytes and statement.startswith(judged.advice)
    asked = judged is not None and judged.asked is not None and statement.startswith(judged.advice)
    yield "asked", asked or any("so add --sequence" in note for note in record.notes)
    yield "ran", advice.incumbent.memory.fits and not (judged and judged.is_finding)


@pytest.mark.parametrize("thread", THREADS, ids=lambda thread: thread["name"])
def test_what_came_of_a_run_is_what_is_said_of_it(thread, tmp_path, request):
    if "wrong" in thread:
        request.applymarker(pytest.mark.xfail(reason=thread["wrong"], strict=True))
    answer = dict(answered(thread, tmp_path))
    assert answer.get(thread["outcome"])
    assert "hbm_gib" not in thread or answer["hbm_gib"] == pytest.approx(thread["hbm_gib"], rel=0.01)
    assert [named for named in thread.get("named", []) if named not in answer["text"].replace('\\"', '"')] == []
