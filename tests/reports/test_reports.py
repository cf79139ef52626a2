import html
import io
import json
import re
from contextlib import suppress

import pytest
from rich.console import Console

from asap.answers.inquiry import Inquiry
from asap.answers.registry import ask
from asap.ci.checks.comparison import advice
from asap.ci.render.comment import to_comment
from asap.ci.report import CiReport, ConfigurationReport
from asap.ci.source.resolve import ResolvedConfiguration
from asap.core.errors import InsufficientEvidenceError
from asap.experiments import Experiment, ExperimentStore, HardwareReference
from asap.plans import Plan
from asap.plans.validity import Constraints
from asap.profiles import Kpis, Operation, Profile
from asap.proposals import Citation
from asap.proposals.propose import no_proposals, propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.proposals.reasons.explain import cite
from asap.proposals.trials import OfferedTrial
from asap.reports.analysis import Analysis, assemble
from asap.reports.answers.forms import to_text
from asap.reports.html import render_page
from asap.reports.markdown import to_markdown
from asap.reports.summary import summary_of
from asap.reports.terminal import PASTED, SCREEN, print_analysis
from asap.reports.terminal_bars import StepBars
from asap.stacks.writing import PRIMUS_MODULE
from asap.study.open_study import open_study
from asap.study.study import Study, study_of
from tests.studies import study as run

HOSTILE = "\x1b[2J\x1b]0;owned\x07@everyone <script>x</script> [a](javascript:b) `c` | d\n# e\u202e"
FIGURE = re.compile(r"[+-]?\d[\d.,]* [A-Za-z%]+")
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def analysis_of(study):
    note = Citation(kind="principle", id="a-note", title=HOSTILE, url="javascript:alert(1)", supports="s")
    return assemble(study, propose(rank_candidates(study), lambda study, plan: (note,)), "a-session", "builtin/planner")


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    return analysis_of(open_study("paper-v6e-16", ExperimentStore(tmp_path_factory.mktemp("store"))))


@pytest.fixture(scope="module")
def hostile():
    operations = (
        Operation(name=HOSTILE, category=HOSTILE, fraction=0.5, bound="hbm"),
        Operation(name="all-reduce.1", category="all-reduce", fraction=0.3, collective="all-reduce"),
    )
    profile = Profile(source=HOSTILE, operations=operations, kpis=Kpis(step_time_s=1.0), warnings=(HOSTILE,))
    flags = {"XLA_FLAGS": f"'--xla_tpu_a={HOSTILE}' --b=1 '--b={HOSTILE}'", "CUDA_LAUNCH_BLOCKING": "1"}
    experiment = Experiment(id="x", description=HOSTILE, plan=Plan.parse("data=8"), notes=(HOSTILE,), environment=flags)
    return analysis_of(Study(experiment, profile, None, Constraints(devices_per_slice=8, slices=1), (HOSTILE,)))


def terminal(analysis, **console):
    stream = io.StringIO()
    shown = Console(file=stream, width=110, markup=False, emoji=False, highlight=False, **console)
    print_analysis(analysis, shown, full=True)
    return stream.getvalue()


def test_the_report_follows_the_order_of_the_job(paper):
    text = terminal(paper)
    words = ("paper-v6e-16", "Start with proposal 1", "ici_tensor_parallelism=4", "step time", "Why", "Missing")
    places = [text.index(word) for word in (*words, "Top operations", "Diagnosis  HBM", "Proposals")]
    assert places == sorted(places)


@pytest.mark.parametrize(("sequence", "verdict"), [(7168, "may not fit"), (16384, "does not fit")])
def test_what_decides_the_order_says_no_more_of_hbm_than_is_known(sequence, verdict):
    found = analysis_of(run("data=256 microbatches=1 remat=full", batch=1024, sequence=sequence))
    assert f"What runs now {verdict}." in " ".join(terminal(found).split())


def test_flags_that_are_missing_or_harmful_are_told_with_source_and_line(paper, hostile):
    run = Experiment(
        id="run", hardware=HardwareReference(name="v6e-16"), plan=Plan.parse("data=16 remat=full offload=optimizer")
    )
    nothing = no_proposals(InsufficientEvidenceError("too little is known"))
    analysis = assemble(study_of(run), nothing, "a-session", "builtin/planner")
    for text in (terminal(analysis), to_markdown(analysis)):
        assert "Not on record whether it is set" in text
        assert "overlap of host copies" in text
        assert 'export LIBTPU_INIT_ARGS="$LIBTPU_INIT_ARGS' in text
    assert "Flags" not in terminal(paper)
    assert "set twice" in terminal(hostile)


@pytest.fixture(scope="module")
def primus():
    """A run whose settings nest."""
    settings = {PRIMUS_MODULE: "pre_trainer", "tensor_model_parallel_size": 8, "micro_batch_size": 8}
    study = run("model=8 microbatches=8 remat=none", "llama3.1-8b", "mi300x-8", 64, 4096, "Megatron-Core",
                settings=settings)  # fmt: skip
    return analysis_of(study), study


def test_yaml_to_paste_keeps_its_indentation(primus):
    analysis, study = primus
    page = re.sub(r"<pre><code>", "\n", render_page(analysis, study))
    for text, before in ((terminal(analysis), "     "), (to_markdown(analysis), ""), (page, "")):
        lines = text.splitlines()
        first = lines.index(f"{before}modules:")
        assert lines[first + 1 : first + 3] == [f"{before}  pre_trainer:", f"{before}    overrides:"]
        assert lines[first + 3].startswith(f"{before}      ")


def test_advice_to_change_a_setting_gives_the_reason_for_that_setting(primus):
    graphs, fused = (
        OfferedTrial(name=name, title=name, statement=f"The {name}: why.", source="a test", settings={})
        for name in ("graphs", "fusion")
    )
    advice = primus[0].recommendation.model_copy(update={"setting": "graphs"})
    said = summary_of(primus[0].model_copy(update={"trials": (graphs, fused), "recommendation": advice}))
    assert said.why[-1] == graphs.statement
    assert not any(line.startswith(("Gain: ", "Cost: ")) for line in said.why)
    assert ("fusion" in said.settings, "graphs" in said.settings) == (True, False)


def test_bars_show_what_a_step_is_made_of(paper):
    said = terminal(paper)
    shown = said[said.index("What the step is made of") : said.index("Top operations")].splitlines()[1:]
    assert [line.split()[0] for line in shown[:5]] == ["now", "now", "1", "2", "3"]
    assert "stated" in shown[0]
    assert all("modelled" in line and "▬" in line for line in shown[1:5])
    assert shown[2].count("▒") < shown[1].count("▒")
    assert {"compute", "HBM", "collectives"} <= set(shown[5].split())


@pytest.mark.parametrize("width", [40, 60, 80])
def test_bars_fit_the_terminal(paper, width):
    stream = io.StringIO()
    console = Console(file=stream, width=width, markup=False, emoji=False, highlight=False)
    console.print(StepBars(paper))
    lines = stream.getvalue().splitlines()
    assert len(lines) > 2
    assert all(len(line) <= width for line in lines)


@pytest.fixture(scope="module", params=ExperimentStore().ids())
def bundled(request, tmp_path_factory):
    study = open_study(request.param, ExperimentStore(tmp_path_factory.mktemp("store")))
    return assemble(study, propose(rank_candidates(study), cite), "a-session", "builtin/planner"), study


def test_the_report_is_one_screen(bundled):
    analysis, _ = bundled
    stream = io.StringIO()
    print_analysis(analysis, Console(file=stream, width=100, markup=False, emoji=False, highlight=False))
    text = stream.getvalue()
    assert len(text.splitlines()) <= SCREEN + max(len(summary_of(analysis).lines) - PASTED, 0)
    assert all(len(line) <= 100 for line in text.splitlines() if line.strip() not in summary_of(analysis).lines)
    assert "unknown" not in text
    for private in ("counts", "doublings", "host.qkv", "P(f"):
        assert private not in text


def test_every_form_makes_the_same_claims(bundled):
    analysis, study = bundled
    said = summary_of(analysis)
    forms = {
        "terminal": terminal(analysis), "markdown": to_markdown(analysis), "page": render_page(analysis, study),
        "json": analysis.to_json(), "comment": comment(study), "chat": chat(study),
    }  # fmt: skip
    words = {name: squeezed(text) for name, text in forms.items()}
    claims = [said.verdict, *said.why, *filter(None, [said.finding]), *said.warnings]
    claims += [trial.statement for trial in analysis.trials]
    claims += [line for line in said.lines if line.strip()]
    claims += [line for proposal in analysis.proposals for line in proposal.overrides.lines]
    for claim in claims:
        for name, text in words.items():
            claim_there = claim.removeprefix("Gain: ").removeprefix("Cost: ") if name in ("json", "chat") else claim
            assert squeezed(claim_there) in text, (name, claim)
    for row in said.rows:
        for cell in row:
            for name in ("terminal", "markdown", "page", "comment"):
                assert squeezed(cell) in words[name], (name, cell)
        for figure in FIGURE.findall(" ".join(row[1:-1])):
            assert squeezed(figure) in words["chat"], figure


def comment(study):
    """What CI says of a file with this run."""
    one = ConfigurationReport(
        path="run.yml", status="added", **advice(ResolvedConfiguration("run.yml", None, study), None)
    )
    return to_comment(CiReport(version="1", base="a" * 40, head="b" * 40, configurations=(one,)))


def chat(study):
    """What the chat answers to the questions that a report answers."""
    inquiry = Inquiry(study)
    ranks = [str(rank) for rank, _ in enumerate(inquiry.order, 1)]
    general = ("run", "health", "bottleneck", "candidates", "settings", "flags", "worth", "memory")
    asked = [(name, {}) for name in general] + [(one, {"plan": rank}) for rank in ranks for one in ("explain", "line")]
    texts = []
    for name, arguments in asked:
        with suppress(InsufficientEvidenceError):
            texts.append(to_text(ask(inquiry, name, **arguments)))
    return "\n".join(texts)


def squeezed(text):
    """Letters and digits alone: what markup, escapes and line breaks leave of a text."""
    return re.sub(r"[^A-Za-z0-9%]+", "", html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\\n", " "))


def test_what_is_unknown_is_left_out_and_never_zero(paper):
    text = terminal(paper)
    assert "unknown" not in text
    assert "goodput" not in text


def test_hostile_text_cannot_control_a_terminal(hostile):
    text = ESCAPES.sub("", terminal(hostile, force_terminal=True, color_system="standard"))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text


def test_hostile_text_is_inert_in_markdown(hostile):
    text = to_markdown(hostile)
    assert "<script" not in text
    assert "@everyone" not in text
    assert "javascript:" not in text.replace("javascript&#58;", "")
    assert "](javascript" not in text
    assert not re.search(r"^# e", text, re.MULTILINE)


def test_json_is_the_contract(paper):
    data = json.loads(paper.to_json())
    assert (data["schema"], data["diagnosis"]["bottleneck"]) == ("asap.analysis/3", "hbm")
    assert data["diagnosis"]["findings"]
    assert data["proposals"][0]["plan"]["ici"] == {
        "replica": 1, "data": 4, "seq": 1, "model": 4, "expert": 1, "stage": 1,
    }  # fmt: skip
    assert "ici_tensor_parallelism=4" in data["proposals"][0]["overrides"]["text"]
    assert {"experiment", "kpis", "recommendation", "warnings"} <= set(data)
    assert Analysis.model_validate_json(paper.to_json()) == paper


def test_json_of_hostile_text_reads_back_unchanged(hostile):
    assert Analysis.model_validate_json(hostile.to_json()).top_operations[0].name == HOSTILE


def test_markdown_holds_what_the_terminal_shortens(paper):
    text = to_markdown(paper)
    assert text.startswith("# paper-v6e-16")
    assert text.count("### ") == 3
    for proposal in paper.proposals:
        assert proposal.overrides.text in text
