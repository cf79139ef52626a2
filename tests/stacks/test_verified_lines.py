"""How a line changes a command of Megatron-LM, where its own checks are asked of it."""

from launch_lines.lines import COMMANDS, changed


def test_a_line_replaces_adds_and_leaves_out():
    before = "--micro-batch-size 1 --sequence-parallel --cuda-graph-modules attn moe_router"
    line = "--micro-batch-size 2 --cuda-graph-modules attn --bf16 # without --sequence-parallel --fp16"
    assert changed(before, line) == ("--micro-batch-size", "2", "--cuda-graph-modules", "attn", "--bf16")


def test_each_command_says_its_devices():
    for command in COMMANDS.read_text(encoding="utf-8").splitlines():
        devices, _, arguments = command.partition(" ")
        assert int(devices) % 8 == 0
        assert changed(arguments, "")
