"""Python from strangers: followed without end, without growth, and without a crash."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

HEAD = "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\ncfg = llama3_8b_pretrain_config()\n"
RUN = "pretrain(config=cfg)\n"


@pytest.mark.parametrize(
    "text",
    [
        "cfg.model.parent = cfg\nkept = [cfg]\ncfg.kept = kept\n",
        "s = 'xx'\n" + "s = f'{s}{s}'\n" * 60 + "cfg.model.name = s\n",
        "a = {}\n" + "a = {'x': a, 'y': a}\n" * 60 + "cfg.model.tree = a\ntune(cfg)\n",
        "".join(f"def f{n}():\n    {f'f{n + 1}(); ' * 20}return {{'a': f{n + 1}()}}\n" for n in range(8))
        + "def f8():\n    return {}\ncfg.model.more = f0()\n",
        "def again(cfg):\n    return again(cfg)\ncfg2 = again(cfg)\n",
        "x = 2\n" + "x = x * x\n" * 60 + "cfg.model.tensor_model_parallel_size = x\n",
    ],
)
def test_what_grows_or_never_ends_is_left(read, text):
    run = read("train.py", f"{HEAD}{text}{RUN}", hardware="h100-64")
    assert run.model.layers == 32


def test_what_is_nested_without_end_is_refused(read):
    with pytest.raises(ConfigError, match=r"nested too deeply|cannot be read as Python"):
        read("train.py", f"{HEAD}cfg.x = {'-' * 400}1\n{RUN}")
    with pytest.raises(ConfigError, match=r"nested too deeply|cannot be read as Python"):
        read("train.py", f"{HEAD}cfg.x = {' + '.join('1' * 2000)}\n{RUN}")
