"""Other names of recipes: files of Megatron-Bridge since 2026 that only import recipes under the names of before
(``recipes/llama/llama3.py``: ``from megatron.bridge.recipes.llama.h100.llama3 import … as llama3_8b_pretrain_config``),
and assignments of one recipe to another name."""

import ast
from dataclasses import dataclass
from pathlib import Path

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.named_file import NamedFile, find_named

_LIBRARY = "megatron.bridge"
_CONFIG = "_config"


@dataclass(frozen=True)
class Alias:
    """The recipe behind a name, and the module that has it; ``None``: the same file."""

    recipe: str
    module: str | None = None

    def file(self, path: Path) -> NamedFile:
        """The file of the module, as it lies from a folder of ``path`` or one above it.

        Raises:
            ConfigError: it is not there.
        """
        assert self.module is not None
        named = f"{self.module.replace('.', '/')}.py"
        if (found := find_named(named, path)) is not None and found.path != path:
            return found
        reason = f"only names a recipe of another file: {plain(self.recipe, 80)} of {plain(named, 120)}"
        raise ConfigError(reason, where=str(path), hint=f"give that file with recipe={plain(self.recipe, 80)}")


def recipe_aliases(tree: ast.Module) -> dict[str, Alias]:
    """Recipes of a file by the names that it gives them."""
    found: dict[str, Alias] = {}
    for node in tree.body:
        match node:
            case ast.ImportFrom(module=str(module), names=names, level=0) if module.startswith(_LIBRARY):
                named = ((name.asname or name.name, name.name) for name in names)
                found |= {name: Alias(recipe, module) for name, recipe in named if name.endswith(_CONFIG)}
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=recipe)) if name.endswith(_CONFIG):
                found[name] = found.get(recipe, Alias(recipe))
    return found
