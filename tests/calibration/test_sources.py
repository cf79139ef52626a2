"""Sources that are kept out stay out."""

import hashlib
from pathlib import Path

from asap.calibration.dataset.rows import read_rows
from asap.calibration.dataset.sources import KEPT_OUT
from asap.prediction import load_calibration

MEASUREMENTS = Path(__file__).parent.parent / "data" / "measurements"
COLLECTED = (
    ("internevo", "dlperf_v100", "modalities", "mlperf_training", "flagperf", "paddlenlp", "xtuner_moe",
     "xtuner_longseq", "ms_swift", "torchprime"),
    ("nanotron", "dgxc_benchmarking", "megatron_golden", "torchtitan", "nemo_launcher", "jax_toolbox",
     "aws_neuron_trn1", "atorch_llama2", "gaudi2_performance", "llm_c", "fast_llm", "olmo_core"),
    ("maxtext_mi355x", "primus", "torchao_float8", "optimum_habana", "gpu_recipes", "aws_moe_dispatchers",
     "megatron_bridge_cards", "prime_rl", "fms_fsdp", "megatron_bridge_guides", "nemo_longseq", "axlearn",
     "litgpt_thunder", "torchtune", "megatron_moe_modelzoo", "kempner_forge", "kempner_moe", "torchtitan_gb200_blog"),
    ("gipfelsturm", "megatron_tutorials", "lambda_torchtitan", "libai", "yafsdp", "scale_your_amd", "marin_grug",
     "fms_acceleration", "modded_nanogpt", "vectorlm"),
)  # fmt: skip
DRAWN = 4
"""Of each collection after the first."""
LEFT_TO_OTHERS = {"axlearn", "fms_fsdp"}
"""Which others may check predictions with."""


def test_they_were_drawn_by_the_rule() -> None:
    ordered = [sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest()) for names in COLLECTED]
    assert {name for names in ordered for name in names[:DRAWN]} | LEFT_TO_OTHERS == set(KEPT_OUT)


def test_no_fit_saw_them() -> None:
    assert not {*load_calibration().rows} & {*KEPT_OUT}


def test_each_lies_in_the_file_that_says_so() -> None:
    fitted = {row["source_key"] for row in read_rows(MEASUREMENTS / "runs.jsonl.gz")}
    kept = {row["source_key"] for row in read_rows(MEASUREMENTS / "kept_out.jsonl.gz")}
    assert kept == {*KEPT_OUT}
    assert not fitted & kept
