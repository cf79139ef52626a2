"""Step times of a log that is still being written, line by line."""

from statistics import median

from asap.experiments.logs.formats import Form, steps
from asap.experiments.logs.measured import Sizes
from asap.experiments.logs.numbers import is_training_bar, number
from asap.experiments.logs.text import clean

LONGEST_LINE = 2000


class StepFeed:
    """Collects step times from lines; those of the first form that shows any.

    Args:
        tokens: of a device in a step: torchtitan logs tokens a second and device, not time.
    """

    def __init__(self, tokens: float | None = None):
        self._sizes = Sizes(tokens=tokens, devices=1 if tokens else None)
        self._times: dict[bytes, list[float]] = {}
        self._counted: list[float] = []
        self.shows_rates = False
        """Whether a line has tokens a second in the stead of a time."""

    def feed(self, line: str) -> bool:
        """Read a line; whether it completes a step."""
        text = without_colour(line[:LONGEST_LINE])
        raw = text.encode("utf-8", "replace")
        completed = [self._read(form, text) for form in steps() if form.anchor in raw]
        return any(completed)

    @property
    def times(self) -> list[float]:
        """Seconds of each step so far."""
        return next((times for times in self._times.values() if times), [])

    @property
    def tokens_per_device(self) -> float | None:
        """Tokens of a device in a step, as the log counts them: rate times seconds, the median."""
        return median(self._counted) or None if self._counted else None

    def _read(self, form: Form, text: str) -> bool:
        if form.bar and not is_training_bar(text):
            return False
        fields = form.read(text)
        rate = number(fields.get("tokens_per_second_per_device", ""))
        seconds = self._sizes.seconds(fields)
        if rate and seconds is None:
            self.shows_rates = True
        if seconds is None or seconds <= 0:
            return False
        if rate:
            self._counted.append(rate * seconds)
        self._times.setdefault(form.anchor, []).append(seconds)
        return True


def without_colour(line: str) -> str:
    """The line without a terminal's colours: torchtitan writes them into files too."""
    return clean(line.encode("utf-8", "replace"))
