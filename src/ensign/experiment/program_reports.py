"""Reports in which programs say how fast they are, as they are asked of the meter. Pure."""

from __future__ import annotations

from ensign.host.regular_file import read_json
from ensign.meter.requests import Report
from ensign.model.errors import CommandFailed
from ensign.model.quoting import quoted
from ensign.model.trials import NamedScore
from ensign.workloads.kind import PrintedReport, ReportText


def report_of(text: ReportText | PrintedReport) -> Report:
    """The file that is read, or what is printed, and by whom."""
    if isinstance(text, PrintedReport):
        return Report(None, text.scores)

    def read(said: str) -> tuple[NamedScore, ...]:
        try:
            return text.scores(read_json(said))
        except ValueError as error:
            raise CommandFailed(f"its report is no JSON: {quoted(str(error))[1:-1]}") from None

    return Report(text.file, read)
