import pytest

from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.stacks.maxtext.overrides import to_overrides

SMALL = """\
run_name: trial
base_emb_dim: 1024
base_num_query_heads: 8
base_num_kv_heads: 4
base_mlp_dim: 4096
base_num_decoder_layers: 12
head_dim: 128
vocab_size: 32_768
per_device_batch_size: 0.5
max_target_length: 4096
ici_tensor_parallelism: 4
remat_policy: minimal
"""


@pytest.fixture
def read(tmp_path):
    def call(text: str, *overrides: str, hardware: str | None = "v5e-256", **more) -> Experiment:
        path = tmp_path / "run.yml"
        path.write_text(text)
        reference = {"hardware": refer_to_hardware(hardware, **more)[0]} if hardware else {}
        return read_configuration(path, overrides, Experiment(id="x", **reference))

    return call


def test_overrides_of_a_plan_give_it_back_over_the_same_file(read):
    experiment = read(SMALL)
    assert experiment.plan is not None
    wanted = experiment.plan.with_ici(data=16, model=4, seq=4)
    overrides = to_overrides(wanted, experiment.hyperparameters, global_batch=128)
    again = read(SMALL, *(f"{key}={value}" for key, value in overrides.items()))
    assert again.plan == wanted
    assert again.workload.global_batch == 128
