"""Values of charts that start a training job, with the files that are set with them, and commands of Helm."""

import pytest
import yaml

from asap.core.errors import AsapError, ConfigError
from tests.experiments.stack_configurations import NEMO, read

__all__ = ["read"]

VALUES = """
queue:
tasSettings: {topologyRequest: {}}
volumes: {gcsVolumes: true}
workload:
  gpus: 64
  image: nemo:25.11
  configFile: run.yaml
  configPath: /workload/configs/
  arguments[]:
  envs:
    - {name: RUN_CONFIG, value: /workload/configs/run.yaml}
    - {name: XLA_FLAGS, value: --xla_gpu_enable_triton_gemm=false}
    - {name: HF_TOKEN, value: null}
"""
MAXTEXT = "model_name: llama3.1-8b\nhardware: gpu\nper_device_batch_size: 2\nmax_target_length: 4096\n"
MAXTEXT_LAUNCHER = """
parse_args() {
  while [ "$1" != "" ]; do overrides+=("$1"); shift; done
}
parse_args "$@"
DCN="dcn_data_parallelism=1 dcn_fsdp_parallelism=8"
python MaxText/train.py ${RUN_CONFIG} ${overrides[*]} run_name=${JOB_IDENTIFIER} $DCN ici_fsdp_parallelism=8
"""
BRIDGE_LAUNCHER = """
command=$(cat <<- EOM
  nsys profile python scripts/performance/custom_setup_experiment.py \\
    --gpu gb200 \\
    --model_recipe_name llama3_8b \\
    --num_gpus 64 \\
    --compute_dtype bf16 \\
    --global_batch_size 128 \\
    --tensor_model_parallel_size 2 \\
    --pipeline_model_parallel_size 1 \\
    --context_parallel_size 1 \\
    --use_megatron_fsdp 1
EOM
)
torchrun --no-python bash -c "$command"
"""


@pytest.fixture
def chart(tmp_path, read):
    """Reads values with files beside them."""

    def call(*overrides: str, values: str = VALUES, name: str = "values.yaml", **files: str):
        for key, text in files.items():
            (tmp_path / key.replace("__", ".")).write_text(text)
        return read(name, values, *overrides)

    return call


def test_the_configuration_beside_the_values_runs_on_their_gpus(chart):
    run = chart(run__yaml=MAXTEXT)
    assert (str(run.plan.ici.data), run.hardware.devices, run.workload.global_batch) == ("64", 64, 128)
    assert run.environment["XLA_FLAGS"] == "--xla_gpu_enable_triton_gemm=false"
    assert run.provenance["environment.XLA_FLAGS"] == "values.yaml"
    assert chart("workload.gpus=32", run__yaml=MAXTEXT).hardware.devices == 32
    selected = VALUES + "nodeSelector: {cloud.google.com/gke-accelerator: nvidia-gb200}\n"
    assert chart(values=selected, run__yaml=MAXTEXT).hardware.chip == "gb200"


def test_arguments_of_the_launcher_are_overrides_of_the_configuration(chart):
    nemo = {"run__yaml": NEMO}
    assert str(chart(**nemo).plan) == "replica=4 model=4 stage=4 microbatches=64 pipeline_repeats=2 remat=selective"
    run = chart("workload.arguments[0]=model.tensor_model_parallel_size=8", "workload.arguments[1]=~model.x", **nemo)
    assert (run.plan.degree("model"), run.plan.degree("replica")) == (8, 2)
    stated = VALUES.replace("arguments[]:", "defaultArguments: [model.micro_batch_size=2, ++trainer.num_nodes=8]")
    assert chart(values=stated, **nemo).plan.microbatches == 32
    assert chart("model.micro_batch_size=4", values=stated, **nemo).plan.microbatches == 16


def test_a_launcher_of_nemo_hands_the_arguments_on(chart):
    launcher = "torchrun ${LAUNCH} --config-path=/workload/configs --config-name=run.yaml ++trainer.num_nodes=$N $@\n"
    values = VALUES.replace("envs:", "envs:\n    - {name: LAUNCH, value: /opt/megatron_gpt_pretraining.py}")
    run = chart("workload.arguments[0]=model.micro_batch_size=2", values=values, run__yaml=NEMO, launcher__sh=launcher)
    assert (run.plan.microbatches, run.hardware.devices) == (32, 64)


def test_the_launcher_is_read_with_the_variables_and_the_mounted_file(chart):
    files = {"run__yaml": MAXTEXT, "launcher__sh": MAXTEXT_LAUNCHER}
    run = chart("workload.arguments[0]=per_device_batch_size=4", **files)
    assert (run.workload.global_batch, run.workload.sequence_length) == (256, 4096)
    assert run.plan.dcn.data == 8
    assert (
        chart("per_device_batch_size=8", "workload.arguments[0]=per_device_batch_size=4", **files).workload.global_batch
        == 512
    )


def test_a_launcher_of_a_recipe_names_the_gpus(chart):
    run = chart("recompute_granularity=none", "sequence_parallel=true", launcher__sh=BRIDGE_LAUNCHER)
    assert (run.hardware.chip, run.hardware.devices) == ("gb200", 64)
    assert str(run.plan) == "data=32 model=2 microbatches=None remat=none".replace(" microbatches=None", "")
    fewer = chart("workload.gpus=32", "workload.arguments[0]=train.train_iters=5", launcher__sh=BRIDGE_LAUNCHER)
    assert (fewer.hardware.chip, fewer.hardware.devices) == ("gb200", 32)
    assert any("arguments that the chart gives the launcher: train.train_iters=5" in note for note in fewer.notes)


def test_values_that_helm_prints_hold_the_files_themselves(chart):
    values = yaml.safe_load(VALUES) | {"workload_config": NEMO}
    assert chart(values=yaml.safe_dump(values)).workload.framework == "NeMo"


def test_files_are_set_as_helm_sets_them(chart, tmp_path):
    below = tmp_path / "configs"
    below.mkdir()
    (below / "llama.yaml").write_text(NEMO)
    assert chart("workload_config=configs/llama.yaml").workload.framework == "NeMo"
    command = "export ROOT=$(git rev-parse --show-toplevel)\nhelm install run -f values.yaml \\\n"
    command += "  --set-file workload_config=$ROOT/configs/llama.yaml --set-file other=missing.py \\\n"
    command += '  --set workload.gpus=128,queue=a --set "workload.arguments[0]=model.micro_batch_size=2" $ROOT/chart\n'
    run = chart(values=command, name="run.sh", values__yaml=VALUES)
    assert (run.hardware.devices, run.plan.microbatches, run.workload.framework) == (128, 16, "NeMo")
    unknown = chart(values=command.replace("128", "$N"), name="run.sh", values__yaml=VALUES)
    assert unknown.hardware.devices == 64  # trainer.num_nodes x trainer.devices
    with pytest.raises(ConfigError, match=r"gives Helm .*/configs/other.yaml, which is not there"):
        chart(values=command.replace("llama.yaml", "other.yaml"), name="run.sh", values__yaml=VALUES)


SELECTED = """
    spec:
      nodeSelector:
        {{- if .Values.queue }}
        cloud.google.com/gke-accelerator: nvidia-h200-141gb
        {{- end }}
"""
AFFINE = """
          - matchExpressions:
            - key: cloud.google.com/gke-accelerator
              operator: In
              values:
              - {{ .Values.chip | default "x" }}
            - key: node.kubernetes.io/instance-type
              operator: In
              values: ["p5.48xlarge"]
"""


@pytest.mark.parametrize(
    ("folder", "template", "chip"),
    [
        ("charts/training", SELECTED, "h200"),
        ("charts/training", AFFINE, "h100"),
        ("charts/a4/jobset", None, "b200"),
        ("charts/a4/jobset", SELECTED, "h200"),
        ("charts/training", None, None),
    ],
)
def test_the_chart_that_is_installed_says_the_chip(chart, tmp_path, folder, template, chip):
    if template:
        (tmp_path / folder / "templates").mkdir(parents=True)
        (tmp_path / folder / "templates" / "job.yaml").write_text(template)
    command = f"helm install --wait run $ROOT/{folder} -f values.yaml --namespace a3 --set queue=a\n"
    run = chart(values=command, name="run.sh", values__yaml=VALUES, run__yaml=NEMO)
    assert (run.hardware.chip, run.hardware.devices) == (chip, 64)


@pytest.mark.parametrize(
    ("values", "files", "said"),
    [
        (VALUES, {}, r"values of a Helm chart, whose run.yaml is not beside it \(add workload_config=FILE"),
        (VALUES.replace("gpus: 64", "gpus: -8"), {}, "workload.gpus must be a whole number above zero, not -8"),
        (VALUES.replace("gpus: 64", "gpus: many"), {}, "workload.gpus must be a whole number above zero, not 'many'"),
        (VALUES.replace("gpus: 64", f"gpus: {'9' * 40}"), {}, "cannot be read: a whole number of more than"),
        (VALUES.replace("arguments[]:", "arguments: {a: b}"), {}, "workload.arguments must be a list"),
        (VALUES, {"run__yaml": "model: ["}, r"run.yaml:1: is not YAML"),
        (VALUES, {"run__yaml": "- a"}, "run.yaml: holds no mapping"),
        (VALUES, {"launcher__sh": "python train_images.py"}, "launcher.sh: starts no training that is read"),
        (VALUES.replace("run.yaml", "run.py"), {"run__py": "from nemo.collections import llm\n"}, "a NeMo 2 program"),
        (VALUES.replace("run.yaml", "run.py"), {"run__py": "print()\n"}, "is a program, and its launcher"),
    ],
)  # fmt: skip
def test_what_a_chart_does_not_say_is_named(chart, values, files, said):
    with pytest.raises(ConfigError, match=said):
        chart(values=values, **files)


@pytest.mark.parametrize("override", ["workload.gpus", "workload.arguments[0]", "workload_config=no.yaml"])
def test_a_value_that_cannot_be_set_is_named(chart, override):
    with pytest.raises(AsapError) as caught:
        chart(override, run__yaml=NEMO)
    assert override.partition("=")[0] in str(caught.value) or "no.yaml" in str(caught.value)


def test_sections_of_a_yaml_are_overridden_as_hydra_does(read):
    run = read("nemo.yaml", NEMO, "++trainer.num_nodes=4", "~model.virtual_pipeline_model_parallel_size")
    assert str(run.plan) == "replica=2 model=4 stage=4 microbatches=128 remat=selective"
    assert read("nemo.yaml", NEMO, "model.vocab=64000").model.vocab == 64_000
    with pytest.raises(ConfigError, match=r"override trainer.devices.x: devices is no section"):
        read("nemo.yaml", NEMO, "trainer.devices.x=4")
