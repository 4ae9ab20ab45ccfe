"""As PILOT computes them (trainer.py, utils/toolkit.py): as PyCIL, which it comes from.

Its columns are the tasks. It prints forgetting where `print_forget` is set.
"""

from __future__ import annotations

from holdfast.metrics.formulas import pycil

FORMULAS = pycil.FORMULAS
