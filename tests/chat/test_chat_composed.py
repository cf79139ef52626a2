"""What is composed in a question: figures of any plan, several questions, what goes on with the turn before."""

import re

import pytest

from asap.chat import Claim
from asap.chat.chat import Chat

pytestmark = pytest.mark.slow


def _say(chat: Chat, text: str):
    answer = chat.turn(text, lambda piece: None)
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("how large is the pipeline bubble?", r"pipeline bubble of what runs now .*: 0 .*of a step"),
        ("how big would the bubble be with pp=2?", r"pipeline bubble of .*stage=2.*: .*of a step"),
        ("how much host memory does proposal 1 need", r"host memory of proposal 1 .*: [\d.]+ GiB for each chip"),
        (
            "and how much ram on the host if the optimizer is offloaded?",
            r"host memory of .*offload=optimizer.*: [\d.]+ \wiB for each chip",
        ),
        ("what share does the optimizer update have?", r"optimizer update of .* of a step of"),
    ],
)
def test_a_figure_that_is_named_is_said_of_any_plan_after_any_change(start, line, said):
    assert re.search(said, _say(start(), line).text)


def test_what_was_compared_is_what_a_choice_is_among(start):
    chat = start()
    _say(chat, "compare data=64 against data=16 model=4")
    text = _say(chat, "which of those is cheaper?").text
    assert "has the lowest cost per token of the 2" in text
    assert "data=64" in text


def test_who_fears_a_loss_gets_the_plan_with_the_least_to_lose(start):
    chat = start()
    highs = {c.plan: c.prediction.relative_step_time.high for c in chat.conversation.proposals}
    answer = _say(chat, "i am cautious, which proposal is the safest?")
    assert answer.focus == min(highs, key=lambda plan: highs[plan])


def test_several_questions_in_a_line_are_all_answered(start):
    text = _say(start(), "hello! what is the bottleneck, and which proposal would you test first?").text
    assert "the step waits most for" in text
    assert "Start with proposal 1" in text


def test_half_of_that_is_half_of_what_was_asked_before(start):
    chat = start()
    _say(chat, "what if the batch is 128?")
    assert "a global batch of 64 instead of 256" in _say(chat, "and half of that?").text


def test_a_proposal_that_is_named_next_gets_the_change_of_before(start):
    chat = start()
    _say(chat, "what if the batch is 512?")
    text = _say(chat, "and for proposal 1?").text
    assert "With a global batch of 512" in text
    assert f"- {chat.conversation.order[0]}" in text


def test_the_others_are_those_that_were_not_spoken_of(start):
    chat = start("three")
    _say(chat, "how sure are you of proposal 3?")
    text = _say(chat, "and the other two?").text
    first, second, _ = map(str, chat.conversation.order)
    assert first in text
    assert second in text


def test_a_plan_may_be_named_with_another_setting(start):
    chat = start()
    text = _say(chat, "the flags for 1 with 4 microbatches please").text
    assert "microbatches=4" in text
    assert "gradient_accumulation_steps=4" in text


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("we cannot touch the remat policy", lambda plan, now: plan.remat == now.remat),
        ("tp has to stay at 4", lambda plan, now: plan.degree("model") == 4),
        ("the mesh is fixed", lambda plan, now: plan.ici == now.ici),
        ("no host offload please, memory of our hosts is full", lambda plan, now: not plan.moves_activations),
        ("never suggest pipeline parallelism", lambda plan, now: plan.degree("stage") == 1),
    ],
)
def test_what_must_stay_stays_in_every_proposal(start, line, kept):
    chat = start()
    assert [fact.claim for fact in _say(chat, line).evidence] == [Claim.CONSTRAINT]
    conversation = chat.conversation
    assert all(kept(plan, conversation.study.plan) for plan in conversation.order)


def test_what_is_not_understood_gets_two_questions_that_are(start):
    text = _say(start(), "does the quux frobnicate over there?").text
    assert re.search(r'I do not understand .*\nDo you mean "[^"]+" or "[^"]+"\? /help', text)


def test_of_what_is_not_understood_the_plan_is_said_to_be_read_alone(start):
    assert "I read the plan alone" in _say(start(), "does the quux of proposal 2 frobnicate the zork?").text


def test_a_question_is_never_taken_for_thanks(start):
    assert _say(start(), "ok great, so what is best?").topic not in {"thanks", "greeting"}


def test_words_that_an_answer_does_not_speak_of_are_named(start):
    text = _say(start(), "what is the bottleneck of this run with sliding window attention?").text
    assert re.search(r"This answer leaves out what you say of: .*sliding window", text)


def test_an_axis_lies_inside_a_node_or_not(megatron):
    assert "model=4 (tensor parallelism) inside a node" in _say(megatron, "does tp stay inside the node?").text
    assert "model=16 (tensor parallelism) inside nodes and between" in _say(megatron, "does tp16 leave the node?").text


def test_what_the_proposals_were_chosen_from_can_be_asked(start):
    text = _say(start(), "how many configurations did you try?").text
    assert re.search(r"[\d,]+ configurations beside what runs now were evaluated: .*rematerialisation", text)


def test_what_holds_already_does_not_stand_in_the_way_of_what_is_asked(start):
    text = _say(start(), "is there any sense in pp for a 4k sequence?").text
    assert "That is so already" not in text
    assert "stage" in text


def test_sequence_parallelism_is_said_to_be_read_as_context_parallelism(start):
    assert "is read as context parallelism (seq)" in _say(start(), "would sequence parallelism help?").text


def test_tokens_by_a_date_are_a_rate(start):
    assert "tokens/s, on the 64 chips of now" in _say(start(), "how many chips to train 1T tokens in 20 days?").text


def test_a_share_that_a_profiler_shows_is_no_question(start):
    answer = _say(start(), "xprof says 22 % of the step is all-gather")
    assert "othing is recorded" in answer.text
    assert answer.evidence == ()


def test_why_a_setting_changes_gets_its_reason(start):
    text = _say(start(), "i do not see why 4 microbatches would be good").text
    assert re.search(r"^\+ microbatches 1→4: ", text, re.M)
    assert re.search(r"^- microbatches 1→4: ", text, re.M)
