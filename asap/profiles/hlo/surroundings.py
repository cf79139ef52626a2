"""What stands around an operation in the compiled program: what it takes, what takes its result, what it holds."""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from asap.core.errors import InsufficientEvidenceError, NotFoundError
from asap.core.text import plain
from asap.profiles.hlo.program import Instruction, Program, program_of, read_program
from asap.profiles.locate import locate
from asap.profiles.xplane.planes import Plane, read_planes

_METADATA, _TPU = "/host:metadata", "/device:TPU"
_PROTO = {"Hlo Proto", "hlo_proto"}
_CAPTURE = "jax.profiler.ProfileOptions().enable_hlo_proto = True"


@dataclass(frozen=True)
class Surroundings:
    """An instruction with its neighbours.

    Args:
        program: name of the module.
        computation: that it stands in; empty where the profile does not say.
        instruction: itself.
        operands: instructions whose results it takes.
        users: instructions that take its result.
        inside: opcodes in the computations that it calls, with how often each occurs.
    """

    program: str
    computation: str
    instruction: Instruction
    operands: tuple[Instruction, ...]
    users: tuple[Instruction, ...]
    inside: tuple[tuple[str, int], ...]


def surroundings(path: str | Path, operation: str) -> Surroundings:
    """Look an operation up in the programs of a profile; of several programs that have it, the longest.

    Args:
        path: what :func:`asap.profiles.read_profile` takes.
        operation: its name, as the profile's operations have it.

    Raises:
        NotFoundError: there is no such profile, or no such operation in its programs.
        ProfileError: it cannot be read.
        InsufficientEvidenceError: it carries no HLO.
    """
    programs: list[Program] = []
    for file in locate(path).files:
        status = file.stat()
        programs += read_programs(file, status.st_size, status.st_mtime_ns)
        found = next(filter(None, (_around(program, operation) for program in programs)), None)
        if found is not None:
            return found
    if not programs:
        raise InsufficientEvidenceError("the profile carries no HLO", hint=f"capture it with {_CAPTURE}")
    raise NotFoundError("no such instruction in the HLO of the profile", where=plain(operation, 80))


@lru_cache(maxsize=2)
def read_programs(file: Path, size: int, changed_ns: int) -> tuple[Program, ...]:
    """The programs of a file, longest first: as compiled, else the instructions that its events name.

    Args:
        file: an XPlane file.
        size: of it, in bytes; with ``changed_ns`` it tells an unchanged file from another one.
        changed_ns: when it was written.

    Raises:
        ProfileError: it cannot be read.
    """
    planes = read_planes(file)
    found = [program for plane in planes if plane.name == _METADATA for program in _compiled(plane)]
    if not found:
        devices = [plane for plane in planes if plane.name.startswith(_TPU)]
        ran = program_of((name for plane in devices[:1] for name in plane.names.values()), "what ran")
        found = [ran] if ran else []
    return tuple(sorted(found, key=lambda program: -sum(map(len, program.computations.values()))))


def _compiled(plane: Plane) -> list[Program]:
    with plane.reading():
        stats = [plane.description(number).stats for number in plane.names]
        protos = [value for one in stats for name, value in one.items() if name in _PROTO]
        return [read_program(proto) for proto in protos if isinstance(proto, bytes)]


def _around(program: Program, operation: str) -> Surroundings | None:
    for computation, instructions in program.computations.items():
        own = next((one for one in instructions if one.name == operation), None)
        if own is None:
            continue
        named = {one.name: one for one in instructions}
        inside = Counter(
            one.opcode for called in own.called for one in program.computations.get(called, ()) if one.operands
        )
        return Surroundings(
            program.name,
            computation,
            own,
            tuple(named.get(name) or Instruction(name, "", "") for name in own.operands),
            tuple(one for one in instructions if own.name in one.operands),
            tuple(inside.most_common()),
        )
    return None
