"""Facts as engineers report them, and ten ways to ask for, wish or suppose each."""

from tests.cases import kept

KEPT = kept(__file__)
REPORTS = tuple(KEPT["REPORTS"])
_FORMS = tuple(KEPT["_FORMS"])
REPHRASED = {report: tuple(form.format(report) for form in _FORMS) for report in REPORTS}
