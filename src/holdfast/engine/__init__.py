"""What learners are built from: the weight vector, optimisers, memories, gradients, batches, evaluation, state."""

from holdfast.engine.batching import batches
from holdfast.engine.checkpoint import Checkpoint, Keeper
from holdfast.engine.count import count_flops, counting
from holdfast.engine.evaluate import Score, Shuffled, entropy, pooled, score, score_together
from holdfast.engine.fisher import fisher
from holdfast.engine.gradients import cross_entropy, restrict
from holdfast.engine.labour import CHECK_EVERY, Samples, check_finite, observed, repeat
from holdfast.engine.memory import ClassRing, Memory, Reservoir, TaskRing
from holdfast.engine.optim import SGD, Adam, AdamW, Momentum, Optimiser, OptimiserName, ScheduleName, optimiser
from holdfast.engine.state import Log, Plain, State, Stateful
from holdfast.engine.theta import Growing, Net

__all__ = [
    "CHECK_EVERY", "SGD", "Adam", "AdamW", "Checkpoint", "ClassRing", "Growing", "Keeper", "Log", "Memory", "Momentum",
    "Net", "Optimiser", "OptimiserName", "Plain", "Reservoir", "Samples", "ScheduleName", "Score", "Shuffled", "State",
    "Stateful", "TaskRing", "batches", "check_finite", "count_flops", "counting", "cross_entropy", "entropy", "fisher",
    "observed", "optimiser", "pooled", "repeat", "restrict", "score", "score_together",
]  # fmt: skip
