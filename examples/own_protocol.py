"""A protocol of your own: the first task is learned for longer, as a model is that is trained well and then deployed.

holdfast compare finetune,er --protocol examples/own_protocol.py:HeadStart --set protocol.first=10
"""

from dataclasses import dataclass

import holdfast as hf


@dataclass(frozen=True)
class HeadStart(hf.Passing):
    """Many passes over the first task, one over each later one."""

    passes = 1  # over each later task
    first: int = 5  # passes over the first task

    def passes_over(self, task):
        return self.passes if task.t else self.first


if __name__ == "__main__":
    stream = hf.stream("rotated", data="digits", tasks=5)
    record = hf.run("er", stream, protocol=HeadStart(first=10), seed=0)
    print(record.protocol["name"], record.R.round(2))
    print(hf.compare(["finetune", "er"], stream, seeds=3, protocol=hf.protocol(HeadStart, first=10, lr=0.05)))
