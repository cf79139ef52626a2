"""Scalars and texts of TensorBoard's event files, read by TensorBoard itself."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UsageError
from asap.core.text import plain

EVENTS = "tfevents"
"""Every name of an event file contains it."""
_TEXT = "/text_summary"
"""What PyTorch and tensorboardX append to the tag of a text."""
_LONGEST_TEXT = 20_000


@dataclass
class Events:
    """Of one run."""

    scalars: dict[str, dict[int, float]] = field(default_factory=dict)
    """Tag → step → the value written last, as a run that restarts writes steps again."""
    texts: dict[str, str] = field(default_factory=dict)


def read_events(files: Iterable[Path]) -> Events:
    """All scalars and texts of a run's event files, taken in the order of their names, which start with a time.

    Raises:
        UsageError: the extra is not installed.
        ConfigError: a file is damaged, or none has an event.
    """
    try:
        loader = import_module("tensorboard.backend.event_processing.event_file_loader")
        arrays = import_module("tensorboard.util.tensor_util")
    except ImportError:
        raise UsageError(
            "runs of TensorBoard need the extra tensorboard", hint="pip install 'asap[tensorboard]'"
        ) from None
    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    events, files = Events(), tuple(files)
    is_empty = True
    for path in sorted(files, key=lambda path: path.name):
        try:
            for event in loader.EventFileLoader(str(path)).Load():
                is_empty = False
                for value in event.summary.value:
                    _keep(events, value, event.step, arrays.make_ndarray)
        except Exception as error:  # TensorBoard and protobuf have exceptions of their own
            raise ConfigError(f"is not a TensorBoard event file: {plain(error, 120)}", where=plain(path)) from error
    if is_empty:
        raise ConfigError("holds no event that can be read", where=plain(files[0]) if files else "event files")
    return events


def _keep(events: Events, value: Any, step: int, to_array: Any) -> None:
    plugin = value.metadata.plugin_data.plugin_name
    if plugin == "scalars":
        events.scalars.setdefault(value.tag, {})[step] = float(to_array(value.tensor).item())
    elif plugin == "text":
        content = to_array(value.tensor).ravel()
        if content.size == 1:
            text = bytes(content[0])[:_LONGEST_TEXT].decode("utf-8", "replace")
            events.texts[value.tag.removesuffix(_TEXT)] = text
