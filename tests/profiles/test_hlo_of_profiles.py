"""The HLO around an operation: programs that a profile carries, and what stands around an instruction in them."""

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asap.core.errors import InsufficientEvidenceError, NotFoundError, ProfileError
from asap.profiles import read_profile
from asap.profiles.hlo.program import CompiledProgram
from asap.profiles.surroundings import computation_of, surroundings
from asap.profiles.xplane.wire import BYTES
from tests.profiles.xspaces import TRAINING, Op, plane, serialised, tpu_profile

pytestmark = pytest.mark.compiles


@pytest.fixture(scope="module")
def compiled():
    """A module of XLA: its bytes as a profile has them, and its text."""
    import jax
    import jax.numpy as jnp

    def loss(weights, batch):
        def layer(carry, weight):
            return jnp.tanh(carry @ weight) * 2, carry.sum()

        return jax.lax.scan(layer, batch, weights)[0].sum()

    shapes = jax.ShapeDtypeStruct((3, 8, 8), jnp.bfloat16), jax.ShapeDtypeStruct((4, 8), jnp.bfloat16)
    (module,) = jax.jit(loss).lower(*shapes).compile().runtime_executable().hlo_modules()
    proto = module.as_serialized_hlo_module_proto()
    return bytes([1 << 3 | BYTES]) + _varint(len(proto)) + proto, module.to_string()


def _varint(number):
    return bytes([number & 0x7F | 0x80]) + _varint(number >> 7) if number > 0x7F else bytes([number])


@pytest.fixture
def write(tmp_path):
    def write_file(data):
        file = tmp_path / "host.xplane.pb"
        file.write_bytes(data)
        return file

    return write_file


def _with_program(proto):
    metadata = plane("/host:metadata")
    metadata.metadata("jit_loss(1)", **{"Hlo Proto": proto})
    return serialised([metadata])


def test_an_operation_of_a_cpu_has_the_path_of_the_users_operation(compiled, write):
    proto, text = compiled
    name = re.search(r"%(\S+) = \S+ dot\(.*dot_general", text)[1]
    host, metadata = plane("/host:CPU"), plane("/host:metadata")
    metadata.metadata("jit_loss(1)", **{"Hlo Proto": proto, "program_id": 7})
    run = {"hlo_op": name, "hlo_module": "jit_loss", "run_id": 1, "device_ordinal": 0, "program_id": 7}
    host.line(1, "pool", [host.event(name, 0, 9, **run)])
    (operation,) = read_profile(write(serialised([host, metadata]))).operations
    assert operation.operator.endswith("dot_general")


def test_a_program_is_what_xla_prints_of_it(compiled):
    proto, text = compiled
    printed = computation_of(line.strip().removeprefix("ROOT ") for line in text.splitlines())
    read = CompiledProgram(proto)
    assert read.name == "jit_loss"
    ran = [one for one in printed.instructions.values() if one.opcode]
    for one in ran:
        found, around = read.find(one.name) or pytest.fail(one.name)
        assert (found.opcode, found.shape) == (one.opcode, one.shape)
        operands = {each.name for each in printed.operands(one)}
        assert one.opcode == "constant" or {each.name for each in around.operands(found)} == operands
    assert len(ran) == sum(len(read.computation(each).instructions) for each in read.numbers)


def test_an_operation_has_operands_users_and_what_it_holds(compiled, write):
    proto, _ = compiled
    path, read = write(_with_program(proto)), CompiledProgram(proto)
    bodies = [read.computation(each) for each in read.numbers]
    ((loop, around),) = ((one, body) for body in bodies for one in body.instructions.values() if one.opcode == "while")
    found = surroundings(path, loop.name)
    assert found.operands == tuple(around.operands(loop))
    assert found.users
    assert all(loop.number in one.operands for one in found.users)
    assert ("dot", 1) in found.inside or any(opcode == "fusion" for opcode, _ in found.inside)
    with pytest.raises(NotFoundError, match="no such instruction"):
        surroundings(path, "fusion.123")


def test_without_a_program_the_events_of_a_tpu_tell(write):
    after = Op("add.9", "add", 10, 0, 0, "f32[8]{0} add(f32[8]{0} %fusion.1, f32[8]{0} %b), metadata={}")
    found = surroundings(write(tpu_profile((*TRAINING, after))), "fusion.1")
    assert (found.instruction.shape, [one.name for one in found.operands]) == ("bf16[8,8]", ["a"])
    assert [one.name for one in found.users] == ["add.9"]


def test_a_profile_without_hlo_says_how_to_capture_it(write):
    with pytest.raises(InsufficientEvidenceError, match="enable_hlo_proto"):
        surroundings(write(serialised([plane("/host:CPU")])), "add")


@settings(max_examples=20)
@given(data=st.data())
def test_a_damaged_program_is_refused(compiled, tmp_path_factory, data):
    proto, _ = compiled
    at = data.draw(st.integers(0, len(proto) - 1))
    broken = (
        proto[:at] + bytes([data.draw(st.integers(0, 255))]) + proto[at + 1 : data.draw(st.integers(at, len(proto)))]
    )
    file = tmp_path_factory.mktemp("hlo") / "host.xplane.pb"
    file.write_bytes(_with_program(broken))
    with suppress(ProfileError, NotFoundError):
        surroundings(file, "add")
