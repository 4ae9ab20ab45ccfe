"""Leases: data only while the task lasts, and every row read is counted."""

import pytest
import torch

import holdfast as hf
from holdfast.audit import Lease
from holdfast.engine import batches
from holdfast.errors import PastDataError

READS = {
    "x": lambda lease: lease.x,
    "y": lambda lease: lease.y,
    "val_x": lambda lease: lease.val_x,
    "val_y": lambda lease: lease.val_y,
    "len": len,
    "take": lambda lease: lease.take(torch.tensor([0])),
    "withhold": lambda lease: lease.withhold(torch.tensor([0])),
}


@pytest.mark.parametrize("read", READS)
def test_after_the_task_every_read_raises(read, part):
    lease = Lease(4, part(12), part(3))
    READS[read](lease)
    assert not lease.closed
    lease.close()
    assert lease.closed
    with pytest.raises(PastDataError, match="the data of task 4 are gone"):
        READS[read](lease)


def test_a_lease_shows_its_parts_and_counts_looks_at_each_row(part):
    train, val = part(12), part(3, seed=1)
    lease = Lease(0, train, val)
    assert (len(lease), lease.looks().tolist()) == (12, [0] * 15)
    assert torch.equal(lease.x, train.x())
    assert lease.looks().tolist() == [1] * 12 + [0] * 3
    assert torch.equal(lease.y, train.y)
    assert torch.equal(lease.val_x, val.x())
    assert torch.equal(lease.val_y, val.y)
    assert lease.looks().tolist() == [1] * 15  # labels are not looked at
    taken = lease.take(torch.tensor([5, 2, 5]))
    assert torch.equal(taken.x, train.x()[[5, 2, 5]])
    assert torch.equal(taken.y, train.y[[5, 2, 5]])
    assert taken.task == 0
    assert lease.looks().tolist() == [1, 1, 2, 1, 1, 3, *[1] * 9]


def test_a_mixed_lease_gives_each_row_its_task(part):
    lease = Lease(0, part(6), part(1), mixed=torch.tensor([0, 0, 1, 1, 2, 2]))
    assert lease.take(torch.tensor([5, 0])).task.tolist() == [2, 0]


@pytest.mark.parametrize("floats", [False, True])
def test_what_a_learner_does_to_leased_tensors_stays_with_it(floats, part):
    train = part(6, floats=floats)
    before, labels = train.x().clone(), train.y.clone()
    lease = Lease(0, train, train)
    for tensor in (lease.x, lease.y, lease.val_x, lease.val_y, lease.take(torch.arange(6)).x):
        tensor.zero_()
    assert torch.equal(train.x(), before)
    assert torch.equal(train.y, labels)


def test_withheld_rows_are_never_shown(part):
    train = part(12)
    lease = Lease(0, train, part(1))
    lease.withhold(torch.tensor([0, 7]))
    lease.withhold(torch.tensor([7, 11]))
    assert lease.kept().tolist() == [1, 2, 3, 4, 5, 6, 8, 9, 10]
    shown = torch.cat([b.x for b in batches(train, 4, torch.Generator(), 0, lease.kept())])
    hidden = train.x(torch.tensor([0, 7, 11]))
    assert len(shown) == 9
    assert not (shown[:, None] == hidden[None]).flatten(2).all(2).any()


class Withholder(hf.Learner):
    """Keeps every third row out, and notes what it is shown."""

    def begin(self, train, plan):
        self.coreset = train.take(torch.arange(0, len(train), 3)).x
        train.withhold(torch.arange(0, len(train), 3))
        self.shown = []
        self.lease = train

    def observe(self, batch):
        self.shown.append(batch.x.clone())
        return self.descend(self.cross_entropy(batch))

    def finish(self, train):
        shown = torch.cat(self.shown).flatten(1)
        coreset = self.coreset.flatten(1)
        assert not (shown[:, None] == coreset[None]).all(2).any()
        assert len(shown) + 2 * len(coreset) == 2 * len(train)  # two passes over the others


class Clinging(hf.Learner):
    """Reads the lease of the task before."""

    def begin(self, train, plan):
        self.old = vars(self).get("lease")
        self.lease = train

    def observe(self, batch):
        if self.old is not None:
            _ = self.old.x
        return self.descend(self.cross_entropy(batch))


def test_a_run_withholds_and_ends_leases():
    stream = hf.stream("permuted", tasks=2, examples=30, test_examples=20)
    epochs = hf.protocol("epochs", epochs=2)
    record = hf.run(Withholder, stream, protocol=epochs)
    assert record.card["single_pass"]["value"] == pytest.approx((10 + 2 * 20) / 30, abs=1e-3)
    with pytest.raises(PastDataError, match="the data of task 0 are gone"):
        hf.run(Clinging, stream, protocol=epochs)
