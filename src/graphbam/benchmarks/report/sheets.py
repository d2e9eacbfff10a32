"""Tables as people read them, written as Markdown or as HTML; text is escaped in both."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Sequence
from typing import NamedTuple

DASH = "–"


class Field(NamedTuple):
    """One field of a table."""

    text: str
    value: float | None = None
    """What the column is sorted by; None: by the text."""
    is_bold: bool = False


@dataclasses.dataclass(frozen=True)
class Sheet:
    """A table with what a reader must know before reading it."""

    key: str
    """Anchor on the page."""
    title: str
    about: str
    """What it shows, and over how many trials."""
    command: str
    """What to type to get the same numbers."""
    head: tuple[str, ...]
    rows: Sequence[Sequence[Field]]

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.head) for row in self.rows), self.key


def number(value: float, digits: int = 3, sd: float = math.nan, *, mark: str = "", is_bold: bool = False) -> Field:
    """A number, perhaps with its standard deviation; numbers between −1 and 1 are written without the zero.

    Examples
    --------
    >>> number(0.8064, 3, 0.0213).text, number(12.0, 1).text, number(float("nan")).text
    ('.806 ± .021', '12.0', '–')
    """
    if math.isnan(value):
        return Field(DASH, math.nan)
    text = _trim(value, digits) + (f" ± {_trim(sd, digits)}" if not math.isnan(sd) else "")
    return Field(text + mark, float(value), is_bold)


def _trim(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def seconds(value: float, sd: float = math.nan, *, mark: str = "") -> Field:
    """A duration with two digits that count.

    Examples
    --------
    >>> [seconds(s).text for s in (0.0123, 0.46, 7.26, 148.0)]
    ['.012', '.46', '7.3', '148']
    """
    if math.isnan(value):
        return Field(DASH, math.nan)
    return number(value, max(0, 1 - math.floor(math.log10(max(value, 1e-4)))), sd, mark=mark)


# ── Markdown ────────────────────────────────────────────────────────────────────────────────────────────────


def to_markdown(sheet: Sheet, level: int = 3) -> str:
    """The table under its heading, with what it shows and the command.

    Examples
    --------
    >>> rows = [[Field("a|b"), Field(".9", 0.9, is_bold=True)]]
    >>> sheet = Sheet("t", "Scores", "One trial.", "make it", ("method", "AP"), rows)
    >>> print(to_markdown(sheet))
    ### Scores
    <BLANKLINE>
    One trial.
    <BLANKLINE>
        make it
    <BLANKLINE>
    | method | AP |
    |---|---:|
    | a\\|b | **.9** |
    <BLANKLINE>
    >>> print(to_markdown(Sheet("t", "What failed", "Fits without an answer.", "make it", ("method", "AP"), [])))
    ### What failed
    <BLANKLINE>
    Fits without an answer.
    <BLANKLINE>
    There is nothing to list.
    <BLANKLINE>
    """
    lines = [f"{'#' * level} {escape_markdown(sheet.title)}", "", escape_markdown(sheet.about), ""]
    if not sheet.rows:
        return "\n".join([*lines, "There is nothing to list.", ""])
    lines += [*(f"    {line}" for line in sheet.command.splitlines()), ""]
    lines += ["| " + " | ".join(map(escape_markdown, sheet.head)) + " |"]
    lines += ["|" + "|".join("---:" if is_number else "---" for is_number in number_columns(sheet)) + "|"]
    for row in sheet.rows:
        fields = [f"**{escape_markdown(e.text)}**" if e.is_bold else escape_markdown(e.text) for e in row]
        lines.append("| " + " | ".join(fields) + " |")
    return "\n".join(lines) + "\n"


def escape_markdown(text: str) -> str:
    r"""Keep text from becoming markup: columns, emphasis, links and HTML.

    Examples
    --------
    >>> print(escape_markdown("a|b <i> my_file"))
    a\|b &lt;i&gt; my\_file
    """
    text = html.escape(" ".join(text.split()), quote=False)
    for letter in "\\`*_[]|":
        text = text.replace(letter, "\\" + letter)
    return text


def number_columns(sheet: Sheet) -> list[bool]:
    """Which columns hold numbers: those in which some field has a value to sort by."""
    return [any(row[place].value is not None for row in sheet.rows) for place in range(len(sheet.head))]


# ── HTML ────────────────────────────────────────────────────────────────────────────────────────────────────


def to_html(sheet: Sheet) -> str:
    """A sortable table with what it shows and the command above it."""
    is_number = number_columns(sheet)
    head = "".join(
        f'<th scope="col"{_class(wide)}><button type="button">{html.escape(name)}</button></th>'
        for name, wide in zip(sheet.head, is_number, strict=True)
    )
    body = "\n".join(_row_to_html(row, is_number) for row in sheet.rows)
    return (
        f'<p class="about">{html.escape(sheet.about)}</p>\n'
        f'<pre class="command"><code>{html.escape(sheet.command)}</code></pre>\n'
        f'<div class="scroll"><table id="{html.escape(sheet.key)}">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>\n"
    )


def _row_to_html(row: Sequence[Field], is_number: list[bool]) -> str:
    fields = []
    for entry, wide in zip(row, is_number, strict=True):
        text = f"<b>{html.escape(entry.text)}</b>" if entry.is_bold else html.escape(entry.text)
        value = "" if entry.value is None or math.isnan(entry.value) else f' data-value="{entry.value:.9g}"'
        fields.append(f"<td{_class(wide)}{value}>{text}</td>")
    opening = '<tr class="ours">' if row[0].is_bold else "<tr>"
    return opening + "".join(fields) + "</tr>"


def _class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""
