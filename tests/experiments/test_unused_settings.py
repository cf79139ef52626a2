"""Settings that change a step and that the prediction does not use are said, whichever stack has them."""

import json

import pytest

from tests.experiments.stack_configurations import DEEPSPEED, TITAN, read

__all__ = ["read"]

TRAINER = """torchrun --nproc_per_node 8 train.py --model_name_or_path meta-llama/Llama-3.1-8B --bf16 True \\
    --per_device_train_batch_size 2 --fsdp "full_shard auto_wrap" --gradient_checkpointing True MORE
"""


def zero(**more: object) -> str:
    return json.dumps(DEEPSPEED | {"zero_optimization": {"stage": 3, **more}})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", zero(zero_quantized_weights=True),
         "use zero_optimization.zero_quantized_weights"),
        ("b.json", zero(zero_quantized_weights=False, zero_hpz_partition_size=4), None),
        ("c.json", zero(offload_optimizer={"device": "nvme"}), "is nvme, taken as the memory of the host"),
        ("d.json", json.dumps(DEEPSPEED | {"optimizer": {"type": "ZeroOneAdam"}}), "compresses what is exchanged"),
        ("e.toml", f"{TITAN}\n[optimizer]\nearly_step_in_backward = true\n", "use optimizer.early_step_in_backward"),
        ("f.toml", f"{TITAN}\n[optimizer]\nearly_step_in_backward = false\n", None),
        ("g.sh", TRAINER.replace("MORE", "--freeze_half 1 --train_only_layers 0,1"), "--freeze_half, --train_only"),
        ("h.sh", TRAINER.replace("MORE", "--freeze_vit True --freeze_half False"), None),
    ],
)  # fmt: skip
def test_what_is_not_used_is_said_and_what_is_as_usual_is_not(read, name, text, said):
    notes = read(name, text, *(["model=llama3.1-8b"] if name.endswith("json") else []), hardware="h100-8").notes
    found = [note for note in notes if any(word in note for word in ("does not use", "taken as", "only the program"))]
    found = [note for note in found if "recomputed" not in note]
    assert (said in " ".join(found)) if said else not found
