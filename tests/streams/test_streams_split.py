"""Classes dealt out to tasks."""

import pytest
import torch

import holdfast as hf


def test_outputs_may_be_common_to_all_tasks_where_the_task_is_given():
    common = hf.stream("split", scenario="task", outputs="common")
    hidden = hf.stream("split", scenario="domain")
    assert common.info.classes == 2 and common.info.task_given and common.info.allowed() is None
    for a, b in zip(common.tasks, hidden.tasks, strict=True):
        assert torch.equal(a.train.y, b.train.y) and torch.equal(a.test.y, b.test.y)
    with pytest.raises(hf.BadInput, match="outputs=common needs the task label"):
        hf.stream("split", outputs="common")
    with pytest.raises(hf.BadInput, match="outputs=common needs tasks of equal size"):
        hf.stream("split", scenario="task", outputs="common", sizes=(4, 3, 3), tasks=3)
