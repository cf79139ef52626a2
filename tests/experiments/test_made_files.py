"""Files that a script changes before it starts a run with them, and elements of its arrays."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

TRAIN = "NPROC_PER_NODE=8 FORCE_TORCHRUN=1 llamafactory-cli train run.yaml\n"
YAML = """# of our own
model_name_or_path: Qwen/Qwen3-8B
stage: sft
finetuning_type: full
cutoff_len: 2048
per_device_train_batch_size: 2
bf16: true
"""
ACCELERATE = (
    "accelerate launch --config_file fsdp.yaml train.py --model_name_or_path Qwen/Qwen3-8B --block_size 4096"
    " --per_device_train_batch_size 1 --gradient_checkpointing true\n"
)
FSDP = "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\nmixed_precision: bf16\nnum_processes: 8\n"


def tokens(run):
    return run.workload.global_batch * run.workload.sequence_length


@pytest.mark.parametrize(
    "edit",
    [
        "yq -i '.per_device_train_batch_size = 16' run.yaml",
        'yq eval -i ".per_device_train_batch_size = 16 | .bf16 = true" run.yaml',
        'BATCH=16\nyq e ".per_device_train_batch_size = $BATCH" -i run.yaml',
        "sed -i 's/per_device_train_batch_size: .*/per_device_train_batch_size: 16/' run.yaml",
        "sed -i -e 's/^per_device_train_batch_size: [0-9]*$/per_device_train_batch_size: 16/' run.yaml",
        "yq '.per_device_train_batch_size = 16' run.yaml > new.yaml && mv new.yaml run.yaml",
        "cat > run.yaml <<EOF\n" + YAML.replace("size: 2", "size: 16") + "EOF",
        "sed -i '/unused/d' other.yaml\necho 'gradient_accumulation_steps: 8' >> run.yaml",
        "F=run.yaml\necho -e 'save_steps: 5\\ngradient_accumulation_steps: 8' >> $F",
        "N=8\nprintf 'gradient_accumulation_steps: %s\\n' $N >> ./run.yaml",
        "cat >> run.yaml <<EOF\ngradient_accumulation_steps: 8\nEOF",
        "echo 'gradient_accumulation_steps: 8' > more.yaml\ncat more.yaml >> run.yaml",
    ],
)
def test_a_file_is_read_as_it_is_when_the_run_starts(read, tmp_path, edit):
    (tmp_path / "run.yaml").write_text(YAML)
    run = read("run.sh", f"{edit}\n{TRAIN}")
    assert tokens(run) == 128 * 2048
    assert "run.sh makes run.yaml itself before the run: change it there" in run.notes
    assert tokens(read("run.sh", f"{TRAIN}{edit}\n")) == 16 * 2048, "what comes after the start changes nothing"


@pytest.mark.parametrize(
    "edit",
    [
        "yq -i '.per_device_train_batch_size |= . * 2' run.yaml",
        'yq -i ".per_device_train_batch_size = $BATCH" run.yaml',
        "sed -i 's/\\(size: \\)2/\\116/' run.yaml",
        "if [ -n \"$(nvidia-smi)\" ]; then\nyq -i '.cutoff_len = 8' run.yaml\nfi",
        "if [ -n \"$(nvidia-smi)\" ]; then\necho 'cutoff_len: 8' >> run.yaml\nfi",
        'echo "cutoff_len: $(wc -l < x)" >> run.yaml',
        "printf 'cutoff_len: %d\\n' 8 >> run.yaml",
        "python lengths.py | tee -a run.yaml",
    ],
)
def test_an_edit_that_is_not_read_is_told(read, tmp_path, edit):
    (tmp_path / "run.yaml").write_text(YAML)
    with pytest.raises(ConfigError, match=r"edits run\.yaml before the run in a way that is not read"):
        read("run.sh", f"{edit}\n{TRAIN}")


def test_a_configuration_of_accelerate_is_read_as_it_is_edited(read, tmp_path):
    (tmp_path / "fsdp.yaml").write_text(FSDP)
    run = read("run.sh", f"sed -i 's/num_processes: 8/num_processes: 32/' fsdp.yaml\n{ACCELERATE}")
    assert run.plan.devices == 32
    assert "run.sh makes fsdp.yaml itself before the run: change it there" in run.notes
    copied = read("run.sh", f"cp fsdp.yaml /tmp/x/now.yaml\n{ACCELERATE.replace('fsdp.yaml', '/tmp/x/now.yaml')}")
    assert copied.plan.devices == 8


def test_elements_of_arrays(read):
    script = (
        "#SBATCH --array=0-1\ndeclare -A ROWS=([small]=8 ['large']=2)\nMODELS=(Qwen/Qwen3-0.6B 'Qwen/Qwen3-8B')\n"
        "SIZES=(small large)\nSIZE=${SIZES[$SLURM_ARRAY_TASK_ID]}\n"
        "torchrun --nproc_per_node 8 train.py --model_name_or_path ${MODELS[SLURM_ARRAY_TASK_ID]}"
        " --per_device_train_batch_size ${ROWS[$SIZE]} --block_size 2048 --gradient_checkpointing true\n"
    )
    run = read("run.sh", script, "SLURM_ARRAY_TASK_ID=1")
    assert (run.model.name, run.workload.global_batch) == ("Qwen/Qwen3-8B", 16)
    asked = read("run.sh", script)
    assert any("whose value is not said" in note and "add SLURM_ARRAY_TASK_ID=…" in note for note in asked.notes)


@pytest.mark.parametrize(("place", "layers"), [("$((ID - 1))", 28), ("-1", 36), ("1", 36), ("0", 28)])
def test_a_place_may_be_calculated(read, place, layers):
    script = f"ID=1\nMODELS=(Qwen/Qwen3-0.6B Qwen/Qwen3-8B)\nMODEL=${{MODELS[{place}]}}\n{ACCELERATE}"
    start = script.replace("--config_file fsdp.yaml", "--num_processes 8").replace(
        "Qwen/Qwen3-8B --block", "$MODEL --block"
    )
    assert read("run.sh", start).model.layers == layers


@pytest.mark.parametrize("place", ["2", "KEY", "$UNKNOWN", "$(date)"])
def test_an_element_that_is_not_there_is_asked(read, place):
    script = f"MODELS=(Qwen/Qwen3-0.6B Qwen/Qwen3-8B)\n{ACCELERATE}".replace(
        "--config_file fsdp.yaml", "--num_processes 8"
    )
    start = script.replace("Qwen/Qwen3-8B --block", f"${{MODELS[{place}]}} --block")
    assert read("run.sh", start).model is None


def test_the_yaml_that_an_array_names_is_asked_by_its_place(read, tmp_path):
    (tmp_path / "b.yaml").write_text(YAML)
    script = "FILES=(a.yaml b.yaml)\n" + TRAIN.replace("run.yaml", "${FILES[$SLURM_ARRAY_TASK_ID]}")
    with pytest.raises(ConfigError, match="which a variable names") as caught:
        read("run.sh", script)
    assert str(caught.value.hint).startswith("add SLURM_ARRAY_TASK_ID=…")
    assert tokens(read("run.sh", script, "SLURM_ARRAY_TASK_ID=1")) == 16 * 2048


def test_other_files_that_a_script_handles_do_not_matter(read, tmp_path):
    (tmp_path / "run.yaml").write_text(YAML)
    (tmp_path / "weights.bin").write_bytes(bytes(range(256)) * 8_000)
    before = "cp weights.bin /tmp/\nsed -i 's/a/b/' weights.bin\nmv weights.bin other.bin\ncat weights.bin > x\n"
    assert tokens(read("run.sh", before + TRAIN)) == 16 * 2048


@pytest.mark.parametrize(
    "edit",
    ["sed -i 's/" + "a.*" * 20 + "b/c/g' run.yaml", "yq -i '.cutoff_len = 8' run.yaml\n" * 200],
)
def test_edits_without_end_are_not_followed(read, tmp_path, edit):
    (tmp_path / "run.yaml").write_text(YAML + "# " + "a" * 390 + "\n")
    with pytest.raises(ConfigError, match="in a way that is not read"):
        read("run.sh", f"{edit}\n{TRAIN}")


@pytest.mark.parametrize(
    "edit",
    [
        "if grep -q '^output_dir:' run.yaml; then\n"
        'sed -i -e "s|^[[:space:]]*output_dir:.*|output_dir: $OUT|" run.yaml\n'
        'else\necho "output_dir: $OUT" >> run.yaml\nfi',
        "[ -n \"$(date)\" ] && echo 'wandb_project: ours' >> run.yaml",
        "echo 'run_name: 3' >> run.yaml\necho done > log.yaml",
    ],
)
def test_where_output_goes_may_hang_on_the_run(read, tmp_path, edit):
    (tmp_path / "run.yaml").write_text(f"{YAML}output_dir: here\n")
    assert tokens(read("run.sh", f"{edit}\n{TRAIN}")) == 16 * 2048
