"""Rule: copies between HBM and host memory, which offloading brings."""

from collections.abc import Mapping

from asap.core.units import format_percent, format_rate
from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts, leading_operations, share_of_time
from asap.stacks.launchers import Stack

_REMATERIALISE = "where recomputation is cheaper than the copy, rematerialise instead"
_ADVICE: Mapping[Stack | None, str] = {
    None: f"offload less; {_REMATERIALISE}",
    "maxtext": "offload fewer tensors (remat_policy=custom, with device or remat in place of offload), keep the"
    f" optimizer in HBM (optimizer_memory_host_offload=false); {_REMATERIALISE} (remat_policy=full)",
    "megatron": "lower --cpu-offloading-num-layers or --optimizer-offload-fraction, hide the optimizer's copies"
    f" (--overlap-cpu-optimizer-d2h-h2d); {_REMATERIALISE} (--recompute-granularity)",
    "nemo": f"lower model.cpu_offloading_num_layers; {_REMATERIALISE} (model.activations_checkpoint_granularity)",
    "bridge": "lower model.cpu_offloading_num_layers or optimizer.optimizer_offload_fraction, hide the optimizer's"
    f" copies (optimizer.overlap_cpu_optimizer_d2h_h2d=true); {_REMATERIALISE} (model.recompute_granularity)",
    "torchtitan": f"set training.enable_cpu_offload=false; {_REMATERIALISE} (activation_checkpoint.mode)",
    "axolotl": f"set fsdp_config.offload_params=false; {_REMATERIALISE} (activation_offloading=false)",
    "accelerate": f"set fsdp_config.fsdp_offload_params=false; {_REMATERIALISE} (fsdp_activation_checkpointing)",
    "fsdp": f"keep parameters and optimizer on the device; {_REMATERIALISE}",
    "settings": f"keep parameters and optimizer on the device; {_REMATERIALISE}",
    "deepspeed": "keep the optimizer or a part of it on the device (zero_optimization.offload_optimizer: device none,"
    f" or a smaller ratio), pin its memory (pin_memory); {_REMATERIALISE} (activation checkpointing)",
}
"""What to do, in the words of the stack.

MaxText: configs/base.yml; Megatron-LM: megatron/training/arguments.py; Megatron-Bridge:
docs/training/cpu-offloading.md; torchtitan: config/job_config.py; DeepSpeed: https://www.deepspeed.ai/docs/config-json/."""


def host_transfer_bound(facts: Facts) -> Finding | None:
    """Copies to and from host memory, against the link to the host and against what could hide them."""
    share = facts.shares.relative("host_transfer")
    if share < STEP_TIME_VARIATION:
        return None
    statement = f"{share_of_time(facts, share)} waits for copies to and from host memory"
    rate = _rate(facts)
    evidence = leading_operations(facts, "host_transfer")
    if rate is not None:
        statement += f", which move {format_rate(rate, 'B/s')}{_of_link(facts, rate)}"
        evidence = (Evidence(fact="rate of copies with the host", quantity=facts.amount(rate, "B/s")), *evidence)
    return Finding(
        rule="host_transfer_bound",
        kind=Bottleneck.HOST_TRANSFER,
        statement=f"{statement}{_hideable(facts, share)}.",
        share=share,
        evidence=evidence,
        advice=_ADVICE[facts.stack],
    )


def _rate(facts: Facts) -> float | None:
    """Bytes per second of waiting: what was hidden is not seen, so the link itself may be faster, not slower."""
    copies = [op for op in facts.shares.operations["host_transfer"] if op.bytes_accessed and op.time_s]
    time = sum(op.time_s or 0.0 for op in copies)
    return sum(op.bytes_accessed or 0.0 for op in copies) / time if time else None


def _of_link(facts: Facts, rate: float) -> str:
    link = facts.chip.host_bandwidth if facts.chip else None
    if not link or rate > link:
        return ""
    return f" of the {format_rate(link, 'B/s')} that the link carries in one direction"


def _hideable(facts: Facts, share: float) -> str:
    """Whether more overlap can help: no more can hide than there is other work."""
    others = sum(facts.shares.relative(name) for name in ("compute", "hbm", "opaque"))
    if facts.shares.partial or others >= share:
        return ""
    return f"; the other operations take {format_percent(others)}, and overlap can hide no more than that"
