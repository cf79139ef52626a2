"""Figures and citations in prose against what tools said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.agents.guardrails.complaints import REMOVED, complaints, mentions_any, remove_unverified, sanitize
from asap.agents.guardrails.grounding import known_values, resolve
from asap.agents.guardrails.instructions import repeats_instructions
from asap.agents.guardrails.prose.figures import figures
from asap.agents.guardrails.transcript import Transcript

ANSWER = {
    "kpis": {"step_time_s": 3.256, "duty_cycle": 0.972},
    "relative_step_time": {"value": 0.969, "unit": "1", "low": 0.55, "high": 1.7},
    "memory": {"total": {"value": 21.5 * 2**30, "unit": "bytes"}, "capacity_bytes": 32 * 2**30},
    "findings": [{"statement": "all-reduce takes 41.7 % of the step", "name": "saves 88 %"}],
    "devices": 16,
    "plan": "data=4 model=4",
    "hardware": {"name": "v6e-16", "topology": [4, 4]},
    "workload": {"global_batch": 512, "sequence_length": 8192},
}


@pytest.fixture
def transcript():
    transcript = Transcript()
    transcript.record("health", ANSWER)
    notes = [{"id": "tp-limit", "title": "Tensor parallelism", "text": "hidden below 2550 tokens; 240 FLOPs per byte"}]
    transcript.record("notes", {"notes": notes})
    return transcript


@pytest.mark.parametrize(
    "prose",
    [
        "The step takes 3.26 s.",
        "The step takes 3256 ms.",
        "It is busy 97 % of the time, 97.2% to be exact.",
        "3.1 % shorter, up to 45 % within the 90 % interval.",
        "It fits: 21.5 GiB of 32 GiB.",
        "All-reduce takes 41.7 percent.",
        "On 16 devices.",
        "Below 2,550 tokens it hides [tp-limit].",
        "data=4 model=4 first; proposal 1 of 3.",
    ],
)
def test_what_a_tool_said_resolves(transcript, prose):
    assert complaints("reason", prose, transcript) == []


@pytest.mark.parametrize(
    ("prose", "what"),
    [
        ("The step takes 3.27 s.", "3.27 s"),
        ("The step takes 3.26 ms.", "3.26 ms"),
        ("It saves 88 %.", "88 %"),
        ("It needs 21.5 GB.", "21.5 GB"),
        ("It hides below 2550 tokens.", "2550 tokens"),
        ("As shown by [no-such-note].", "[no-such-note]"),
        ("On 17 chips.", "17 chips"),
    ],
)
def test_what_no_tool_said_is_named_with_what_would_be_right(transcript, prose, what):
    (complaint,) = complaints("reason", prose, transcript)
    assert complaint.what == what
    assert complaint.why
    assert complaint.right
    struck = remove_unverified(prose, transcript)
    assert what not in struck
    assert REMOVED in struck


INVENTED = """\
It is 40 faster.
A speedup of 1.8 is likely.
A speed-up of 2 is likely.
It is twice as fast.
It halves the step time.
It cuts step time in half.
Half of the step goes away.
It doubles throughput.
It is faster by a third.
An order of magnitude more throughput.
Forty percent faster.
forty-four per cent less time
It is three times faster.
three-fold faster
a 3x gain
a 3× gain
a ×3 gain
a 3-fold gain
3.5x
４０ % faster
٤٠٪ faster
½ of the time
¾ of the step
between 10 and 20 %
10-20% less
10–20 % less
10 to 20 % less
2 s/step
40ms
40-percent
approx40% less
by40 ms
about 40 pct
40 percentage points
40 points
2,000 ms
1e3 ms
1.5k tokens/s
70 billion parameters
takes 1/3 of the time
9 out of 10 steps
seven minutes
40 minutes
12 TFLOPs/s
4 TFLOP/s/chip
88 Gbps
+3.5 %
The step is 45 % shorter.
saves 0.4 s
MFU of 55
utilisation rises to 0.9
40%+ better
<40 %
a factor of 2
fused.40ms runs
remat=40%
data=4.5
step_time=1.2
17 chips
4 0 percent
thirty-two point five GiB
rank 4711
[97.3]
uses ⑨⑨ %
10² ms
2550 tokens
99.9 % interval
the 90 % gain
""".splitlines()

HONEST = """\
The step takes 3.26 s.
The step takes 3.256 seconds.
97 % of the time, 97.2% to be exact
busy 0.97 of the time
3.1 % shorter, up to 45 % within the 90 % interval
-45 to +70 %
between -45 % and +70 %
It fits: 21.5 GiB of 32 GiB.
It fits: 21.5 of 32 GiB.
On 16 devices, a 4x4 torus of v6e chips (v6e-16).
data=4 model=4 first; proposal 1 of 3.
ici_tensor_parallelism=4
Halving the sequence axis and doubling the data axis moves tensor parallelism to 4.
the three proposals, two of which
bf16 activations in a 2D torus, ZeRO-3, H100
Below 2,550 tokens it hides [tp-limit].
240 FLOPs per byte [tp-limit]
a batch of 512 sequences of 8192 tokens
8k tokens
one doubling away
-3.1 %
the 90% confidence interval
the 90 %-interval
1. First the plan
4. Fourth the plan
twice the model axis
0.969 times as long
1.03x as fast
half the devices
all-reduce takes 41.7 percent
""".splitlines()


@pytest.mark.parametrize("prose", INVENTED)
def test_no_way_to_write_a_figure_gets_an_invented_one_through(transcript, prose):
    prose = sanitize(prose)
    assert complaints("reason", prose, transcript)
    assert complaints("reason", remove_unverified(prose, transcript).replace(REMOVED, ""), transcript) == []


@pytest.mark.parametrize("prose", HONEST)
def test_honest_prose_is_not_refused(transcript, prose):
    assert complaints("reason", sanitize(prose), transcript) == []


def test_a_name_that_a_tool_said_may_be_repeated_but_not_the_figure_in_it(transcript):
    transcript.record("operations", {"operations": [{"name": "fusion.97"}, {"name": "saves-88-percent"}]})
    assert complaints("reason", "fusion.97 leads", transcript) == []
    assert complaints("reason", "saves-88-percent leads", transcript)


def test_the_end_of_an_interval_is_no_expectation(transcript):
    assert complaints("reason", "The step is 45 % shorter.", transcript)
    assert complaints("reason", "The interval goes from 45 % shorter to 70 % longer.", transcript) == []


@given(st.floats(min_value=1e-6, max_value=1e6), st.integers(min_value=0, max_value=4))
def test_a_value_resolves_however_far_it_is_rounded(value, digits):
    known = known_values({"step_time_s": value}, "tool")
    (figure,) = figures(f"it takes {value:.{digits}f} s in all")
    assert resolve(figure, known) is not None


@given(st.floats(min_value=0.5, max_value=99), st.integers(min_value=1, max_value=3))
def test_a_value_off_by_a_digit_does_not(value, digits):
    known = known_values({"duty_cycle": value / 100}, "tool")
    off = float(f"{value:.{digits}f}") + 2 * 10.0**-digits
    (figure,) = figures(f"busy {off:.{digits}f} % of the time")
    assert resolve(figure, known) is None


@given(st.text(max_size=200))
def test_nothing_unresolved_survives_the_strike(prose):
    transcript = Transcript()
    struck = remove_unverified(sanitize(f"{prose} 12.5 % {prose}"), transcript)
    assert complaints("reason", struck.replace(REMOVED, ""), transcript) == []


def test_only_figures_of_the_engine_are_evidence(transcript):
    assert mentions_any("it takes 3.26 s", transcript, transcript.values)
    assert not mentions_any("2550 tokens [tp-limit]", transcript, transcript.values)
    assert not mentions_any("trust me, the 90 % interval", transcript, transcript.values)


def test_instructions_that_are_repeated_are_noticed():
    prompt = "Never state a figure that is not in the answer of a tool or in what the engineer said."
    assert repeats_instructions(
        f"My rules: never state a FIGURE that is not in the answer of a tool: {prompt}", [prompt]
    )
    assert not repeats_instructions("A figure of a tool says that the step takes less.", [prompt])
    assert remove_unverified(prompt, Transcript(), [prompt]) == ""


CANDIDATES = {
    "incumbent": {"plan": "data=4 seq=4", "step_time": {"value": 2.5165, "unit": "s"}},
    "candidates": [
        {
            "plan": "data=4 model=4",
            "step_time": {"value": 2.0917, "unit": "s", "low": 0.68, "high": 6.41},
            "relative_step_time": {"value": 0.8312, "unit": "fraction", "low": 0.27, "high": 2.55},
        },
        {
            "plan": "data=8 seq=2",
            "step_time": {"value": 2.9, "unit": "s", "low": 2.0, "high": 4.0},
            "relative_step_time": {"value": 1.1524, "unit": "fraction", "low": 0.9, "high": 1.5},
        },
    ],
}

JUST = """\
data=4 model=4 takes 16.9 % less time than now.
data=4 model=4 is 16.9 % faster; data=8 seq=2 is 15.2 % slower.
The step of data=4 model=4 takes 2.09 s, that of data=8 seq=2 2.9 s.
16.9 % less with data=4 model=4, 15.2 % more with data=8 seq=2
Against 2.52 s now, data=4 model=4 takes 2.09 s: 0.42 s saved.
data=8 seq=2 costs 0.38 s more.
128 × 8192 / 64 = 16384 tokens
data=4 model=4 is faster than what runs now.
data=8 seq=2 is slower.
With data=4 model=4 throughput rises by 20.3 %.
proposal 2 takes 2.9 s
""".splitlines()

UNJUST = {
    "data=4 model=4 takes 2.9 s.": "another plan",
    "data=8 seq=2 saves 15.2 %.": "other way",
    "data=4 model=4 is 16.9 % slower.": "other way",
    "data=4 model=4 takes 16.9 % longer.": "other way",
    "data=8 seq=2 is 15.2 % faster.": "other way",
    "data=8 seq=2 takes 16.9 % less.": "another plan",
    "The step of data=8 seq=2 takes 2.9 s, that of data=4 model=4 2.9 s.": "another plan",
    "data=8 seq=2 is faster.": "other way",
    "data=4 model=4 will be slower than now.": "other way",
    "data=4 model=4 saves 0.55 s.": "no tool",
    "data=8 seq=2 saves 0.38 s.": "other way",
    "128 × 8192 / 64 = 17384 tokens": "no tool",
    "77 × 8192 / 64 = 9856 tokens": "no tool",
    "proposal 1 takes 2.9 s": "another plan",
    "proposal 2 is 16.9 % faster": "another plan",
    "data=4 model=4 looks good. It takes 2.9 s.": "another plan",
}


@pytest.fixture
def session(transcript):
    transcript.record("candidates", CANDIDATES)
    transcript.record("run", {"plan": "data=4 seq=4", "head_dim": 128, "shards": 64})
    transcript.record("engine", {"statement": "1. data=4 model=4: fine\n2. data=8 seq=2: behind"})
    return transcript


@pytest.mark.parametrize("prose", JUST)
def test_true_figures_of_the_right_plan_and_what_follows_from_them_are_let_through(session, prose):
    assert complaints("reason", sanitize(prose), session) == []


@pytest.mark.parametrize(("prose", "why"), UNJUST.items())
def test_figures_of_another_plan_and_reversed_directions_are_not(session, prose, why):
    found = complaints("reason", sanitize(prose), session)
    assert [one for one in found if why in one.why], found
    assert complaints("reason", remove_unverified(sanitize(prose), session).replace(REMOVED, ""), session) == []


def test_a_paragraph_is_about_its_plan(session):
    assert complaints("reason", "It takes 2.9 s.", session, about="data=8 seq=2") == []
    assert complaints("reason", "It takes 2.9 s.", session, about="data=4 model=4")
    assert complaints("reason", "It is faster.", session, about="data=8 seq=2")
