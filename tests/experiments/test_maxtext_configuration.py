import pytest

from asap.core.errors import BadInputError
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


@pytest.mark.parametrize(
    ("text", "overrides", "said"),
    [
        (
            SMALL,
            ["ici_fdsp_parallelism=4"],
            "override: unknown key ici_fdsp_parallelism .*did you mean ici_fsdp_parallelism",
        ),
        (f"{SMALL}vocab_sise: 4\n", [], r"run\.yml:13: unknown key vocab_sise .*vocab_size"),
        (SMALL, ["ici_data_parallelism=-1"], "both -1"),
        (SMALL, ["ici_tensor_parallelism=7"], "not a multiple of 7"),
        (SMALL, ["ici_fsdp_parallelism=4"], "multiply to 16, not to the 256"),
        (SMALL, ["per_device_batch_size=0.001"], "less than one sequence"),
        (SMALL, ["per_device_batch_size=.nan"], "must be a number up to 1,000,000,000, not nan"),
        (SMALL, ["per_device_batch_size=1e300"], "must be a number up to"),
        (SMALL, [f"base_emb_dim={'9' * 25}"], "more than 18 digits"),
        (SMALL, [f"base_emb_dim={'9' * 5000}"], "cannot be read"),
        (SMALL, [f"base_emb_dim=0x{'f' * 5000}"], "more than 18 digits"),
        (SMALL, ["base_emb_dim=99999999999"], "must be a whole number up to 1,000,000,000"),
        (SMALL, ["base_emb_dim={a: 1}"], "must be a whole number"),
        (SMALL, ["attention={a: 1}"], "must be a word"),
        (SMALL, ["base_emb_dim=900000000", "global_parameter_scale=512"], "less than or equal to 1000000000"),
        (SMALL, ["ici_fsdp_parallelism=[4]"], "must be a positive whole number"),
        (SMALL, ["decoder_block=lama2"], "no decoder_block 'lama2' .*llama2"),
        (SMALL, ["opt_type=adm"], "opt_type must be one of adamw"),
        (SMALL, ["custom_mesh_and_rule=pure-fdsp"], "no custom_mesh_and_rule pure-fdsp .*pure-fsdp"),
        (SMALL, ["custom_mesh=hybrid_ring_9"], "no custom_mesh hybrid_ring_9"),
        (SMALL, ["custom_mesh=hybrid_ring_32x8"], "axes 8 and 32"),
        (SMALL, ["per_device_batch_size=many"], "override: per_device_batch_size must be a number, not 'many'"),
        (SMALL, ["base_emb_dim=2.5"], "must be a whole number"),
        (SMALL, ["logits_via_embedding=maybe"], "true or false"),
        (SMALL, ["num_experts=8", "num_experts_per_tok=9"], "8 experts need 1 to 8"),
        (SMALL, ["run_name=[1"], "is not YAML"),
        (SMALL, ["remat_policy=sometimes"], "no remat_policy"),
    ],
)
def test_bad_settings_are_refused_in_one_line(read, text, overrides, said):
    with pytest.raises(BadInputError, match=said) as caught:
        read(text, *overrides)
    assert "\n" not in str(caught.value)


def test_overrides_of_a_plan_give_it_back_over_the_same_file(read):
    experiment = read(SMALL)
    assert experiment.plan is not None
    wanted = experiment.plan.with_ici(data=16, model=4, seq=4)
    overrides = to_overrides(wanted, experiment.hyperparameters, global_batch=128)
    again = read(SMALL, *(f"{key}={value}" for key, value in overrides.items()))
    assert again.plan == wanted
    assert again.workload.global_batch == 128
