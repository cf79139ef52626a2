import os

import pytest
from ci_scratch import CONFIG, TENSOR, Scratch

from asap.ci.source.git import Repository
from asap.core.errors import BadInputError, NotFoundError

pytestmark = pytest.mark.process


def test_a_folder_without_repository_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="git repository"):
        Repository(tmp_path)


def test_a_base_that_was_force_pushed_away_says_what_to_fetch(based):
    with pytest.raises(NotFoundError, match="git fetch origin"):
        based.check("0123456789012345678901234567890123456789", "HEAD")


@pytest.mark.parametrize("reference", ["--upload-pack=touch x", "-h", "", "HEAD;id", "a\nb"])
def test_a_reference_is_never_an_option(based, reference):
    with pytest.raises(NotFoundError):
        Repository(based.folder).commit(reference)


def test_a_shallow_clone_says_so(based, tmp_path):
    based.git("checkout", "-q", "-b", "change")
    based.commit(**{"a.yml": TENSOR})
    based.git("checkout", "-q", "main")
    based.commit(readme="x")
    shallow = Scratch(tmp_path / "shallow")
    shallow.git("fetch", "-q", "--depth=1", f"file://{based.folder}", "main:there", "change:change")
    with pytest.raises(BadInputError, match=r"shallow.*fetch --unshallow"):
        shallow.check("there", "change")


def test_unrelated_histories_have_no_common_ancestor(based):
    based.git("checkout", "-q", "--orphan", "other")
    based.commit(**{"a.yml": TENSOR})
    with pytest.raises(BadInputError, match="no common ancestor"):
        based.check("main", "other")


def test_only_what_the_head_changed_counts(repo):
    repo.commit(**{"a.yml": CONFIG, "b.yml": CONFIG})
    repo.git("checkout", "-q", "-b", "change")
    repo.commit(**{"a.yml": TENSOR})
    repo.git("checkout", "-q", "main")
    repo.commit(**{"b.yml": TENSOR})
    assert [one.path for one in repo.check("main", "change").configurations] == ["a.yml"]


def test_a_merge_commit_is_a_head_like_any_other(based):
    based.git("checkout", "-q", "-b", "change")
    based.commit(**{"a.yml": TENSOR})
    based.git("checkout", "-q", "main")
    based.commit(readme="x")
    based.git("merge", "-q", "--no-edit", "change")
    report = based.check("HEAD^1", "HEAD")
    assert [(one.path, one.status) for one in report.configurations] == [("a.yml", "modified")]


def test_nothing_of_the_repository_runs(repo, tmp_path):
    witness = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch '{witness}'\ncat \"$1\" 2>/dev/null\n")
    script.chmod(0o755)
    repo.commit(**{"a.yml": CONFIG, ".gitattributes": "*.yml diff=evil filter=evil\n"})
    repo.commit(**{"a.yml": TENSOR})
    settings = ("core.fsmonitor", "core.pager", "diff.external", "diff.evil.textconv", "diff.evil.command")
    for setting in (*settings, "filter.evil.smudge", "core.sshCommand", "core.editor"):
        repo.git("config", setting, str(script))
    hooks = repo.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        os.symlink(script, hooks / name)
    witness.unlink(missing_ok=True)
    assert repo.check("HEAD~1", "HEAD").configurations[0].path == "a.yml"
    assert not witness.exists()


def test_many_changed_files_are_looked_for_at_once(repo):
    repo.commit(**{"a.yml": "base_config: shared.yml\n", "b.yml": "base_config: other.yml\n"})
    names = tuple(f"{'x' * 80}-{number}.yml" for number in range(30_000))
    assert Repository(repo.folder).containing("HEAD", (*names, "shared.yml")) == ["a.yml"]


def test_settings_of_the_repository_do_not_change_what_is_read(repo):
    repo.commit(**{"shared.yml": CONFIG, "a.yml": "base_config: shared.yml\nrun_name: x\n"})
    repo.commit(**{"shared.yml": TENSOR})
    settings = {"color.ui": "always", "color.grep": "always", "grep.lineNumber": "true", "diff.renames": "false"}
    for setting, value in (settings | {"diff.noprefix": "true", "core.quotePath": "true"}).items():
        repo.git("config", setting, value)
    assert [one.path for one in repo.check("HEAD~1", "HEAD").configurations] == ["a.yml", "shared.yml"]


def test_a_hook_of_the_caller_does_not_redirect_git(based, tmp_path, monkeypatch):
    based.commit(**{"a.yml": TENSOR})
    other = Scratch(tmp_path / "other")
    other.commit(x="y")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert based.check("HEAD~1", "HEAD").configurations[0].path == "a.yml"
