"""Files that a script changes before it starts a run with them, and elements of its arrays."""

import pytest

from asap.core.errors import ConfigError, UnreadError
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


def tokens(run):
    return run.workload.global_batch * run.workload.sequence_length


def test_a_file_is_read_as_a_here_document_says_it(read, tmp_path):
    (tmp_path / "run.yaml").write_text(YAML)
    write = "cat > run.yaml <<EOF\n" + YAML.replace("size: 2", "size: 16") + "EOF"
    run = read("run.sh", f"{write}\n{TRAIN}")
    assert tokens(run) == 128 * 2048
    assert "run.sh makes run.yaml itself before the run: change it there" in run.notes
    assert tokens(read("run.sh", f"{TRAIN}{write}\n")) == 16 * 2048, "what comes after the start changes nothing"


@pytest.mark.parametrize(
    "edit",
    [
        "yq -i '.per_device_train_batch_size = 16' run.yaml",
        "sed -i 's/per_device_train_batch_size: .*/per_device_train_batch_size: 16/' run.yaml",
        "sed 's/: 2/: 16/' template.yaml > run.yaml",
        "mv new.yaml run.yaml",
        "cat >> run.yaml <<EOF\ngradient_accumulation_steps: 8\nEOF",
        "F=run.yaml\necho 'gradient_accumulation_steps: 8' >> $F",
        "if [ -n \"$(nvidia-smi)\" ]; then\nyq -i '.cutoff_len = 8' run.yaml\nfi",
        'if [ -n "$(nvidia-smi)" ]; then\ncat > run.yaml <<EOF\ncutoff_len: 8\nEOF\nfi',
        "python lengths.py | tee -a run.yaml",
    ],
)
def test_a_file_that_is_made_otherwise_is_refused_by_name(read, tmp_path, edit):
    (tmp_path / "run.yaml").write_text(YAML)
    with pytest.raises(UnreadError, match=r"makes or edits run\.yaml by a command before the run") as caught:
        read("run.sh", f"{edit}\n{TRAIN}")
    assert "give the file, as it is then, as --config; or " in (caught.value.hint or "")


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
