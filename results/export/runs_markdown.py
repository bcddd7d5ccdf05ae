from __future__ import annotations

from weighbridge.results.analysis.across_runs.runs_summary import RunsSummary
from weighbridge.results.analysis.words import verdict_words
from weighbridge.results.export.markdown_format import escape, markdown_file
from weighbridge.results.export.paper import effects_paper_of


def runs_markdown(summary: RunsSummary) -> str:
    """The answer, what is worse, what differs between the runs, and the table of all effects."""
    a, b, verdict = summary.a.manifest, summary.b.manifest, summary.verdict
    counts = verdict_words(summary.comparison)
    lines = [
        f"### {escape(verdict.answer or next(iter(counts), 'Nothing could be compared.'))}",
        "",
    ]
    lines += [f"- {escape(text)}" for text in verdict.details]
    lines += [f"- {escape(text)}" for text in counts if verdict.answer]
    lines += [f"- A: {escape(a.run_id)}, {escape(a.created_at)}, {a.state}"]
    lines += [f"- B: {escape(b.run_id)}, {escape(b.created_at)}, {b.state}"]
    lines += [f"- comparable in A and not in B: {escape(text)}" for text in summary.lost]
    lines += [
        f"- compared despite a difference: {escape(one.text)}" for one in summary.guarded.unlike
    ]
    lines += [f"- {escape(summary.drift_words)}", ""]
    if summary.guarded.differs:
        lines += ["<details><summary>What differs between the runs</summary>", ""]
        lines += [f"- {escape(one.text)}" for one in summary.guarded.differs]
        lines += ["", "</details>", ""]
    table = effects_paper_of((), summary.comparison, f"{b.run_id} compared with {a.run_id}")
    return "\n".join(lines) + "\n" + markdown_file(table).content.decode()
