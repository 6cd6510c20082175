"""The page: all figures, tables and verdicts in one HTML file that opens without a network."""

from __future__ import annotations

import base64
import datetime
import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from .._version import __version__
from ..io import written_in_place
from .claims import HOLDS, UNTESTED, Claim

_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1b1b1b; max-width: 1180px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem; } h2 { font-size: 1.25rem; margin-top: 2.4rem; }
figure { margin: 1.2rem 0 2rem; } figure img { width: 100%; height: auto; border: 1px solid #ddd; }
figcaption { color: #444; margin-top: 0.3rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.93rem; } tr { border-bottom: 1px solid #e2e2e2; }
td, th { text-align: left; padding: 0.4rem 0.9rem 0.4rem 0; vertical-align: top; }
.verdict { display: inline-block; padding: 0.1rem 0.6rem; border-radius: 0.3rem; color: #fff; background: #8a4b00; }
.verdict.holds { background: #00663f; } .verdict.not { background: #9c1c1c; } .verdict.untested { background: #666; }
.banner { background: #fff3cd; border: 1px solid #d9b53a; padding: 0.6rem 0.9rem; } .faint { color: #666; }
details { margin: 0.5rem 0; } details table { font-size: 0.82rem; font-variant-numeric: tabular-nums; }
"""


class Page:
    """Collects the parts; everything is escaped."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.parts: list[str] = [f"<h1>{html.escape(title)}</h1>"]

    def section(self, text: str) -> None:
        """Begin a section."""
        self.parts.append(f"<h2>{html.escape(text)}</h2>")

    def paragraph(self, text: str, css: str = "") -> None:
        """Add a paragraph."""
        self.parts.append(f'<p class="{css}">{html.escape(text)}</p>' if css else f"<p>{html.escape(text)}</p>")

    def items(self, texts: Iterable[str]) -> None:
        """Add a list."""
        self.parts.append("<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in texts) + "</ul>")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]], folded: str = "") -> None:
        """Add a table; with `folded`, under a heading that opens it."""
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        self.parts.append(f"<details><summary>{html.escape(folded)}</summary>{table}</details>" if folded else table)

    def claims(self, claims: Sequence[Claim]) -> None:
        """Add the table of verdicts."""
        rows = []
        for claim in claims:
            rows.append(
                f"<tr id='{html.escape(claim.id)}'><td>{html.escape(claim.claim)}"
                f"<br><span class='faint'>{html.escape(claim.where)}</span></td>"
                f"<td><span class='verdict {_css(claim.verdict)}'>{html.escape(claim.verdict)}</span></td>"
                f"<td>{html.escape(claim.sentence)}<br><span class='faint'>Rule: {html.escape(claim.rule)}</span></td></tr>"
            )
        head = "<thead><tr><th>claim</th><th>verdict</th><th>measured</th></tr></thead>"
        self.parts.append(f"<table>{head}<tbody>{''.join(rows)}</tbody></table>")

    def figure(self, folder: Path, name: str, caption: str) -> None:
        """Add a figure, as SVG inside the page."""
        picture = base64.b64encode((folder / f"{name}.svg").read_bytes()).decode()
        text = html.escape(caption)
        self.parts.append(
            f"<figure><img alt='{text}' src='data:image/svg+xml;base64,{picture}'><figcaption>{text} "
            f"<span class='faint'>(figures/{html.escape(name)}.png, .svg)</span></figcaption></figure>"
        )

    def write(self, path: Path) -> None:
        """Write the file."""
        text = (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
            f"<title>{html.escape(self.title)}</title><style>{_STYLE}</style></head>\n<body>\n"
            + "\n".join(self.parts)
            + f'\n<p class="faint">Written by dualfree {__version__} on {datetime.date.today():%d %B %Y}.</p>\n</body></html>\n'
        )
        with written_in_place(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _css(verdict: str) -> str:
    if verdict == HOLDS:
        return "holds"
    if verdict == UNTESTED:
        return "untested"
    return "not" if "does not hold" in verdict or verdict.startswith("not") else "part"
