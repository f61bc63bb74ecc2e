"""Reports rendered from the graph: JSON first, then HTML, CIF, tables and a bundle.

``autoxrd.report.build.write_report`` writes everything; it is not imported here, so that naming the input costs no
template engine.
"""

from autoxrd.report.model import FitArrays, JobInfo, ReportInput, StepRecord, Verdict

__all__ = ["FitArrays", "JobInfo", "ReportInput", "StepRecord", "Verdict"]
