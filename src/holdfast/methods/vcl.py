"""Variational continual learning."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor
from torch.func import functional_call

from holdfast.audit.lease import Lease
from holdfast.engine import Net, Optimiser, TaskRing, repeat
from holdfast.errors import BadInput, RunFailed
from holdfast.methods._base import Terms, Weighing
from holdfast.methods._variational import fit_means, k_center, likelihood, output_means
from holdfast.nets.bayes import bayesian, descend_divergence
from holdfast.seeds import beside
from holdfast.settings import Count, Whole
from holdfast.types import Batch, Lesson, StreamInfo


@final
@dataclass
class VCL(Weighing):
    """Variational continual learning (Nguyen et al., 2018; paper 001 §5).

        L(θ) = 1/S Σ_s CE(w_s) + KL(q_θ ‖ q_{t−1}) / N_t,   w_s ~ q_θ

    q_θ is a Gaussian over each weight, q_{t−1} the posterior that the task before left, N(0, 1) at first, and N_t the
    task's rows. A coreset is kept out of training; before each scoring a copy that is thrown away learns it by the same
    loss, in the task scenario one for each task and head. With `prior=initial` the posterior of the task before is not
    used: paper 001's "coreset only". Which prior the copy has decides whether that is as good (docs/papers/001.md).
    Outputs that no task has used yet stay out of the KL where tasks have outputs of their own.

    >>> import holdfast as hf
    >>> stream = hf.stream("split", tasks=2, examples=50, test_examples=50)
    >>> record = hf.run(hf.method("vcl", samples=2, test_samples=5), stream, net=hf.net("bayes", hidden=(20,)), seed=0)
    >>> record.curves[-1]["information"] > 0  # between predictions and weights
    True
    """

    samples: Count = 1  # S: draws of the weights per step (the VCL authors: 10)
    test_samples: Count = 100  # draws of the weights per prediction
    coreset: Whole = 0  # rows of each task that are kept
    rule: Literal["k-center", "random"] = "k-center"  # which rows are kept
    prior: Literal["posterior", "initial"] = "posterior"  # of each task: the last posterior, or N(0, 1)
    coreset_prior: Literal["initial", "posterior"] = "initial"  # of what learns the coreset; the VCL authors: posterior
    coreset_steps: Count = 120  # of all coreset rows, before each scoring
    likelihood_start: bool = True  # the first task's means begin where maximum likelihood ends, after as many steps

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        module = bayesian(net.module)
        if module is None:
            raise BadInput("method 'vcl' needs a perceptron without dropout: net 'bayes', or 'mlp'")
        mine = net if module is net.module else Net(module.to(net.device))
        super().start(mine, optimiser, info, rng)
        self.initial = torch.zeros_like(mine.theta.detach())  # N(0, 1)
        self.before = self.initial.clone()  # q_{t−1}
        self.rows, self.tasks = 1, 0  # N_t, and how many tasks have begun
        self.core = TaskRing(self.coreset)
        self.tuned: dict[int, Tensor] = {}  # θ of what learned the coreset, by task, or of all

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        self.rows = -(-plan.steps // plan.epochs) * plan.batch if train is None else len(train)
        self.tasks += 1
        if train is None:
            if self.coreset:
                raise RunFailed("method 'vcl' keeps a coreset out of training, which a single pass does not allow")
            return
        if self.coreset:
            kept = self._chosen(train)
            self.core.add(train.take(kept), self.rng)
            train.withhold(kept)
            self.rows = max(len(train) - len(kept), 1)
        if self.tasks == 1 and self.likelihood_start:
            fit_means(self, train, plan)

    def observe(self, batch: Batch) -> Tensor:
        return self._step(self.net, self.optimiser, batch, self._prior(), self.rows, self.rng)

    def terms(self, batch: Batch) -> Terms:
        rng = torch.Generator()
        rng.set_state(self.rng.get_state())  # the draws of the step to come
        likelihood(self.net, batch, self.samples, rng, self.allowed(batch.task))
        found = self.output_layer(self.net.grad)
        self.net.zero_grad()
        descend_divergence(self.net.grad, self.net.theta, self._prior(), 1 / self.rows, self._reached())
        return Terms(found, self.output_layer(self.net.grad))

    def output_layer(self, vector: Tensor) -> Tensor:
        return output_means(self.net, vector)

    def finish(self, train: Lease) -> None:
        reached = self._reached()
        now = self.net.theta.detach()
        self.before = now.clone() if reached is None else torch.where(reached.repeat(2), now, self.before)

    def ready(self) -> None:
        rng = beside(self.rng, "coreset")
        apart = self.info.scenario == "task"
        for t in self.core.tasks() if apart else [-1] * bool(len(self.core)):
            batch = self.core.of_task(t) if apart else self.core.all()
            net, optimiser = self.net.copy(), copy.deepcopy(self.optimiser)
            optimiser.reset()
            prior = self.initial if self.coreset_prior == "initial" else self.net.theta.detach().clone()
            step = lambda _: self._step(net, optimiser, batch, prior, len(batch), rng)  # noqa: B023, E731
            repeat(self.coreset_steps, step, "the coreset")
            self.tuned[t] = net.theta.detach().clone()

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        theta = self.tuned.get(-1 if task is None else task)
        theta = self.net.theta.detach() if theta is None else theta
        with self.net.evaluating():  # the same draws of the weights for all rows
            drawn = (x, self.test_samples, beside(self.rng, "predictions"))
            return functional_call(self.net.module, self.net.unflatten(theta), drawn)  # type: ignore[no-any-return]

    def _step(
        self, net: Net, optimiser: Optimiser, batch: Batch, prior: Tensor, rows: int, rng: torch.Generator
    ) -> Tensor:
        """One step on L; gives its first term, which other methods' losses can be compared with."""
        loss = likelihood(net, batch, self.samples, rng, self.allowed(batch.task))
        descend_divergence(net.grad, net.theta, prior, 1 / rows, self._reached())
        optimiser.step(net)
        return loss

    def _prior(self) -> Tensor:
        return self.before if self.prior == "posterior" else self.initial

    def _chosen(self, train: Lease) -> Tensor:
        n = min(self.coreset, len(train) - 1)
        if self.rule == "random":
            return torch.randperm(len(train), generator=self.rng)[:n]
        return k_center(train.x.flatten(1), n)

    def _reached(self) -> Tensor | None:
        """(P/2,): the weights that the tasks so far use; None: all."""
        if self._allowed is None:
            return None
        used = self._allowed[: self.tasks].any(0)  # (C,)
        reached = torch.ones(self.net.size // 2, dtype=torch.bool, device=used.device)
        inputs = self.net.module.means[-2].shape[1]  # type: ignore[index,union-attr]
        reached[-len(used) * (inputs + 1) :] = torch.cat([used.repeat_interleave(inputs), used])
        return reached
