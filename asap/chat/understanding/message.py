"""One line of the engineer, read once: a command, or what it takes back, states, supposes and asks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asap.chat.understanding.alternatives import alternatives_in, sides_in
from asap.chat.understanding.back_then import back_then
from asap.chat.understanding.ellipsis import with_axis_of_before, with_unit_of_before
from asap.chat.understanding.quantities.hardware.machines import with_chips_of_slices
from asap.chat.understanding.question import Question
from asap.chat.understanding.question_reading import read_question
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.several import numbered_in, several_in, short_ones_in
from asap.chat.understanding.statements.bare_figures import with_unit_of_figure
from asap.chat.understanding.statements.completions import completed_in
from asap.chat.understanding.statements.pasted_log import PastedLog, pasted_log
from asap.chat.understanding.statements.retractions import retracted_by
from asap.chat.understanding.statements.statements import NOTHING_STATED, Statements, read_statements
from asap.chat.understanding.statements.step_lists import with_median_step
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.value_before import without_value_before
from asap.chat.understanding.words.axis_for_it import with_axis_for_it
from asap.chat.understanding.words.denials import as_meant, as_question
from asap.chat.understanding.words.dislikes import with_dislike_named
from asap.chat.understanding.words.line_before.count_of_before import with_count_of_before
from asap.chat.understanding.words.line_before.picked import picked_in
from asap.chat.understanding.words.line_before.said_instead import said_instead
from asap.chat.understanding.words.line_before.same_limit import with_limit_of_before
from asap.chat.understanding.words.line_before.share_of_before import with_share_of_before
from asap.chat.understanding.words.line_before.term_of_before import with_term_of_before
from asap.chat.understanding.words.origins import without_origin
from asap.chat.understanding.words.other_times import of_another_time
from asap.chat.understanding.words.questions import is_question
from asap.chat.understanding.words.refused_both import with_both_refused
from asap.chat.understanding.words.settings.data_parallelism import with_own_data_parallelism
from asap.chat.understanding.words.settings.degrees import with_degrees_written
from asap.chat.understanding.words.settings.made_otherwise import with_value_wanted
from asap.chat.understanding.words.settings.memory_shares import with_memory_in_bytes
from asap.chat.understanding.words.settings.plan_before import without_plan_before
from asap.chat.understanding.words.settings.sequence_parallelism import with_sequence_parallelism_named
from asap.chat.understanding.words.settings.setting_names import with_settings_as_axes
from asap.chat.understanding.words.settings.token_batches import with_batches_in_sequences
from asap.chat.understanding.words.settings.turned_off import with_axis_in_place, with_technique_off
from asap.chat.understanding.words.settings.zero_stages import with_stage_as_plan
from asap.chat.understanding.words.typos import with_figure_put_right
from asap.chat.understanding.words.vocabulary.jargon import spelled_out
from asap.chat.understanding.words.vocabulary.languages import in_english
from asap.chat.understanding.words.vocabulary.spelling import well_spelt
from asap.chat.understanding.words.voices import pretends
from asap.core.errors import PlanError
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.evidence.claims import MEASURED_CLAIMS
from asap.evidence.fact import StatedFact

LONGEST_MESSAGE = 4000
_LONG_NUMBER = re.compile(r"(\d{30})\d+")
"""More digits than any figure has: patterns take long over them."""
_SENTENCE = re.compile(r"(?<=[.!;])\s+")
_BARE_FIGURE = re.compile(r"^\W*\d[\d.,]*\s*[a-z%]{0,4}\W*\?\W*$", re.I)
"""A figure that is doubted beside the one that was measured: "39 ms? we get 44"."""
_TAKES_BACK = re.compile(
    r"^\W*(?:(?:no|nah|ok|oh|wait|sorry|actually|hm+)\W+)*(?:scratch|scrap|forget|undo|strike|drop|ignore)\s+(?:that|it|this)"
    r"\s*(?:[,;.:]|--?|but)\s*(?=\w)",
    re.I,
)
"""Takes back what was just said, before what holds instead: "scratch that, tp may go to 8"."""
_YOURS = re.compile(
    r"^\W*(?:and |so |but |what do )?(?:yours|you|you (?:say|think|predict|expect|have|get|reckon)"
    r"|your (?:number|figure|take|prediction|forecast|model|estimate)s?(?: says?)?)\W*$"
    r"|^\W*(?:and |so |but )?(?:you|your \w+) (?:say|said|predict\w*|ha[dv]e?|claim\w*|expect\w*|told"
    r"|thought)\b[^?]*\d[^?]*\?\W*$",
    re.I,
)
"""Asks for the engine's own figure beside one that was measured: "you say?"."""
_YES = re.compile(r"^\W*(?:y|yes|yep|yeah|sure|correct|right|ja|oui|sí|si)\W*$", re.I)


@dataclass(frozen=True)
class Command:
    """A line that begins with a slash."""

    name: str
    rest: str


@dataclass(frozen=True)
class Message:
    """What a line says. All but a command may stand beside each other.

    Args:
        said: the line as it was typed, without secrets and control characters.
        text: the same in English.
        command: the command that it is.
        agrees: it says no more than yes.
        pretends: it speaks as the system, or about its instructions.
        retracted: the facts that it takes back, empty if none of them is on record; ``None`` if it takes nothing back.
        statements: what it reports, supposes and corrects.
        questions: what it asks.
        log: what was read of a log, or of several steps, that it holds.
        unreadable: why a plan in it cannot be read.
        cut: it was longer than what is read.
    """

    said: str
    text: str
    command: Command | None = None
    agrees: bool = False
    pretends: bool = False
    retracted: tuple[StatedFact, ...] | None = None
    statements: Statements = NOTHING_STATED
    questions: tuple[Question, ...] = ()
    log: str | None = None
    unreadable: PlanError | None = None
    cut: bool = False


def read_message(line: str, scene: Scene) -> Message:
    """Understand a line, in any language that the glossary knows."""
    log = pasted_log(line, scene.study)
    line = line if log is None else "\n".join(log.questions)
    said = "\n".join(plain(redacted(part)) for part in line[:LONGEST_MESSAGE].replace("’", "'").splitlines())
    if line.lstrip().startswith("/"):
        name, _, rest = line.strip().removeprefix("/").partition(" ")
        return Message(said, said, command=Command(name, rest.strip()))
    parts = _LONG_NUMBER.sub(r"\1", said).splitlines()
    text = "\n".join(with_settings_as_axes(spelled_out(well_spelt(in_english(part)))) for part in parts)
    text = with_both_refused(with_axis_for_it(without_origin(with_dislike_named(text))))
    text = with_stage_as_plan(text, scene.study)
    text = with_figure_put_right(with_technique_off(with_axis_in_place(text)), scene.study)
    denies = (meant := as_meant(text)) != text
    text = as_question(meant)
    instead = said_instead(text, scene.line)
    text = picked_in(text, scene.context.offered or ()) or instead or text
    text = with_share_of_before(with_limit_of_before(with_value_wanted(text), scene.latest), scene.context.topic)
    text, steps = with_median_step(with_unit_of_figure(text, scene.context.figure))
    text = with_term_of_before(with_count_of_before(text, scene.context.asked), scene.context.term)
    text = with_axis_of_before(with_sequence_parallelism_named(text, scene.study), scene.context.axis)
    text = with_chips_of_slices(with_unit_of_before(text, scene.context.counted))
    text = with_own_data_parallelism(with_memory_in_bytes(text, scene.study), scene.study)
    text = without_plan_before(with_degrees_written(with_batches_in_sequences(text, scene.study), scene.study))
    if pretends(said) or pretends(text):
        return Message(said, text, pretends=True)
    try:
        text, scene = back_then(text, scene)
        message = _read(said, text, scene) if log is None else _of_log(said, text, log, scene)
    except PlanError as error:
        message = Message(said, text, unreadable=error)
    if (instead is not None or denies) and message.statements.evidence:
        wrong = _put_right(message.statements.evidence, scene.known if denies else scene.latest, denies)
        message = replace(message, statements=replace(message.statements, corrected=wrong))
    said_first = message.log or (steps if message.statements.evidence else None)
    return replace(message, log=said_first, cut=len(line) > LONGEST_MESSAGE)


def _put_right(right: Sequence[StatedFact], known: Sequence[StatedFact], alike: bool) -> tuple[StatedFact, ...]:
    """The facts in whose place others come; ``alike`` leaves out those that are of something else."""
    of = {(fact.claim, fact.about) for fact in right}
    return tuple(fact for fact in known if fact not in right and (not alike or (fact.claim, fact.about) in of))


def _of_log(said: str, text: str, log: PastedLog, scene: Scene) -> Message:
    """A log, and what is asked beside it."""
    questions = tuple(read_question(one, scene) for one in text.splitlines())
    statements = Statements(evidence=tuple(_of_trial(fact, scene) for fact in log.facts))
    return Message(said, text, log=log.said, statements=statements, questions=questions)


def _of_trial(fact: StatedFact, scene: Scene) -> StatedFact:
    """A fact of a log, of the plan that was said to have been run just before, else of what runs now."""
    tried = scene.focus if scene.context.topic is Topic.REPORTED else None
    return fact if tried is None else fact.model_copy(update={"plan": tried})


def _read(said: str, text: str, scene: Scene) -> Message:
    if numbered := numbered_in(text, scene):
        return Message(said, text, questions=numbered)
    question = read_question(text, scene)
    if of_another_time(text) and not question.refs.ranked and not question.refs.written:
        return Message(said, text, questions=(question,))
    agrees = _YES.match(said) is not None
    first, *rest = _SENTENCE.split(text)
    asked = tuple(read_question(one, scene) for one in rest if is_question(one))
    whole = question if not asked else read_question(first, scene)
    retracted = retracted_by(whole, scene)
    if retracted is not None:
        instead = _TAKES_BACK.match(text)
        stated = read_statements(text[instead.end() :], scene) if instead is not None else NOTHING_STATED
        return Message(said, text, agrees=agrees, retracted=retracted, statements=stated, questions=asked)
    statements = completed_in(text, scene) or read_statements(text, scene)
    of_network = question.change.network is not None
    if not statements.evidence and (of_network or not statements.complaints):
        if (asked := without_value_before(text)) != text:
            text, question = asked, read_question(asked, scene)
        questions = _alternatives(question, scene) or several_in(text, scene) or short_ones_in(text, scene)
        questions = questions or (question,)
        return Message(said, text, agrees=agrees, statements=statements, questions=questions)
    asked = [one for one in statements.unread if is_question(one) and not _BARE_FIGURE.match(one)]
    scene, measured = _after(statements, scene), any(fact.claim in MEASURED_CLAIMS for fact in statements.evidence)
    asked = ["is that plausible?" if measured and _YOURS.match(one) else one for one in asked]
    questions = tuple(read_question(one, scene) for one in asked)
    return Message(said, text, agrees=agrees, statements=statements, questions=questions)


def _after(statements: Statements, scene: Scene) -> Scene:
    """What is asked beside a measurement of what runs now is read against: nothing that was supposed before."""
    plan = scene.study.plan
    if not any(fact.claim in MEASURED_CLAIMS and fact.plan == plan for fact in statements.evidence):
        return scene
    return replace(scene, focus=plan, context=scene.context.model_copy(update={"change": None, "plans": ()}))


def _alternatives(question: Question, scene: Scene) -> tuple[Question, ...]:
    """A question on two values of a thing as one question on each; empty where it does not name two."""
    if len(sides := _sides(question, scene)) > 1:
        return sides
    texts = alternatives_in(question.text)
    if texts is None or question.sweep or question.refs.ranked or question.change.remat == "any":
        return ()
    each = tuple(read_question(text, scene) for text in texts)
    if any(one.change.empty or one.refs.written or one.unused for one in each) or each[0].change == each[1].change:
        return ()
    return tuple(replace(one, topic=Topic.WHAT_IF, plans=question.plans) for one in each)


def _sides(question: Question, scene: Scene) -> tuple[Question, ...]:
    """A question on either of two things, "8 microbatches or a bigger batch", as one on each; else empty."""
    each = tuple(read_question(text, scene) for text in sides_in(question.text) or ())
    things = [{thing for thing, _ in one.change.counts} for one in each]
    if len(each) < 2 or not all(things) or things[0] & things[1] or any(one.unused or one.refs.written for one in each):
        return ()
    return tuple(replace(one, topic=Topic.WHAT_IF, plans=question.plans) for one in each)
