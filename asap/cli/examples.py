"""What to type for each command: shown under its ``--help``, and on the page of commands."""

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "analyze": (
        ("asap analyze train.log --hardware h100-64", "a training log that has its settings"),
        ("asap analyze train.yml --hardware v5e-256", "a configuration or launch script, then its overrides"),
        ('asap analyze LOG_DIR --plan "data=2 seq=2 model=2"', "a profile: log directory, run folder or *.xplane.pb"),
        ("asap analyze llama-8b-tensor-16", "a bundled run that is laid out badly"),
        (
            "asap analyze config.json workload.framework=MaxText --hardware h100-32 --batch 256 --sequence 8192",
            "nothing runs yet",
        ),
        ("asap analyze mine --llm gemini-2.5-flash --max-cost 0.50", "with a language model"),
    ),
    "resolve": (
        ("asap resolve train.log", "what the log settles, and where each value comes from"),
        ("asap resolve -- ./train.sh", "what a script would start; asks before it runs it"),
    ),
    "profile": (
        ("asap profile kpis LOG_DIR", "step time, duty cycle, communication, idle, input"),
        ("asap profile ops LOG_DIR", "operations by time, totals by category and module"),
        ("asap profile roofline LOG_DIR", "what each operation would save on the roofline"),
    ),
    "trace": (
        ("asap trace replay rank*.json.gz", "what waits for what, stragglers, critical path"),
        ("asap trace what-if rank0.json.gz scale:all-reduce=0.5", "the step with collectives of half the time"),
    ),
    "chat": (
        ("asap chat mine", "? lists what can be asked"),
        ("asap chat train.log --hardware h100-64", "analyses the run first"),
        ('echo "why not model=8" | asap chat mine', "one answer, for a pipe"),
    ),
    "predict": (
        ("asap predict train.yml --hardware v5e-64", "every valid plan, fastest first"),
        ('asap predict mine --plan "data=128 model=4"', "one plan"),
    ),
    "compare": (("asap compare before after", "plan, KPIs, operations, prediction"),),
    "verify": (
        ("asap verify mine --proposal 1", "compiled for TPUs, without one (extra tpu)"),
        ('asap verify mine --plan "data=64 model=4"', ""),
        ("asap verify mine --maxtext --python ~/maxtext/.venv/bin/python", "MaxText's own step"),
    ),
    "optimize": (
        ("asap optimize mine", "by the model alone, in a second"),
        ("asap optimize mine --evaluate run --command './train.sh {overrides}' --budget 8", "by short runs of yours"),
    ),
    "report": (("asap report mine --html report.html", "one page with charts (extra html)"),),
    "mcp": (("asap mcp", "for the configuration of an MCP client"),),
    "ci": (
        ("asap ci --base origin/main", "effect on step time, HBM and cost"),
        ("asap ci init --action OWNER/REPOSITORY@COMMIT", "writes the GitHub workflows"),
    ),
    "doctor": (("asap doctor", "what is missing, and how to get it"),),
    "experiments": (
        ("asap experiments add mine --config train.yml --hardware v5e-256", ""),
        ("asap experiments show mine", "--all: every value and its source"),
    ),
    "config": (("asap config show", "each setting and where it comes from"),),
    "map": (
        ("asap map write mine", "the plan as a program"),
        ("asap map check mine.map --experiment mine", "each mistake with line, reason and repair"),
    ),
    "history": (
        ('asap history search "less tensor parallelism" --chip v5e', ""),
        ("asap history record BEFORE AFTER", "adds yours, from two experiments"),
    ),
    "knowledge": (('asap knowledge search "all-reduce on the critical path"', ""),),
    "accuracy": (
        ("asap accuracy ledger", "predictions of earlier sessions, and what came of them"),
        ("asap accuracy calibrate --with history", "your own runs narrow later predictions"),
    ),
    "llm": (("asap llm cost", "calls, tokens and cost of each session"),),
    "sessions": (
        ("asap sessions list", ""),
        ("asap sessions replay SESSION", "runs it again offline, and compares"),
    ),
}
"""Command → lines, each with what it is for."""


def examples(command: str) -> list[str]:
    """The lines of a command, with comments in one column where the lines are short."""
    width = max((len(line) for line, _ in EXAMPLES[command] if len(line) <= 60), default=0)
    return [f"{line.ljust(width)}   # {why}" if why else line for line, why in EXAMPLES[command]]
