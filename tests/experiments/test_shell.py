"""Shell scripts, read without running them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import UnreadError
from asap.experiments.shell import find_start, options, read_commands
from tests.cases import cases

ASSIGNMENTS = {"A=1": "1", "B='x y'": "x y", 'C="p=q"': "p=q", "D=$((2 * 3))": "6", "E=${U:-7}": "7", "F=a/b": "a/b"}
JOINTS = ["\n", "; ", " && ", "\nexport Z=1\n", " # a comment\n"]


def run(script: str, **known: str) -> list[str]:
    """Commands that a script comes to."""
    return [command.text for command in read_commands(script, known) if not command.assigns]


def echoed(script: str, word: str, **known: str) -> str:
    """What a word is at the end of a script."""
    return run(f"{script}\nprogram {word}\n", **known)[-1].removeprefix("program ")


@cases("script, word, value")
def test_what_a_variable_is_worth(script, word, value):
    assert echoed(script, word) == value


@cases("condition, branch")
def test_the_branch_that_its_variables_decide_is_taken(condition, branch):
    script = f"TP=4; PP=2; NAME=llama-8b\nif {condition}; then\n  A=then\nelse\n  A=else\nfi"
    assert echoed(script, "$A") == (branch or "$A")


def test_which_arm_of_a_case_is_taken_only_a_run_can_tell():
    assert echoed("A=2\nB=1\ncase $A in 1|2) B=3;; *) C=4;; esac", "$B $C") == "$B $C"


def test_a_test_decides_what_comes_after_it():
    script = '[ "$A" = 1 ] && B=yes || B=no\n[[ $A == 1 && $C == 1 ]] && D=1\n[ -e x ] || E=1'
    assert echoed(f"A=1\n{script}", "$B ${D:-} ${E:-0}") == "yes ${D:-} ${E:-0}"
    assert echoed(f"A=2\n{script}", "$B") == "no"


def test_what_may_be_added_stays_open():
    assert echoed("A='--a'\nif grep x y; then A=\"$A --b\"; fi", "$A") == "--a ${A}"
    commands = list(read_commands("if grep x y; then A+=' --b'; fi\nrun"))
    assert [command.certain for command in commands] == [True, False, True]


def test_options_have_their_words_and_lines():
    found = options("run --tensor-size=4 --names a 'b c' \n --flag --freq ([0]*3+[1]*5)", 7)
    assert [(option.name, option.words, option.line) for option in found] == [
        ("tensor_size", ("4",), 7), ("names", ("a", "b c"), 7), ("flag", (), 8), ("freq", ("[0]*3+[1]*5",), 8),
    ]  # fmt: skip


@given(st.text(alphabet="AB=\"'\\\n $({[]})-:;&|<#`E", max_size=120))
def test_any_text_is_read_line_by_line(script):
    assert all(1 <= command.line <= script.count("\n") + 1 for command in read_commands(script))


@given(st.permutations(sorted(ASSIGNMENTS)), st.lists(st.sampled_from(JOINTS), min_size=6, max_size=6))
def test_assignments_mean_the_same_in_any_order_and_form(texts, joints):
    script = "".join(text + joint for text, joint in zip(texts, joints, strict=True))
    names, values = [f"[${text[0]}]" for text in texts], [f"[{ASSIGNMENTS[text]}]" for text in texts]
    assert echoed(f"{script}\n", " ".join(names)) == " ".join(values)


@pytest.mark.parametrize(
    "script",
    [
        "A=" + "$(echo " * 20_000, "f() { f; }\nf\n", "f() {\n" * 5_000 + "f\n" * 2_000,
        "cat > a.sh <<E\nx\nE\n" * 2_000, "x " + "${A:-" * 5_000, "a | " * 25_000,
        f'A="{"--x 1 " * 9_000}"\n' + "program $A\n" * 2_000,
    ],
)  # fmt: skip
def test_a_long_hostile_script_ends(script):
    assert run(script) is not None


@pytest.mark.parametrize(("script", "said"), [
    ("A='" + "--x 1 " * 3_000 + "'\n" + "program $A\n" * 2_000, "more than 2,000,000 characters"),
    ("a=(\n" * 20_000, "no script that the grammar of bash reads in time"),
    ("".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }}\n" for n in range(30)) + "f0", "more than 2,000,000 characters"),
    ("<<E\n" * 20_000, "no script that the grammar of bash reads in time"),
    ("if true; then\n" * 3_000 + "fi\n" * 3_000, "within each other more than 150 deep"),
])  # fmt: skip
def test_what_comes_to_more_than_any_script_of_a_run_is_refused_by_name(script, said):
    with pytest.raises(UnreadError, match=said):
        run(script)


def test_a_file_that_nothing_runs_is_no_script():
    assert not any(text.startswith("program") for text in run("cat > notes.txt <<EOT\nprogram 1\nEOT\nrm notes.txt\n"))


def test_options_that_a_substitution_may_print_are_not_sure():
    commands = list(read_commands("run --a $( [ \"$UNSET\" = 3 ] && echo '--z 1' ) --b"))
    assert [(command.certain, "--z" in command.text) for command in commands] == [(False, True), (True, False)]


@cases("end")
def test_where_output_goes_is_no_argument(end):
    said = {option.name: option.words for option in options(f"train.py --prompt 'a > b' --lr 1 --bf16 {end}")}
    assert said == {"prompt": ("a > b",), "lr": ("1",), "bf16": ()}
    inner = {option.name: option.words for option in options(f"srun bash -c 'train.py --lr 1 --bf16 {end}'")}
    assert inner == {"lr": ("1",), "bf16": ()}


def test_options_of_sections():
    said = {
        option.name: option.words for option in options("x --fsdp.wrap=block --train.steps 3 --data.packed --seed.")
    }
    assert said == {"fsdp.wrap": ("block",), "train.steps": ("3",), "data.packed": (), "seed": (".",)}


def test_functions_are_read_where_they_are_called_and_their_arguments_stay_open():
    script = """
launch() {
  program --pp ${2:-1} --all "$@" --outer $A
}
never () { program --never; }
A=5
launch 4 2 --x 3 > log 2>&1
"""
    assert [text.split() for text in run(script) if text.startswith("program")] == [
        ["program", "--pp", "${2:-1}", "--all", "$@", "--outer", "5"],
        ["program", "--never"],
    ]
    parses = "f() { while [ $# -gt 0 ]; do A=$1; shift; done; }\nA=2\n{}\nwhile [ $# -gt 0 ]; do A=3; done"
    assert [echoed(parses.replace("{}", call), "$A") for call in ('f "$@"', "f 1")] == ["2", "$1"]
    assert echoed("f() { true; }\nf 1\nA=2\nwhile [ $# -gt 0 ]; do A=3; done", "$A") == "2"
    uncertain = list(read_commands("f() { program; }\nif grep x y; then f; fi"))
    assert [command.certain for command in uncertain if command.text == "program"] == [False]


def test_an_environment_is_in_the_order_of_the_script():
    names = [f"NCCL_{letter}" for letter in "QWERTZUIOP"]
    commands = list(read_commands("\n".join(f"export {name}=1" for name in names)))
    assert list(commands[-1].scope.environment()) == names


def test_a_start_is_found_after_many_other_scripts(tmp_path):
    for _ in range(2):
        found = find_start("A=1\ntorchrun a.py\n", tmp_path / "run.sh", lambda command: "torchrun" in command.text)
        assert [command.text for command in found.before] == ["A=1", "torchrun a.py"]
        for number in range(40):
            run(f"echo {number}")
