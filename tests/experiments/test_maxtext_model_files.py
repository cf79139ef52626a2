"""Models by name: their own file first, then MaxText's, never its default."""

import pytest

from asap.core.errors import ConfigError
from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.models import count_parameters, find_architecture

ACME = """\
base_emb_dim: 5120
base_num_query_heads: 40
base_num_kv_heads: 40
base_mlp_dim: 13824
base_num_decoder_layers: 40
head_dim: 128
vocab_size: 32000
mlp_activations: ["silu", "linear"]
decoder_block: "llama2"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "acme-13b.yml").write_text(ACME)
    return tmp_path


def read(path, *overrides: str, hardware: str | None = "v5e-256") -> Experiment:
    known = {"hardware": refer_to_hardware(hardware)[0]} if hardware else {}
    return read_configuration(path, overrides, Experiment(id="x", **known))


def run(folder, text: str):
    (folder / "run.yml").write_text(text)
    return folder / "run.yml"


def test_the_file_of_a_model_beside_the_configuration_is_read(folder):
    experiment = read(run(folder, "model_name: acme-13b\n"))
    assert (experiment.model.name, experiment.model.layers, experiment.model.d_model) == ("acme-13b", 40, 5120)
    assert count_parameters(experiment.model).total == count_parameters(find_architecture("llama2-13b")).total
    assert experiment.provenance["model.layers"] == "acme-13b.yml:5: base_num_decoder_layers"
    assert "base_emb_dim" not in experiment.hyperparameters


def test_the_folder_configs_of_maxtext_is_searched(folder):
    deep = folder / "configs" / "tpu" / "v5e"
    deep.mkdir(parents=True)
    (folder / "models").rename(folder / "configs" / "models")
    assert read(run(deep, "model_name: acme-13b\n")).model.layers == 40


def test_the_file_of_a_model_wins_over_the_configuration_and_that_is_said(folder):
    experiment = read(run(folder, "model_name: acme-13b\nbase_num_decoder_layers: 5\n"))
    assert experiment.model.layers == 40
    assert any("run.yml:2: base_num_decoder_layers does not count" in note for note in experiment.notes)


def test_what_a_file_says_of_a_known_model_does_not_count_and_that_is_said(folder):
    experiment = read(run(folder, "model_name: llama2-7b\nbase_num_decoder_layers: 5\n"))
    assert experiment.model.layers == 32
    assert any("base_num_decoder_layers does not count" in note for note in experiment.notes)


def test_overrides_contradict_the_file_of_a_model_unless_it_is_allowed(folder):
    path = run(folder, "model_name: acme-13b\n")
    with pytest.raises(ConfigError, match=r"base_mlp_dim contradicts the file of the model, models/acme-13b\.yml"):
        read(path, "base_mlp_dim=4096")
    assert read(path, "base_mlp_dim=13824").model.d_ff == 13824
    assert read(path, "base_mlp_dim=4096", "override_model_config=true").model.d_ff == 4096


def test_an_edited_file_of_a_known_model_counts_as_edited(folder):
    text = ACME.replace("base_num_decoder_layers: 40", "base_num_decoder_layers: 20")
    (folder / "models" / "llama2-13b.yml").write_text(text)
    experiment = read(run(folder, "model_name: llama2-13b\n"))
    assert experiment.model.layers == 20
    assert any("llama2-13b is not MaxText's own: layers 20 instead of 40" in note for note in experiment.notes)


def test_an_instruct_model_has_the_file_of_its_base(folder):
    assert read(run(folder, "model_name: acme-13b-Instruct\n")).model.layers == 40


def test_the_file_of_a_model_can_be_given_itself(folder):
    experiment = read(folder / "models" / "acme-13b.yml", hardware="v5e-64")
    assert (experiment.model.name, experiment.model.layers) == ("acme-13b", 40)
    assert experiment.plan.ici.data == 64


def test_a_configuration_without_model_says_whose_shapes_it_has(folder):
    experiment = read(run(folder, "max_target_length: 4096\n"))
    assert any("MaxText takes its own 16 layers of 2048" in note for note in experiment.notes)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("attention_type: compressed", "compressed attention"),
        ("hidden_size_per_layer_input: 256", "an embedding in each layer"),
        ("num_kv_shared_layers: 20", "share keys and values"),
        ("moba: true", "mixture of block attention"),
        ("mhc_expansion_rate: 4", "several residual streams"),
        ("moe_expert_input_dim: 768", "narrower than the residual stream"),
    ],
)
def test_parts_that_cannot_be_expressed_are_refused_by_name(folder, setting, said):
    (folder / "models" / "odd.yml").write_text(f"{ACME}{setting}\n")
    with pytest.raises(ConfigError, match=f"odd has .*{said}"):
        read(run(folder, "model_name: odd\n"))


def test_parts_that_are_not_counted_are_said(folder):
    (folder / "models" / "sparse.yml").write_text(f"{ACME}use_indexer: true\nmtp_num_layers: 1\n")
    sparse = read(run(folder, "model_name: sparse\n"))
    assert any("use_indexer" in note for note in sparse.notes)
    assert sparse.model.mtp_layers == 1


def test_layers_of_different_attention_are_averaged(folder):
    """Qwen3-Next-80B-A3B has 79.67 billion parameters without multi-token prediction."""
    text = """\
decoder_block: qwen3_next
base_emb_dim: 2048
base_num_decoder_layers: 48
base_num_query_heads: 16
base_num_kv_heads: 2
head_dim: 256
vocab_size: 151936
base_mlp_dim: 512
base_moe_mlp_dim: 512
num_experts: 512
shared_experts: 1
num_experts_per_tok: 10
"""
    (folder / "models" / "linear.yml").write_text(text)
    model = read(run(folder, "model_name: linear\n")).model
    assert count_parameters(model).total == pytest.approx(79.674e9, rel=1e-4)


@pytest.mark.parametrize("block", ["mixtral", "mistral"])
def test_experts_have_the_width_of_their_mlp_where_only_the_base_says_one_of_deepseeks(folder, block):
    mixture = ACME.replace("llama2", block) + "num_experts: 8\nnum_experts_per_tok: 2\n"
    (folder / "models" / "acme-8x13b.yml").write_text(mixture)
    rules = "mesh_axes: ['data', 'fsdp']\nlogical_axis_rules: [['embed', 'fsdp']]\n"
    base = "base_emb_dim: 512\ndcn_data_parallelism: -1\nbase_moe_mlp_dim: 7168\nshared_experts: 1\n"
    (folder / "base.yml").write_text(base + rules)
    path = run(folder, "base_config: base.yml\nmodel_name: acme-8x13b\n")
    model = read(path).model
    assert (model.experts, model.expert_d_ff, model.shared_experts) == (8, 13824, 0)
    (folder / "models" / "acme-8x13b.yml").write_text(mixture + "base_moe_mlp_dim: 2048\nshared_experts: 2\n")
    model = read(path).model
    assert (model.expert_d_ff, model.shared_experts) == (2048, 2)
