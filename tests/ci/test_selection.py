import os

import pytest
from ci_scratch import CONFIG, TENSOR, Scratch

from asap.ci.check import Options
from asap.ci.source.selection import changed_lines

pytestmark = pytest.mark.process

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)


def statuses(report):
    return {one.path: one.status for one in report.configurations}


def only(report):
    assert len(report.configurations) == 1
    return report.configurations[0]


def test_a_renamed_configuration_is_compared_with_its_old_self(repo):
    repo.commit(**{"configs/old.yml": CONFIG})
    repo.git("mv", "configs/old.yml", "configs/new.yml")
    repo.commit(**{"configs/new.yml": CONFIG.replace("batch_size: 2", "batch_size: 4")})
    one = only(repo.check("HEAD~1", "HEAD"))
    assert (one.status, one.path, one.previous_path) == ("renamed", "configs/new.yml", "configs/old.yml")
    assert [change.what for change in one.changes] == ["batch", "per_device_batch_size"]


def test_a_configuration_that_only_moved_says_nothing(repo):
    repo.commit(**{"configs/old.yml": CONFIG})
    repo.git("mv", "configs/old.yml", "configs/new.yml")
    assert repo.change().configurations == ()


def test_a_deleted_configuration_has_no_after_and_no_finding(based):
    based.git("rm", "-q", "a.yml")
    report = based.change()
    one = only(report)
    assert (one.status, one.after) == ("deleted", None)
    assert one.before is not None
    assert report.findings == ()


def test_an_added_configuration_has_no_before(repo):
    repo.commit(readme="x")
    one = only(repo.change(**{"a.yml": CONFIG}))
    assert (one.status, one.before) == ("added", None)
    assert one.suggestions


@pytest.mark.parametrize("path", ["a folder/my config.yml", "odd\nname.yml", "tab\there.yml", "-rf.yml", "ü[*]?.yml"])
def test_odd_paths_are_read_and_shown_on_one_line(repo, path):
    repo.commit(**{path: CONFIG})
    one = only(repo.change(**{path: TENSOR}))
    assert one.after.problem is None
    assert "\n" not in one.path
    assert "\t" not in one.path


def test_a_path_that_is_not_utf8_is_read(repo):
    name = os.fsdecode(b"caf\xe9.yml")
    repo.commit(**{name: CONFIG})
    one = only(repo.change(**{name: TENSOR}))
    assert one.path.startswith("caf")
    assert one.model_dump_json()


def test_a_submodule_is_not_entered(repo, tmp_path):
    other = Scratch(tmp_path / "other")
    other.commit(**{"a.yml": CONFIG})
    repo.commit(readme="x")
    repo.git("submodule", "--quiet", "add", str(other.folder), "sub.yml")
    report = repo.change(options=Options(configurations=("*.yml",)))
    assert "not followed" in only(report).after.problem


def test_a_symbolic_link_is_not_followed(repo, tmp_path):
    secret = tmp_path / "secret.yml"
    secret.write_text(CONFIG.replace("llama70", "SECRET"))
    repo.commit(**{"a.yml": CONFIG})
    (repo.folder / "a.yml").unlink()
    os.symlink(secret, repo.folder / "a.yml")
    report = repo.change()
    assert "symbolic link" in only(report).after.problem
    assert "SECRET" not in report.to_json()


@pytest.mark.parametrize(("content", "reason"), [
    (CONFIG + BOMB, "aliases"), (CONFIG + "x: &anchor [*anchor]\n", "aliases"),
    (CONFIG + "run_name: again\n", "given twice"), (CONFIG + "# " + "x" * 10_000_000, "larger than"),
    (CONFIG + "a: !!python/object/apply:os.system ['id']\n", "tag"), (CONFIG + "x: [" * 200, "nested too deeply"),
    (CONFIG + "ici_fsdp_paralelism: 4\n", "did you mean ici_fsdp_parallelism"),
    (CONFIG.encode() + b"\x00\xff\xfe", "UTF-8"), ("- 1\n- 2\n", "no configuration"), ("", "is empty"),
])  # fmt: skip
def test_what_cannot_be_read_is_one_line_and_fails(based, content, reason):
    report = based.change(**{"a.yml": content})
    assert reason in only(report).after.problem
    assert [finding.rule for finding in report.findings] == ["invalid"]
    assert len(report.to_json()) < 20_000


def test_a_binary_file_with_a_yaml_name_is_told_only_where_it_was_asked_for(repo):
    repo.commit(readme="x")
    repo.commit(**{"a.yml": os.urandom(2000)})
    assert repo.check("HEAD~1", "HEAD").configurations == ()
    assert only(repo.check("HEAD~1", "HEAD", Options(configurations=("*.yml",)))).after.problem


def test_files_that_are_no_configurations_say_nothing(repo):
    repo.commit(**{".github/workflows/ci.yml": "on: push\njobs: {}\n", "package.json": "{}"})
    files = {".github/workflows/ci.yml": "name: x\non: push\njobs: {}\n", "package.json": '{"name": "x"}', "x.sh": "ls"}
    assert repo.change(**files).configurations == ()


def test_a_changed_base_config_reaches_all_that_include_it(repo):
    lines = [line for line in CONFIG.splitlines() if "base_config" not in line]
    shared = "\n".join(line for line in lines if "fsdp" in line or "length" in line or "model_name" in line)
    own = "base_config: {}\nrun_name: x\ncompile_topology: v5p-512\nper_device_batch_size: 2\n"
    files = {"configs/shared.yml": shared, "configs/a.yml": own.format("shared.yml")}
    files |= {"configs/deep/b.yml": own.format("shared.yml"), "configs/c.yml": own.format("a.yml"), "d.yml": CONFIG}
    repo.commit(**files)
    new = shared.replace("ici_fsdp_parallelism: 256", "ici_fsdp_parallelism: 128\nici_tensor_parallelism: 2")
    report = repo.change(**{"configs/shared.yml": new})
    found = statuses(report)
    assert found == {
        "configs/shared.yml": "modified", "configs/a.yml": "affected", "configs/c.yml": "affected",
        "configs/deep/b.yml": "affected",
    }  # fmt: skip
    plans = {one.path: one.after.plan for one in report.configurations}
    assert all(plans[path].startswith("data=128 model=2") for path in plans if path != "configs/shared.yml")


def test_a_changed_model_file_reaches_the_configurations_that_name_it(repo):
    shapes = "base_emb_dim: 4096\nbase_num_decoder_layers: {}\nbase_mlp_dim: 14336\n"
    names = CONFIG.replace("model_name: llama3.1-70b", "model_name: 'acme'")
    assert names != CONFIG
    script = "python3 -m MaxText.train base.yml model_name=acme steps=5\n"
    files = {"configs/a.yml": names, "configs/b.yml": CONFIG, "run.sh": script}
    repo.commit(**files, **{"configs/models/acme.yml": shapes.format(32)})
    report = repo.change(**{"configs/models/acme.yml": shapes.format(40)})
    found = {one.path: one.status for one in report.configurations}
    assert (found["configs/a.yml"], found["run.sh"]) == ("affected", "affected")
    assert "configs/b.yml" not in found


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("a.yml", "/etc/hostname"), ("a.yml", "../../../../etc/hostname"), ("a.yml", "../outside.yml"),
        ("a.yml", "x" * 5000), ("configs/a/b/c/d/e/f/a.yml", "../../../../../..{outside}"),
    ],
    ids=["absolute", "up to a file of the system", "beside the repository", "endless", "by the folder configs"],
)  # fmt: skip
def test_a_base_config_outside_of_the_repository_is_not_read(repo, path, base, tmp_path):
    (tmp_path / "outside.yml").write_text("run_name: SECRET\n")
    repo.commit(readme="x")
    report = repo.change(**{path: CONFIG.replace("base.yml", base.format(outside=tmp_path / "outside.yml"))})
    assert "outside the repository" in only(report).after.problem
    assert "SECRET" not in report.to_json()


def test_a_tree_with_a_path_that_leads_out_writes_nothing_there(repo):
    repo.commit(readme="x")
    repo.write("a.yml", CONFIG)
    blob = repo.git("hash-object", "-w", "a.yml")
    tree = repo.make_tree(f"100644 blob {blob}\ta.yml")
    for _ in range(4):
        tree = repo.make_tree(f"040000 tree {tree}\t..")
    head = repo.git("commit-tree", tree, "-p", "HEAD", "-m", "evil")
    assert [one.path for one in repo.check("HEAD", head).configurations] == []


def test_a_name_too_long_for_a_file_is_one_line(repo):
    repo.commit(readme="x")
    repo.write("a.yml", CONFIG)
    blob = repo.git("hash-object", "-w", "a.yml")
    tree = repo.make_tree(f"100644 blob {blob}\t{'x' * 300}.yml")
    head = repo.git("commit-tree", tree, "-p", "HEAD", "-m", "long")
    assert "cannot be checked out under this name" in only(repo.check("HEAD", head)).after.problem


def test_a_huge_file_is_not_compared_line_by_line():
    assert changed_lines("a\n" * 400_000, "b\na\n" * 300_000) == [1]


def test_a_base_config_comes_from_its_own_commit(repo):
    own = CONFIG.replace("base.yml", "shared.yml").replace("remat_policy: full\n", "")
    repo.commit(**{"shared.yml": "remat_policy: full\nsteps: 5\nenable_checkpointing: true\n", "a.yml": own})
    head = repo.commit(**{"shared.yml": "remat_policy: minimal\nsteps: 5\nenable_checkpointing: true\n"})
    repo.write("shared.yml", "remat_policy: save_out_proj\n")
    one = next(one for one in repo.check("HEAD~1", head).configurations if one.path == "a.yml")
    assert "remat=full" in one.before.plan
    assert "remat=minimal" in one.after.plan


def test_ignored_paths_are_not_looked_at(repo):
    repo.commit(**{"asap.toml": '[ci]\nignore = ["old/**"]\n', "old/a.yml": CONFIG, "a.yml": CONFIG})
    assert statuses(repo.change(**{"old/a.yml": TENSOR, "a.yml": TENSOR})) == {"a.yml": "modified"}


def test_changed_lines_are_those_of_the_new_text():
    assert changed_lines("a\nb\nc\n", "a\nx\ny\nc\n") == [2, 3]
    assert changed_lines(None, "a\nb\n") == [1, 2]
    assert changed_lines("a\nb\n", "a\n") == [1]


def test_the_file_of_a_model_comes_from_its_own_commit(repo):
    shapes = (
        "base_emb_dim: 1024\nbase_num_query_heads: 8\nbase_num_kv_heads: 8\nbase_mlp_dim: 4096\n"
        "base_num_decoder_layers: {}\nvocab_size: 32000\n"
    )
    run = "base_config: base.yml\nmodel_name: acme\ncompile_topology: v5e-16\nper_device_batch_size: {}\n"
    model, path = "configs/models/acme.yml", "configs/run.yml"
    repo.commit(**{model: shapes.format(8), path: run.format(2)})
    report = repo.change(**{model: shapes.format(12), path: run.format(4)})
    one = next(found for found in report.configurations if found.path == path)
    assert one.status == "modified"
    assert [change.what for change in one.changes] == ["batch", "model layers", "per_device_batch_size"]
