"""A stream of your own: the images fade from task to task.

holdfast compare finetune,gem --stream examples/own_stream.py:Fading --set stream.least=0.1
"""

from dataclasses import dataclass
from functools import partial

import holdfast as hf
from holdfast.checks import check_stream


@dataclass(frozen=True)
class Fading(hf.StreamSpec):
    """Every task has all classes; its images have less contrast than those of the task before."""

    least: float = 0.2  # contrast of the last task

    def plan(self, data, seed):
        """The scenario, the number of outputs, and what each task is made of. Draw random numbers from `seed` alone."""
        classes = tuple(range(len(data.classes)))
        contrasts = [1 - (1 - self.least) * t / max(self.tasks - 1, 1) for t in range(self.tasks)]
        plans = [hf.Plan(f"contrast {c:.2f}", classes, classes, partial(faded, contrast=c)) for c in contrasts]
        return self.scenario or "domain", len(data.classes), plans


def faded(pixels, contrast):  # (n, *shape) -> (n, *shape)
    return (pixels.float() * contrast).to(pixels.dtype)


if __name__ == "__main__":
    stream = hf.stream(Fading, data="digits", tasks=3, least=0.1)
    check_stream(stream)  # the contracts that our own streams pass
    print([task.name for task in stream.tasks])
    print(hf.compare(["finetune", "gem"], stream, seeds=3))
