"""What the studies of papers 003 and 004 cost: python benchmarks/studies.py DIR [DIR ...]

Per model: trainings (trials on a task), their steps, the seconds of training and of scoring, how much of both together
is scoring, and trainings per hour of one core. Read from the records of finished runs, e.g. those of
`holdfast reproduce still/table4`; a look scores D1, D2 and their union in one pass over the test rows.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass

import holdfast as hf


@dataclass
class Cost:
    cells: int = 0
    trainings: int = 0
    steps: int = 0
    training: float = 0.0  # seconds
    scoring: float = 0.0

    def add(self, record: hf.Record) -> None:
        rows = record.study["trials"]
        self.cells += 1
        self.trainings += len(rows)
        self.steps += sum(row["updates"] for row in rows)
        self.training += sum(row["seconds"] for row in rows)
        self.scoring += record.resources["eval_seconds"]

    def line(self, name: str) -> str:
        seconds = self.training + self.scoring
        return (
            f"{name:28}{self.cells:6}{self.trainings:11}{self.steps:10}{self.training:10.0f}{self.scoring:9.0f}"
            f"{self.scoring / seconds:9.0%}{3600 * self.trainings / seconds:10.0f}"
        )


def main(folders: list[str]) -> None:
    costs: defaultdict[str, Cost] = defaultdict(Cost)
    for folder in folders:
        for record in hf.Comparison.read(folder).records:
            if "trials" in record.study:
                dropout = ", dropout" if record.net.get("dropout") else ""
                for name in (f"{record.method} on {record.net['name']}{dropout}", "all"):
                    costs[name].add(record)
    print(f"{'':28} cells  trainings     steps  training  scoring  share  per hour")
    for name in sorted(costs, key=lambda name: (name == "all", name)):
        print(costs[name].line(name))


if __name__ == "__main__":
    main(sys.argv[1:] or sys.exit(__doc__))
