"""MNTDP-D: each task takes the best of the paths that branch off its nearest past path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import cross_entropy
from holdfast.methods._base import Option, Rung
from holdfast.methods._halving import MARGINS, RUNGS, Racer, probes, survivors
from holdfast.methods._library import Modular, Path, Trunk
from holdfast.settings import Count, NonNegative
from holdfast.types import Batch

DUST = 1e-9  # accuracies differ by less only in how they were rounded


@final
@dataclass
class MNTDP(Modular):
    """Modular networks with a task-driven prior, deterministic (Veniat, Denoyer & Ranzato, 2021, paper 000, Alg. 2).

        j* = argmax_j k-NN(features of f_j),   π_d = (π_j*[1..d], new modules d+1..L),   d = 0, ..., L
        θ_d = argmin CE(new modules of π_d),   d* = argmax_d accuracy of π_d on the validation rows

    What is reused is a fixed function, its batch statistics included, and no gradient goes below the first new module;
    d = L is the past network itself. So nothing is forgotten, and a path that is reused costs nothing. Protocols that
    choose (`crossval`) try the paths side by side: one forward pass of what is reused serves all of them. Under others
    there is nothing to choose by, and every task has a network of its own. The network must be a stack of modules:
    `mlp`, `conv`, `ctrl_resnet`, `alexnet`.

    >>> import holdfast as hf
    >>> stream = hf.stream("split", tasks=2, examples=50, val=0.2, scenario="task", seed=0)
    >>> record = hf.run("mntdp", stream, protocol=hf.protocol("crossval", lr=(0.01,), decay=(0,), epochs=2), seed=0)
    >>> record.bwt, [row["path"] for row in record.study["paths"]][0]
    (0.0, [0, 0, 0])
    """

    search: Literal["all", "halving"] = "all"  # all paths to the end, as in the paper; halving: ours, see `_halving`
    nearest_paths: Count | None = 1  # past paths from which new ones branch off, the nearest; none: all
    neighbours: Count = 5  # of the k-NN classifier
    prior: Literal["nearest", "random"] = "nearest"  # by which past paths are taken; random: the paper's ablation
    ties: Literal["reuse", "new"] = "reuse"  # of equally good paths the one with the most old, or new, modules
    thrift: NonNegative = 0.0  # accuracy that a path may lack and still be taken, where it has fewer new weights

    abreast = True

    def options(self, train: Lease) -> Sequence[Option | Rung]:
        """The paths, of which the first of the best is taken. The past networks themselves have nothing to learn."""
        if not self.paths:
            return [_written(self.path)]
        self.draw()
        candidates = self._candidates(self.nearest(train, self.nearest_paths))
        steps = RUNGS[0] if self.search == "halving" else 1.0
        trunks = {_written(path): self._reusing(path)[: self.layers - 1] for path in candidates}
        self.probes = probes(self, train, trunks) if self.search == "halving" else {}
        return [Rung(_written(path), steps if self.task in path else 1) for path in candidates]

    def more_options(self, train: Lease, tried: Sequence[tuple[Option | Rung, float]]) -> Sequence[Option | Rung]:
        """Halving: those that may still turn out to be the best go on to the next rung."""
        found = {str(rung.option): (rung.steps, worth) for rung, worth in tried if isinstance(rung, Rung)}
        last = max((steps for steps, _ in found.values() if isinstance(steps, float)), default=1.0)
        if last == 1.0:
            return []
        racing = [
            Racer(name, worth, self.probes[name], self._to_learn(name), self._reusing(_read(name)))
            for name, (steps, worth) in found.items()
            if steps == last and worth >= 0  # else it has failed
        ]
        best = max(worth for _, worth in found.values())
        left = survivors(racing, best - self.thrift, MARGINS[last], train.own_val_rows)
        following = RUNGS[RUNGS.index(last) + 1] if len(left) > 1 else 1.0
        return [Rung(name, following) for name in left]

    def prefer(self, tried: Sequence[tuple[Option, float]]) -> list[int]:
        """The best, of equals as `ties` says: a search in rounds tries them in another order. With thrift: of those
        that lack no more than that, the one with the fewest new weights."""
        best, sign = max(quality for _, quality in tried), 1 if self.ties == "reuse" else -1
        if not self.thrift:
            able = [i for i, (_, quality) in enumerate(tried) if quality == best]
            return [max(able, key=lambda i: sign * len(self._reusing(_read(tried[i][0]))))]
        able = [i for i, (_, quality) in enumerate(tried) if quality >= best - self.thrift - DUST]
        return sorted(able, key=lambda i: (self._to_learn(str(tried[i][0])), -tried[i][1]))

    def _candidates(self, nearest: Sequence[Path]) -> list[Path]:
        """d = L, ..., 0, or the other way round, of each of the past paths; what two of them have in common is one."""
        order = range(self.layers, -1, -1) if self.ties == "reuse" else range(self.layers + 1)
        found = [path[:d] + [self.task] * (self.layers - d) for d in order for path in nearest]
        return [path for i, path in enumerate(found) if path not in found[:i]]

    def _to_learn(self, name: str) -> float:
        """The share of a path's weights that are new."""
        new = [size for size, maker in zip(self.sizes, name.split(), strict=True) if int(maker) == self.task]
        return sum(new) / sum(self.sizes)

    def _reusing(self, path: Path) -> Trunk:
        """The makers of what a path has from earlier ones."""
        return tuple(maker for maker in path if maker != self.task)

    def choose(self, option: Option) -> None:
        if self.paths:  # the first task has one path, whatever network the protocol gave it since
            self.path = _read(option)

    def share(self, train: Lease) -> None:
        """Halving: what the reused modules make of all rows, once for all trials, where no row ever looks otherwise."""
        if self.search == "halving" and 0 < self.depth < self.layers:
            self.shared |= self.outputs(train, self.path[: self.depth], self.shared)

    def observe(self, batch: Batch) -> Tensor:
        self.open(batch.task)
        loss = cross_entropy(self.whole(self.trunk(batch)), batch.y, self.allowed(batch.task))
        if self.depth < self.layers:
            self.fresh.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step(self.fresh)
        return loss.detach()

    def trunk(self, batch: Batch) -> Tensor:
        """What the reused modules of the path make of a batch. Trials abreast see the same one, and what one of them
        has computed of it serves the others."""
        x, kept = batch.x, self.shared.get(_written(self.path[: self.depth]))
        if kept is not None and batch.rows is not None:
            return kept[batch.rows]  # type: ignore[no-any-return]
        same = self.shared.get("x")
        if same is None or not torch.equal(same, x):
            self.shared |= {"x": x, "h": {(): x}}
        known: dict[tuple[int, ...], Tensor] = self.shared["h"]  # by the modules passed through
        for d in range(self.depth):
            if tuple(self.path[: d + 1]) not in known:
                known[tuple(self.path[: d + 1])] = self.reused(known[tuple(self.path[:d])], self.path[: d + 1], d)
        return known[tuple(self.path[: self.depth])]


def _written(path: Path) -> str:
    return " ".join(map(str, path))


def _read(option: Option) -> Path:
    return [int(maker) for maker in str(option).split()]
