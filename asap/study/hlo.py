"""The HLO around an operation in a few lines: the instruction, its operands, its users."""

from asap.core.errors import InsufficientEvidenceError
from asap.core.text import plain
from asap.profiles.hlo.program import Computation, Instruction
from asap.profiles.surroundings import surroundings
from asap.study.study import Study

MOST_NEIGHBOURS = 6
_LONGEST = 160


def hlo_around(study: Study, operation: str) -> tuple[str, ...]:
    """The lines, escaped.

    Args:
        study: a run.
        operation: its name, as the profile has it.

    Raises:
        InsufficientEvidenceError: there is no profile, or it carries no HLO.
        NotFoundError, ProfileError: the profile is gone, cannot be read, or has no such operation.
    """
    if study.recording is None:
        raise InsufficientEvidenceError("there is no profile that could carry HLO", where=study.experiment.id)
    found = surroundings(study.recording, operation)
    place = f"{found.program}, {found.around.name}" if found.around.name else found.program
    lines = [f"{_line(found.instruction, found.around)} (in {plain(place, _LONGEST)})"]
    if found.inside:
        lines.append(f"  inside: {plain(', '.join(f'{count} {opcode}' for opcode, count in found.inside), _LONGEST)}")
    if found.instruction.op_name:
        lines.append(f"  from: {plain(found.instruction.op_name, _LONGEST)}")
    takes = _neighbours("takes", found.operands, found.around)
    return (*lines, *takes, *_neighbours("used by", found.users, found.around))


def _neighbours(word: str, found: tuple[Instruction, ...], around: Computation) -> list[str]:
    if not found:
        return [f"  {word}: nothing in this computation"]
    more = len(found) - MOST_NEIGHBOURS
    rest = [f"  {word}: {more} more"] if more > 0 else []
    return [*(f"  {word}: {_line(one, around)}" for one in found[:MOST_NEIGHBOURS]), *rest]


def _line(instruction: Instruction, around: Computation) -> str:
    """``add.1 = f32[8] add(a, b)``, its operands by name."""
    operands = ", ".join(each.name for each in around.operands(instruction))
    written = f"{instruction.name} = {instruction.shape} {instruction.opcode}({operands})"
    return plain(written if instruction.opcode else instruction.name, _LONGEST)
