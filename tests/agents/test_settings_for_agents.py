from asap.agents.tools.toolbox import Toolbox
from asap.answers.inquiries import Inquiries
from asap.experiments import ExperimentStore
from asap.experiments.create import Statement, create_experiment
from asap.reports.answers.compact import unrolled

RUN = (
    "base_config: base.yml\nmodel_name: llama3.1-8b\nattention: {kernel}\nper_device_batch_size: 1\n"
    "max_target_length: 8192\nremat_policy: full\nici_fsdp_parallelism: 16\n"
)


def settings(tmp_path, kernel):
    file = tmp_path / "run.yml"
    file.write_text(RUN.format(kernel=kernel), encoding="utf-8")
    store = ExperimentStore(tmp_path / "store")
    store.add(create_experiment("run", Statement(hardware="h100-16"), config=file))
    tools = {tool.__name__: tool for tool in Toolbox(Inquiries(store)).all}
    return unrolled(tools["settings"](experiment="run")).get("settings", [])


def test_an_agent_sees_what_no_plan_varies_and_is_worth_a_test(tmp_path):
    (kernel,) = settings(tmp_path, "dot_product")
    assert kernel["why"].startswith("A fused attention kernel")
    assert kernel["vs_now"].startswith("-")
    assert kernel["line"] == "attention=cudnn_flash_te"


def test_an_agent_sees_none_where_all_is_set(tmp_path):
    assert settings(tmp_path, "cudnn_flash_te") == []
