"""Hard attention to the task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Net, Optimiser, cross_entropy
from holdfast.engine.layout import channels_last
from holdfast.methods._by_task import ByTask
from holdfast.methods._gates import Gated, freeze_used, used, widened
from holdfast.seeds import seeded
from holdfast.settings import NonNegative, Positive
from holdfast.types import Batch, Lesson, StreamInfo

STEEP = 50.0  # |s e| beyond which the sigmoid counts as flat
FAR = 6.0  # |e| at most, so that a unit can still be had back


@final
@dataclass
class HAT(ByTask):
    """Hard attention to the task (Serrà et al., 2018): each task learns which units it uses; outputs are its own.

        h ← h ⊙ a^t,   a^t = σ(s e^t),   s = 1/s_max + (s_max − 1/s_max) (b − 1)/(B − 1)   at batch b of B of a pass
        L = CE + λ Σ a^t (1 − A) / Σ (1 − A),   A = max_{k<t} a^k
        g_ij ← (1 − min(A_i, A_j)) g_ij,   q ← q · s_max (cosh(s e) + 1) / (s (cosh(e) + 1)),   |e| ≤ 6

    g is the gradient of a weight from unit j to unit i (of a bias: 1 − A_i), q that of an embedding. Units are gated
    behind activation and dropout, maps of a convolution as one, in `ctrl_resnet` also within blocks. Weights of norms
    are blocked as biases are, and every task keeps batch statistics of its own.

    Departure: with `hard` the masks of predictions and of A are e > 0, which σ(s_max e) comes near: what is blocked is
    then frozen, for any optimiser and weight decay, and old predictions never change by a bit. Without it, as Serrà et
    al. have it, they change where units have |e| < 0.3 at s_max = 400, and where an optimiser has momentum.

    >>> import holdfast as hf
    >>> record = hf.run("hat", hf.stream("split", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.bwt
    0.0
    """

    strength: NonNegative = 0.75  # λ: how dear units are that no task has used
    steepest: Positive = 400.0  # s_max
    width: Positive = 1.0  # hidden units, as multiples of the network's (HAT-wide of paper 000: 2.5 to 4)
    hard: bool = True  # masks of predictions, and of what is blocked, are 0 or 1

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        """The first task begins with the network as it was given, unless it is to be wider."""
        make = net.build if self.width == 1 else partial(widened, net.build, self.width)
        with seeded(int(torch.randint(2**62, (), generator=rng))):
            gated = Gated(net.module if self.width == 1 else make(), make).to(net.device)
        super().start(Net(gated), optimiser, info, rng)
        self.used = [torch.zeros(n, device=net.device) for n in gated.sizes]  # A
        self.statistics: dict[str, dict[str, Tensor]] = {}  # of norms, by part
        self.batches, self.step = 1, 0  # B, and steps done

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        whole = -(-plan.steps // max(plan.epochs, 1)) if train is None else -(-len(train) // plan.batch)
        self.batches, self.step = max(whole, 1), 0  # of a pass, also where the last one is cut short
        super().begin(train, plan)

    def observe(self, batch: Batch) -> Tensor:
        part = f"task{batch.task}"
        self._open(part)
        s = anneal(self.step % self.batches, self.batches, self.steepest)
        embeddings = self.embeddings(part)
        masks = [torch.sigmoid(s * e) for e in embeddings]
        loss = cross_entropy(self.net(batch.x, part, masks), batch.y, self.allowed(batch.task))
        self.backward(loss + self.strength * crowd(masks, self.used))
        self.block()
        for e in embeddings:
            compensate(e, s, self.steepest)
        self.optimiser.step(self.net)
        for e in embeddings:
            e.data.clamp_(-FAR, FAR)
        self.step += 1
        return loss.detach()

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        part, module = f"task{task}", self.net.module
        if part not in self.parts():
            return super().predict(x, task)
        with self.net.evaluating():
            if not any(True for _ in module.buffers()):
                return self.net(x, part, self.masks(part))
            return torch.func.functional_call(  # type: ignore[no-any-return]
                module, self.statistics.get(part, {}), (channels_last(x), part, self.masks(part))
            )

    def leave(self, part: str) -> None:
        """What the task used is blocked from now on; what is blocked wholly is frozen."""
        self.statistics[part] = {name: b.detach().clone() for name, b in self.net.module.named_buffers()}
        self.used = [torch.maximum(A, a) for A, a in zip(self.used, self.masks(part), strict=True)]
        self.net.freeze(part)
        freeze_used(self.net, self._gated().wires, self.used)

    def block(self) -> None:
        """g ← (1 − min(A_i, A_j)) g. Hard masks leave nothing to do: what they block is frozen."""
        if not self.hard:
            for wire in self._gated().wires:
                for p, a in used(wire, self.used):
                    if p.grad is not None:
                        p.grad.mul_(1 - a)

    def embeddings(self, part: str) -> list[Tensor]:
        return list(self.net.module.parts[part].embeddings)  # type: ignore[union-attr,index,arg-type]

    def masks(self, part: str) -> list[Tensor]:
        """Of predictions."""
        each = [e.detach() for e in self.embeddings(part)]
        return [(e > 0).float() if self.hard else torch.sigmoid(self.steepest * e) for e in each]

    def numbers_kept(self, tasks: int) -> int:
        """Embeddings and outputs of every task are in the network; batch statistics are kept for each."""
        each = sum(b.numel() for b in self.net.module.buffers())
        return self.weight_count() + each * len(self.parts())

    def _gated(self) -> Gated:
        assert isinstance(self.net.module, Gated)
        return self.net.module


def anneal(b: int, batches: int, steepest: float) -> float:
    """s at batch b, from 0, of so many. A pass of one batch has s_max."""
    low = 1 / steepest
    return steepest if batches == 1 else low + (steepest - low) * b / (batches - 1)


def crowd(masks: list[Tensor], used: list[Tensor]) -> Tensor:
    """Σ a (1 − A) / Σ (1 − A): the share of free units that is taken."""
    a, free = torch.cat(masks), 1 - torch.cat(used)
    return (a * free).sum() / free.sum().clamp(min=1e-6)


def compensate(e: Tensor, s: float, steepest: float) -> None:
    """The gradient of an embedding as if the sigmoid were not steep."""
    with torch.no_grad():
        if e.grad is not None:
            e.grad *= steepest / s * (torch.cosh((s * e).clamp(-STEEP, STEEP)) + 1) / (torch.cosh(e) + 1)
