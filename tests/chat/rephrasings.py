"""Facts as engineers report them, and ten ways to ask for, wish or suppose each."""

REPORTS = (
    "proposal 1 took 4.1 s a step yesterday",
    "the second one ran out of memory on the pod",
    "MFU in the log was 38 %",
    "our batch is 512 sequences",
    "proposal 3 came out 9 % slower than the baseline",
)
_FORMS = (
    "did {}?",
    "is it true that {}?",
    "what if {}",
    "if {}, which one is next?",
    "suppose {}",
    "I hope {}",
    "I wish {}",
    "maybe {}",
    "why do you say {}?",
    "would it change anything if {}?",
)
REPHRASED = {report: tuple(form.format(report) for form in _FORMS) for report in REPORTS}
