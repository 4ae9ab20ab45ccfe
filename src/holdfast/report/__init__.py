"""Records as people read them: an HTML page, a terminal table, a LaTeX table."""

from holdfast.report.advice import advice_in
from holdfast.report.html import html, write
from holdfast.report.latex import latex, reproduced
from holdfast.report.reproduction import Reproduction, names_in
from holdfast.report.text import text

__all__ = ["Reproduction", "advice_in", "html", "latex", "names_in", "reproduced", "text", "write"]
