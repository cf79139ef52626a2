"""Back to what the run has, before something else is asked: "back to 8k. which one then?"."""

import re
from dataclasses import replace

from asap.chat.understanding.question_reading import read_question
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.words.line_before.going_back import goes_back

_BACK = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|and|now|so|well|right|no|nah)\W+)*(?:go(?:ing)? |switch )?back (?:to|at) "
    r"(?P<what>[^.;,?!]{1,24})[.;,]\s+(?=\w)",
    re.I,
)


def back_then(text: str, scene: Scene) -> tuple[str, Scene]:
    """What is asked behind it, and the scene without what was supposed; both as they are where it goes nowhere back."""
    found = _BACK.match(text)
    if found is None:
        return text, scene
    afresh = replace(scene, context=scene.context.model_copy(update={"change": None, "plans": ()}))
    what = found["what"]
    if not goes_back(f"back to {what}") and not _is_so(what, afresh):
        return text, scene
    return text[found.end() :], afresh


def _is_so(what: str, scene: Scene) -> bool:
    """Whether the run has it: so long a sequence, such a batch."""
    workload = scene.study.experiment.workload
    change = read_question(f"what if {what}", scene).change
    now = {"batch": workload.global_batch, "sequence": workload.sequence_length}
    return bool(change.counts) and all(thing in now and to.of(now[thing]) == now[thing] for thing, to in change.counts)
