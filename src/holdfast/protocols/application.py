"""Models are chosen on the first task; each later one is learned to its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from holdfast.protocols._study import Study
from holdfast.settings import Count, Whole


@final
@dataclass(frozen=True)
class Application(Study):
    """The application-oriented evaluation (Pfülb & Gepperth, 2019, paper 003, Alg. 1), on two tasks or more.

        p* = argmax_p max_t q(p, t) on D1;   ε₂* = argmax_ε₂ max_t q(p*, ε₂, t) on D2
        best = max_t q(p*, ε₂*, t) on D1 ∪ D2,   last = q(p*, ε₂*, t_max) on D1 ∪ D2

    The result is `last`. `best` needs the data of D1 and is reported beside it, as is Ω_all, `best` over the accuracy
    of the same model trained on all tasks at once. Of a method that merges networks (IMM) the merged one is the result,
    and its accuracy over the balancing weight α is noted.
    """

    steps: Count | None = None  # mini-batches per task; none: as many as the epochs have
    at_once: bool = True  # also train the chosen network on all tasks at once
    alphas: Whole = 100  # of a method that merges networks: also try so many steps of α from 0 to 1
