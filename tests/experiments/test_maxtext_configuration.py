import pytest

from asap.core.errors import BadInputError, ConfigError, UsageError
from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.plans import Mesh, Remat
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


def test_heads_as_maxtext_said_them_in_2023(read):
    old = SMALL.replace("base_num_query_heads: 8\nbase_num_kv_heads: 4", "base_num_heads: 8")
    model = read(old).model
    assert (model.heads, model.kv_heads) == (8, 8)
    changed = read(SMALL, "base_num_heads=16").model
    assert (changed.heads, changed.kv_heads) == (16, 16)


def test_a_configuration_becomes_an_experiment(read):
    experiment = read(SMALL)
    assert experiment.plan is not None
    assert experiment.model is not None
    assert experiment.plan.ici == Mesh(data=64, model=4)
    assert experiment.plan.dcn == Mesh()
    assert experiment.plan.remat is Remat.MINIMAL
    assert experiment.plan.microbatches == 1
    assert experiment.model.missing() == ()
    assert (experiment.model.d_model, experiment.model.layers, experiment.model.kv_heads) == (1024, 12, 4)
    assert experiment.workload.global_batch == 128
    assert experiment.workload.sequence_length == 4096
    assert experiment.workload.precision == "bf16"
    assert experiment.hyperparameters["run_name"] == "trial"


def test_every_value_says_where_it_came_from(read):
    provenance = read(SMALL, "opt_type=sgd").provenance
    assert provenance["model.d_model"] == "run.yml:2: base_emb_dim"
    assert provenance["plan.ici.model"] == "run.yml:11: ici_tensor_parallelism"
    assert provenance["plan.ici.data"] == "derived: ici_fsdp_parallelism=-1 takes what is left of 256 devices a slice"
    assert provenance["plan.ici.seq"] == "MaxText default (base.yml)"
    assert provenance["workload.optimizer"] == "override: opt_type"
    assert provenance["workload.attention"] == "MaxText default (base.yml): attention"
    assert provenance["workload.global_batch"].startswith("derived: run.yml:9: per_device_batch_size x 256 devices")


def test_the_parts_of_the_loss_the_loop_over_layers_and_the_precision_of_weights_are_read(read):
    plain = read(SMALL).workload
    assert (plain.loss_chunks, plain.head_gathered_once, plain.scan_layers) == (1, False, True)
    assert plain.weight_precision == "fp32"
    assert read(SMALL, "weight_dtype=bfloat16").workload.weight_precision == "bf16"
    tiled = read(SMALL, "num_vocab_tiling=8", "vocab_tiling_ag_once=true", "scan_layers=false").workload
    assert (tiled.loss_chunks, tiled.head_gathered_once, tiled.scan_layers) == (8, True, False)


def test_overrides_win_over_the_file(read):
    experiment = read(SMALL, "ici_tensor_parallelism=8", "per_device_batch_size=1", "gradient_accumulation_steps=4")
    assert experiment.plan is not None
    assert experiment.plan.ici == Mesh(data=32, model=8)
    assert experiment.plan.microbatches == 4
    assert experiment.workload.global_batch == 1024


def test_overrides_alone_stand_on_the_defaults_of_maxtext():
    hardware, _ = refer_to_hardware("v5e-16")
    experiment = read_configuration(None, ["ici_context_parallelism=4"], Experiment(id="x", hardware=hardware))
    assert experiment.plan is not None
    assert experiment.model is not None
    assert experiment.plan.ici == Mesh(data=4, seq=4)
    assert experiment.workload.context_parallel == "all_gather"
    assert experiment.model.d_model == 2048
    assert experiment.workload.global_batch == 12 * 16


def test_slices_come_from_the_configuration_where_the_hardware_leaves_them_open(read):
    experiment = read(SMALL, "dcn_data_parallelism=2")
    assert experiment.plan is not None
    assert (experiment.hardware.slices, experiment.hardware.devices) == (2, 512)
    assert experiment.plan.dcn == Mesh(replica=2)
    with pytest.raises(ConfigError, match="multiply to 2, not to the 4 slices"):
        read(SMALL, "dcn_data_parallelism=2", slices=4)


def test_the_compile_topology_is_the_hardware_where_none_is_said(read):
    experiment = read(SMALL, "compile_topology=v5p-256", "compile_topology_num_slices=2", hardware=None)
    assert (experiment.hardware.chip, experiment.hardware.devices) == ("v5p", 256)
    assert any("TensorCores" in note for note in experiment.notes)
    said = read(SMALL, "compile_topology=v5p-256")
    assert said.hardware.chip == "v5e"
    assert any("compile_topology v5p-256" in note for note in said.notes)
    with pytest.raises(ConfigError, match=r"override: compile_topology.*unknown chip"):
        read(SMALL, "compile_topology=v99-4", hardware=None)


def test_a_length_below_zero_is_refused(read):
    with pytest.raises(ConfigError, match=r"max_target_length must be a positive whole number, not -5"):
        read(SMALL, "max_target_length=-5")


def test_gpus_split_into_domains_by_their_dcn_axes(read):
    experiment = read(
        SMALL, "ici_fsdp_parallelism=2", "dcn_fsdp_parallelism=8", "dcn_data_parallelism=1", hardware="h100-64"
    )
    assert experiment.plan is not None
    assert experiment.plan.devices == experiment.hardware.devices == 64
    filled = read(SMALL, "ici_fsdp_parallelism=2", "dcn_fsdp_parallelism=4", hardware="h100-64")
    assert filled.plan is not None
    assert (str(filled.plan.ici), str(filled.plan.dcn)) == ("data=2 model=4", "replica=2 data=4")


def test_slices_that_nobody_says_leave_the_plan_open(read):
    experiment = read(SMALL, "dcn_fsdp_parallelism=2", hardware="v5e-256")
    assert experiment.plan is None
    assert any("the number of slices is not known" in note for note in experiment.notes)


def test_an_open_mesh_without_hardware_is_an_unknown_plan(read):
    experiment = read(SMALL, hardware=None)
    assert experiment.plan is None
    assert experiment.workload.global_batch is None
    assert any("the plan is unknown" in note for note in experiment.notes)
    closed = read(SMALL, "ici_fsdp_parallelism=4", hardware=None)
    assert closed.plan is not None
    assert closed.plan.ici == Mesh(data=4, model=4)
    assert closed.workload.global_batch == 8


def test_a_named_model_brings_its_shapes(read):
    experiment = read("model_name: llama3.1-70b\nbase_emb_dim: 77\n")
    assert experiment.model is not None
    assert (experiment.model.layers, experiment.model.d_model, experiment.model.kv_heads) == (80, 8192, 8)
    assert experiment.provenance["model"].startswith("run.yml:1: model_name")


def test_a_named_model_is_changed_with_leave_only(read):
    with pytest.raises(ConfigError, match="base_num_decoder_layers contradicts model_name"):
        read("model_name: llama3.1-70b\n", "base_num_decoder_layers=4")
    changed = read("model_name: llama3.1-70b\n", "base_num_decoder_layers=4", "override_model_config=true")
    assert changed.model is not None
    assert (changed.model.layers, changed.model.d_model) == (4, 8192)
    assert read("model_name: llama3.1-70b\n", "base_num_decoder_layers=80").model is not None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("secret-9b", r"secret-9b is not known, and has no file .*models/secret-9b\.yml beside the configuration"),
        ("llama3-70", "llama3-70 is not known, and has no file .*nearest: llama3-70b"),
        ("gemma4-e2b", "gemma4-e2b has an embedding in each layer"),
        ("deepseek4-284b", "deepseek4-284b has compressed attention"),
    ],
)
def test_a_model_that_nobody_knows_is_refused_and_never_becomes_the_default(read, name, said):
    with pytest.raises(ConfigError, match=said):
        read(f"model_name: {name}\nbase_emb_dim: 4096\nbase_num_query_heads: 32\n")


def test_experts_and_latent_attention_are_read(read):
    experiment = read(
        "num_experts: 64\nnum_experts_per_tok: 6\nbase_moe_mlp_dim: 1408\n"
        "shared_experts: 2\nfirst_num_dense_layers: 1\n"
        "attention_type: mla\nkv_lora_rank: 512\nq_lora_rank: 0\ndecoder_block: deepseek\nlogits_via_embedding: true\n"
    )
    model = experiment.model
    assert model is not None
    assert (model.experts, model.experts_per_token, model.expert_d_ff) == (64, 6, 1408)
    assert (model.shared_experts, model.leading_dense_layers) == (2, 1)
    assert (model.kv_lora_rank, model.q_lora_rank, model.v_head_dim) == (512, None, 128)
    assert model.tied_embeddings


@pytest.mark.parametrize(
    ("overrides", "factor"),
    [
        ((), None),
        (("sparse_matmul=false", "capacity_factor=1.25"), 1.25),
        (("sparse_matmul=false",), 8 / 2),
        (("capacity_factor=1.25",), None),
    ],
)
def test_experts_compute_the_slots_of_their_capacity(read, overrides, factor):
    experts = ("num_experts=8", "num_experts_per_tok=2", "decoder_block=mixtral")
    assert read(SMALL, *experts, *overrides).workload.capacity_factor == factor
    assert read(SMALL, *overrides).workload.capacity_factor is None


def test_the_default_block_sets_attention_beside_the_mlp(read):
    experiment = read("decoder_block: default\n")
    assert experiment.model.parallel_block
    assert "decoder_block" in experiment.provenance["model.parallel_block"]
    assert not read(SMALL).model.parallel_block


def test_dense_attention_has_no_latent_ranks_by_default(read):
    model = read(SMALL).model
    assert model is not None
    assert not model.is_mla
    assert not model.is_moe
    assert model.sliding_window is None


@pytest.mark.parametrize(("activations", "gated"), [("[silu, linear]", True), ("[gelu]", False)])
def test_two_activations_make_a_gated_mlp(read, activations, gated):
    model = read(f"{SMALL}mlp_activations: {activations}\n").model
    assert model is not None
    assert model.gated_mlp is gated


def test_the_scale_multiplies_the_shapes(read):
    model = read(SMALL, "global_parameter_scale=16").model
    assert model is not None
    assert (model.layers, model.d_model, model.heads, model.d_ff) == (24, 2048, 32, 16384)
    with pytest.raises(ConfigError, match="power of two"):
        read(SMALL, "global_parameter_scale=3")


def test_the_base_of_a_file_is_read(read, tmp_path):
    (tmp_path / "parent.yml").write_text("base_config: base.yml\nopt_type: adam_pax\nmax_target_length: 128\n")
    experiment = read(f"base_config: parent.yml\n{SMALL}")
    assert experiment.workload.optimizer == "adam_pax"
    assert experiment.workload.sequence_length == 4096
    assert experiment.provenance["workload.optimizer"] == "parent.yml:2: opt_type"
    with pytest.raises(ConfigError, match=r"run\.yml:1: base_config nothing\.yml is not there"):
        read("base_config: nothing.yml\n")
    with pytest.raises(ConfigError, match="too many base_config"):
        read("base_config: run.yml\nopt_type: sgd\n")


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
        (SMALL, ["attention={a: 1}"], "must be text"),
        (SMALL, ["base_emb_dim=900000000", "global_parameter_scale=512"], "less than or equal to 1000000000"),
        (SMALL, ["ici_fsdp_parallelism=[4]"], "must be a positive whole number"),
        (SMALL, ["decoder_block=lama2"], "no decoder_block 'lama2' .*llama2"),
        (SMALL, ["opt_type=adm"], "no opt_type 'adm'"),
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


@pytest.mark.parametrize("overrides", [["opt_type"], ["=3"], ["a b=3"], ["opt_type=sgd", "opt_type=adamw"]])
def test_overrides_that_are_none_are_refused(read, overrides):
    with pytest.raises(UsageError):
        read(SMALL, *overrides)


def test_secrets_do_not_reach_the_record(read):
    token = "hf_" + "a" * 30
    experiment = read(f"{SMALL}hf_access_token: plainsecret\nprompt: use {token}\n")
    assert "plainsecret" not in experiment.model_dump_json()
    assert token not in experiment.model_dump_json()


def test_numbers_with_an_exponent_are_numbers(read):
    assert read(SMALL, "per_device_batch_size=1e1").workload.global_batch == 2560


def test_a_fraction_that_maxtext_cuts_is_noted(read):
    experiment = read(SMALL, "per_device_batch_size=0.1")
    assert experiment.workload.global_batch == 25
    assert any("25" in note for note in experiment.notes)


def test_overrides_of_a_plan_give_it_back_over_the_same_file(read):
    experiment = read(SMALL)
    assert experiment.plan is not None
    wanted = experiment.plan.with_ici(data=16, model=4, seq=4)
    overrides = to_overrides(wanted, experiment.hyperparameters, global_batch=128)
    again = read(SMALL, *(f"{key}={value}" for key, value in overrides.items()))
    assert again.plan == wanted
    assert again.workload.global_batch == 128


@pytest.mark.parametrize(
    ("text", "overrides", "task"),
    [
        ("model_call_mode: inference\n", (), "serving"),
        ("use_dpo: true\n", (), "preferences"),
        ("use_grpo: true\n", (), "reinforcement learning"),
        ("rl: {num_generations: 2}\n", (), "reinforcement learning"),
        ("lora: {enable_lora: true}\n", (), "adapters"),
        ("use_sft: true\n", ("use_dpo=true",), "preferences"),
    ],
)
def test_what_runs_no_steps_of_training_is_refused_by_name(read, text, overrides, task):
    assert read(SMALL + "use_sft: true\nlora: {enable_lora: false}\n").plan is not None
    with pytest.raises(ConfigError, match=f"for .*{task}"):
        read(SMALL + text, *overrides)


def test_a_configuration_over_a_base_for_serving_serves(tmp_path):
    (tmp_path / "inference_jetstream.yml").write_text("enable_model_warmup: false\n")
    path = tmp_path / "llama.yml"
    path.write_text("base_config: inference_jetstream.yml\nmodel_name: llama3.1-8b\n")
    with pytest.raises(ConfigError, match=r"inference_jetstream\.yml:1: .*serving"):
        read_configuration(path, (), Experiment(id="x"))


def test_a_file_that_has_all_keys_is_a_base_by_any_name(read):
    rules = "mesh_axes: ['data', 'fsdp', 'tensor']\nlogical_axis_rules: [['embed', 'fsdp'], ['mlp', 'tensor']]"
    run = read(f"{SMALL}dcn_data_parallelism: -1\n{rules}\nupload_every: 5\n")
    assert any("is not known: upload_every" in note for note in run.notes)
    assert not any("no shape is said" in note for note in run.notes)


def test_keys_of_a_forks_base_are_named_and_those_that_a_run_sets_refused(read, tmp_path):
    rules = "mesh_axes: ['data', 'fsdp', 'tensor']\nlogical_axis_rules: [['embed', 'fsdp'], ['mlp', 'tensor']]"
    base = f"base_emb_dim: 512\ndcn_data_parallelism: -1\n{rules}\nupload_every: 5\nwide_heads: false\n"
    (tmp_path / "base.yml").write_text(base)
    run = read(f"base_config: base.yml\n{SMALL}")
    assert any("is not known: wide_heads, upload_every" in note for note in run.notes)
    with pytest.raises(ConfigError, match="unknown key wide_heads"):
        read(f"base_config: base.yml\n{SMALL}", "wide_heads=true")
    (tmp_path / "base.yml").write_text(f"{base}checkpoint_max_to_keep: 4\nuse_wandb: true\n")
    free = read(f"base_config: base.yml\n{SMALL}", "checkpoint_max_to_keep=1", "use_wandb=false")
    assert any("is not known: checkpoint_max_to_keep, use_wandb, wide_heads" in note for note in free.notes)
    with pytest.raises(ConfigError, match="unknown key eval_shards"):
        read(f"base_config: base.yml\n{SMALL}", "eval_shards=1")


def test_keys_of_a_fork_are_named_where_its_base_is_not_there_and_slips_are_refused(read, tmp_path):
    run = read(f"base_config: base.yml\n{SMALL}zigzag_depth: 3\nbuzz: true\nnum_zebras: 2\n")
    assert any("so that what they change is not known: zigzag_depth, buzz, num_zebras" in note for note in run.notes)
    with pytest.raises(ConfigError, match=r"unknown key vocab_sise .*vocab_size"):
        read(f"{SMALL}vocab_sise: 4\nzigzag_depth: 3\n")
    script = tmp_path / "train.sh"
    script.write_text("python3 -m MaxText.train base.yml model_name=llama2-7b zigzag_depth=3 max_target_length=512\n")
    started = read_configuration(script, (), Experiment(id="x"))
    assert any("train.sh:1: a fork's, with keys" in note and "zigzag_depth" in note for note in started.notes)
    script.write_text("python3 -m MaxText.train base.yml model_name=llama2-7b max_targe_length=512\n")
    with pytest.raises(ConfigError, match=r"unknown key max_targe_length .*max_target_length"):
        read_configuration(script, (), Experiment(id="x"))
