"""Where a trial ends, and which of its steps the weights are taken from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.engine import State


@dataclass(frozen=True)
class Kept:
    """The learner at one step of a trial."""

    step: int
    quality: float
    state: State


class Stop(ABC):
    """Decides, look by look, which steps of a trial may turn out to be the one whose weights are taken."""

    def __init__(self) -> None:
        self.kept: list[Kept] = []  # the first is the one to take when the trial is over

    @abstractmethod
    def offer(self, step: int, quality: float, take: Callable[[], State]) -> None:
        """The next look; `take` gives the learner's state."""

    def over(self, step: int) -> bool:
        """Whether the trial ends here, before it has had all its steps."""
        return False

    def state(self) -> State:
        return [vars(kept) for kept in self.kept]

    def load(self, state: State) -> None:
        self.kept = [Kept(**kept) for kept in state]


class Best(Stop):
    """The first step of the highest quality. With `patience`, the trial ends when no look has been better for so many
    steps."""

    def __init__(self, patience: int | None = None) -> None:
        super().__init__()
        self.patience = patience

    def offer(self, step: int, quality: float, take: Callable[[], State]) -> None:
        if not self.kept or quality > self.kept[0].quality:
            self.kept = [Kept(step, quality, take())]

    def over(self, step: int) -> bool:
        return self.patience is not None and step - self.kept[0].step >= self.patience


class Last(Stop):
    """The last step."""

    def offer(self, step: int, quality: float, take: Callable[[], State]) -> None:
        self.kept = [Kept(step, quality, take())]


class Reach(Stop):
    """The first step whose quality reaches a share of the highest: argmin_t (q_t ≥ μ · max q).

    The highest is known only at the end, but the step is always one that was better than all before it, so few states
    are held: those of such steps that still reach the share.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def offer(self, step: int, quality: float, take: Callable[[], State]) -> None:
        if self.kept and quality <= self.kept[-1].quality:
            return
        self.kept = [k for k in self.kept if k.quality >= self.share * quality]
        self.kept.append(Kept(step, quality, take()))
