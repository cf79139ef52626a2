"""Two analysed runs side by side: what was changed, and what became faster, slower, new or gone."""

from asap.reports.comparison.comparison import RunComparison, compare_studies

__all__ = ["RunComparison", "compare_studies"]
