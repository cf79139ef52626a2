"""Programs under FSDP: whether a script or a mapping is of one, what reads it, and which overrides are its settings."""

from asap.experiments.fsdp import composer, hyperpod, litgpt, llama_recipes, llm_recipes, torchtune, verl

SCRIPTS = (
    (verl.is_verl_script, verl.read_verl_script, verl.is_setting),
    (llm_recipes.is_recipes_script, llm_recipes.read_recipes_script, llm_recipes.is_setting),
    (torchtune.is_torchtune_script, torchtune.read_torchtune_script, torchtune.is_setting),
    (hyperpod.is_hyperpod_script, hyperpod.read_hyperpod_script, hyperpod.is_setting),
    (composer.is_composer_script, composer.read_composer_script, composer.is_setting),
    (litgpt.is_litgpt_script, litgpt.read_litgpt_script, litgpt.is_setting),
    (llama_recipes.is_llama_recipes_script, llama_recipes.read_llama_recipes_script, llama_recipes.is_setting),
)
FILES = (
    (verl.is_verl_file, verl.read_verl_file, verl.is_setting),
    (torchtune.is_torchtune_file, torchtune.read_torchtune_file, torchtune.is_setting),
    (hyperpod.is_hyperpod_file, hyperpod.read_hyperpod_file, hyperpod.is_setting),
    (composer.is_foundry_file, composer.read_composer_file, composer.is_setting),
    (composer.is_olmo_file, composer.read_composer_file, composer.is_setting),
    (litgpt.is_litgpt_file, litgpt.read_litgpt_file, litgpt.is_setting),
)
