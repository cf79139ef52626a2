"""How the lines of a run are written: by which program, in Python, as an option or in a file."""

from collections.abc import Mapping

from asap.plans import primus
from asap.plans.accelerate.trainer_option import OPTION
from asap.plans.deepspeed.trainer import SECTION
from asap.plans.megatron.recipe_lines import RECIPE_WORDS
from asap.plans.megatron.versions import JOINT, YAML_FILE
from asap.plans.torchtitan.python_lines import PYTHON
from asap.stacks.registry import STACK

_DECIDING = (f"{SECTION}.{OPTION}", JOINT, PYTHON, RECIPE_WORDS, STACK, YAML_FILE, primus.MODULE)


def form_of(settings: Mapping[str, object]) -> dict[str, object]:
    """What of a run's settings decides the form of its lines, without the values that a plan says itself."""
    return {key: settings[key] for key in _DECIDING if key in settings}
