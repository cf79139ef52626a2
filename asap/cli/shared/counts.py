"""Options that count something; a number that no job has is refused where it is typed."""

from typing import Annotated

import typer

from asap.core.numbers import LARGEST_COUNT

Batch = Annotated[int | None, typer.Option(min=1, max=LARGEST_COUNT, help="Sequences in a step, whole job.")]
Sequence = Annotated[int | None, typer.Option(min=1, max=LARGEST_COUNT, help="Tokens in a sequence.")]
Slices = Annotated[int | None, typer.Option(min=1, max=LARGEST_COUNT, help="Slices of the job.")]
