"""Lines of a configuration that decide nothing of a step: where output goes, and what a run is called."""

import re

_ASIDE = re.compile(
    r"[\s\"'{-]*(?:(?:wandb|hub|logging|save|tensorboard|mlflow|swanlab|comet|resume)_\w+|output(?:_dir|_path)?|run_name|"
    r"exp(?:eriment)?_name|name|project\w*|report_to|seed|data_seed|dump_folder|checkpoints?_(?:dir|path|folder)|"
    r"dataset_prepared_path|push_to_hub|log_\w+|description)[\"']?\s*[:=].*|\s*(?:#.*)?"
)
_VARIABLE = "$"


def is_aside(line: str) -> bool:
    """Whether a line decides nothing."""
    return _ASIDE.fullmatch(line) is not None


def only_aside(before: str, after: str) -> bool:
    """Whether a change of a text is one of such lines alone."""
    old, new = before.splitlines(), after.splitlines()
    kept = [line for line in old if not is_aside(line)]
    return kept == [line for line in new if not is_aside(line)]


def is_settled(text: str) -> bool:
    """Whether what a text decides is said, and hangs on no variable."""
    return all(_VARIABLE not in line or is_aside(line) for line in text.splitlines())
