"""MNTDP: paths through a library of modules, how they are searched, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.audit import Lease
from holdfast.engine import SGD, Net, counting
from holdfast.methods import Rung, _library
from holdfast.methods._halving import Racer, ridge_accuracy, survivors
from holdfast.methods._library import CHUNK, knn_accuracy
from holdfast.methods.mntdp import MNTDP
from holdfast.seeds import generator, seeded
from holdfast.sweeps import Cell
from holdfast.types import Lesson, Part, StreamInfo

QUICK = {"lr": (0.01,), "decay": (0.0,), "epochs": 2, "batch": 20, "patience": None}


def protocol(**changes):
    return hf.protocol("crossval", **{**QUICK, **changes})


def digits(**changes):
    return hf.stream("split", **{"tasks": 3, "examples": 60, "val": 0.3, "scenario": "task", **changes})


class Naive(MNTDP):
    """One path after the other."""

    abreast = False


class Forced(MNTDP):
    """Has no choice: so many modules are reused of the path of the task before."""

    forced = 0

    def options(self, train):
        return [each for each in super().options(train) if self._depth(each) in (self.forced, 0)][:1]

    def _depth(self, option):
        name = option if isinstance(option, str) else option.option
        return sum(maker != str(self.task) for maker in name.split())


def paths(record):
    return [row["path"] for row in record.study["paths"]]


def test_what_is_reused_is_a_fixed_function_batch_statistics_included():
    """Logits of the first task, bit for bit, while a later one learns on top of its modules and after."""
    kept = {}

    class Watched(Forced):
        forced = 2

        def observe(self, batch):
            loss = super().observe(batch)
            if batch.task and "logits" in kept:
                assert torch.equal(self.predict(kept["x"], 0), kept["logits"])
                kept["steps"] = kept.get("steps", 0) + 1
            return loss

        def finish(self, train):
            super().finish(train)
            if train.task == 0:
                kept["x"] = train.x
                kept["logits"] = self.predict(kept["x"], 0)

    net = hf.net("ctrl_resnet", width=4, modules=3)
    record = hf.run(Watched(), digits(tasks=2), net=net, protocol=protocol())
    assert paths(record) == [[0, 0, 0], [0, 0, 1]] and kept["steps"] == 6


def test_a_path_that_is_reused_adds_no_number_and_only_its_name_in_bytes():
    class Reuses(Forced):
        forced = 3

    record = hf.run(Reuses(), digits(), net=hf.net("mlp", hidden=(8, 8)), protocol=protocol(optimiser="sgd"))
    assert paths(record) == [[0, 0, 0]] * 3
    assert len(set(record.resources["numbers"])) == 1
    assert record.resources["bytes"][-1] - record.resources["bytes"][0] < 200


@pytest.mark.parametrize(
    ("depth", "tasks", "net", "shape", "printed"),
    [
        (0, 10, hf.net("mlp", hidden=(1000, 1000)), (1, 28, 28), 71.8),  # Table 11: MNTDP-D, all modules new
        (0, 6, hf.net("ctrl_resnet"), (3, 32, 32), 14.6),  # Table 13, as independent
        (1, 10, hf.net("ctrl_resnet"), (3, 32, 32), 24.3),  # Table 12: MNTDP-D, all with the first stem
        (2, 10, hf.net("mlp", hidden=(1000, 1000)), (1, 28, 28), 7.5),  # as new-head freeze
        (6, 6, hf.net("ctrl_resnet"), (3, 32, 32), 2.5),
    ],
)
def test_mem_of_forced_paths_is_what_paper_000_prints(depth, tasks, net, shape, printed):
    x, y = torch.zeros(10, *shape), torch.arange(10)
    blank = hf.stream("permuted", tasks=tasks, scenario="task", data=(x, y, x, y))

    class Of(MNTDP):
        def begin(self, train, plan):
            if train.task:
                self.close()
                self.path = [0] * depth + [train.task] * (self.layers - depth)
            super().begin(train, plan)

    cell = Cell(Of(), blank, net, hf.protocol("epochs"), seed=0)
    assert round(4 * cell.numbers()[-1] / 1e6, 1) == printed


@pytest.mark.parametrize(
    "net",
    [hf.net("mlp", hidden=(12, 12), dropout=0.3), hf.net("ctrl_resnet", width=4, modules=3)],
    ids=["mlp", "resnet"],
)
def test_paths_tried_side_by_side_are_what_they_are_alone(net):
    """Bit for bit, random numbers of dropout and two learning rates included; and cheaper."""
    words = {"lr": (0.01, 0.001), "patience": 2}
    ours, naive = (
        hf.run(method, digits(tasks=2), net=net, protocol=protocol(**words)) for method in (MNTDP(), Naive())
    )
    assert paths(ours) == paths(naive) and np.array_equal(ours.R, naive.R)
    assert all(np.array_equal(a, b) for a, b in zip(ours.predictions, naive.predictions, strict=True))
    spent = [{k: v for k, v in row.items() if k not in ("seconds", "flops")} for row in ours.study["trials"]]
    alone = [{k: v for k, v in row.items() if k not in ("seconds", "flops")} for row in naive.study["trials"]]
    assert spent == alone
    assert ours.metrics["flops"] < naive.metrics["flops"]


def searched(record):
    """FLOPs of the searched tasks ÷ those of a network of its own for each."""
    own = [
        row["flops"]
        for row in record.study["trials"]
        if row["task"] and set(row["option"].split()) == {str(row["task"])}
    ]
    total = sum(record.resources["flops"][1:]) + sum(
        row["flops"] for row in record.study["trials"] if row["task"] and not row["chosen"]
    )
    return total / sum(own)


def test_the_whole_search_costs_less_than_three_networks():
    stream = hf.stream("ctrl", kind="minus", data="synth", rows=0.015, test=1, tasks=6)
    short = type(stream)(**{**vars(stream), "tasks": stream.tasks[:2]})
    record = hf.run("mntdp", short, net=hf.net("ctrl_resnet", width=8), protocol=protocol(epochs=8, score="ends"))
    assert searched(record) < 3.0


def test_the_cheap_search_drops_what_is_behind_and_learns_the_rest_as_the_whole_search_does():
    """Where both take the same path, its weights are the same, bit for bit."""
    same = 0
    for seed in range(10, 13):
        stream, net = digits(examples=100, seed=seed), hf.net("mlp", hidden=(12, 12))
        whole, cheap = (
            hf.run(hf.method("mntdp", search=search), stream, net=net, protocol=protocol(epochs=8), seed=seed)
            for search in ("all", "halving")
        )
        spent = [sum(row["updates"] for row in record.study["trials"]) for record in (cheap, whole)]
        assert spent[0] < spent[1]
        for t in (1, 2):
            steps = [row["updates"] for row in cheap.study["trials"] if row["task"] == t]
            assert set(steps) <= {1, 10, 20, 40} and max(steps) == 40
        if paths(whole) == paths(cheap):
            same += 1
            assert np.array_equal(whole.R, cheap.R)
    assert same >= 2


@pytest.mark.parametrize(
    ("net", "fits"),
    [(hf.net("mlp", hidden=(12, 12)), 60 * 48), (hf.net("ctrl_resnet", width=4, modules=3), 60 * 256)],
    ids=["mlp", "resnet"],
)
def test_the_cheap_search_passes_each_row_once_through_what_is_reused(net, fits, monkeypatch):
    """Where rows are not augmented, and as far as there is room: outputs of a row are 12 units, or 4 maps of 4×4."""
    found = {}
    for room in (0, fits - 1, fits):
        monkeypatch.setattr(_library, "ROOM", room)
        method = hf.method("mntdp", search="halving")
        found[room] = hf.run(method, digits(tasks=2), net=net, protocol=protocol(epochs=8))
    none = found[0]
    for record in found.values():
        assert paths(record) == paths(none) and np.allclose(record.R, none.R, atol=0.02)
    assert found[fits].metrics["flops"] < min(found[room].metrics["flops"] for room in (0, fits - 1))


def test_rows_that_are_augmented_are_passed_through_as_they_are_shown():
    seen = []

    class Seen(MNTDP):
        def trunk(self, batch):
            seen.append((batch.rows, sorted(set(self.shared) - {"x", "h"})))
            return super().trunk(batch)

    for words, anew in (({"augment": True}, True), ({}, False), ({"augment": True, "views": 2}, False)):
        seen.clear()
        net = hf.net("ctrl_resnet", width=4, modules=3)
        hf.run(Seen(search="halving"), digits(tasks=2, **words), net=net, protocol=protocol(epochs=8))
        later = [kept for _, kept in seen if kept]
        assert bool(later) is not anew and all((rows is None) is anew for rows, _ in seen)


def judged(search):
    """Per path of the second task that was learned to the end: its row, without what is measured by the clock."""
    method, net = hf.method("mntdp", search=search), hf.net("mlp", hidden=(12, 12))
    way = protocol(epochs=6, batch=10, judged_by="later looks")
    record = hf.run(method, digits(tasks=2, examples=50), net=net, protocol=way)
    rows = [row for row in record.study["trials"] if row["task"] == 1 and row["updates"] in (1, 30)]
    return {row["option"]: (row["stop"], row["quality"], row["updates"]) for row in rows}


def test_a_path_that_goes_on_is_judged_as_in_the_whole_search_where_rungs_end_between_two_looks():
    """Of 30 steps the rungs have 8 and 15; looks come every 5, and after the first ones."""
    whole, cheap = judged("all"), judged("halving")
    assert len(whole) == 4 and 1 < len(cheap) <= 4
    assert cheap == {name: whole[name] for name in cheap}


@pytest.mark.parametrize("search", ["all", "halving"])
def test_a_schedule_goes_by_the_whole_of_the_steps(search):
    rates = {}

    class Seen(MNTDP):
        def observe(self, batch):
            rates.setdefault(tuple(self.path), []).append(self.optimiser.rate)
            return super().observe(batch)

    words = {"epochs": 4, "batch": 20, "schedule": "cosine"}
    hf.run(Seen(search=search), digits(tasks=2), net=hf.net("mlp", hidden=(8, 8)), protocol=protocol(**words))
    one = max(rates.values(), key=len)[:12]
    assert one == pytest.approx([0.005 * (1 + np.cos(np.pi * step / 12)) for step in range(12)])
    assert all(mine[:12] == one[: len(mine[:12])] for path, mine in rates.items() if path != (0, 0, 0))


@pytest.mark.parametrize("search", ["all", "halving"])
@pytest.mark.parametrize(("ties", "path"), [("reuse", [0, 0, 0]), ("new", [1, 1, 1])])
def test_of_equally_good_paths_the_one_with_most_old_or_new_modules_is_taken(search, ties, path):
    class Alike(MNTDP):
        def prefer(self, tried):
            return super().prefer([(option, 1.0) for option, _ in tried])

        def more_options(self, train, tried):
            return super().more_options(train, [(option, 1.0) for option, _ in tried])

    words = {"epochs": 8, "batch": 10}
    net = hf.net("mlp", hidden=(30, 8))  # of 1920, 240 and 80 weights: no two paths are alike
    record = hf.run(Alike(search=search, ties=ties), digits(tasks=2), net=net, protocol=protocol(**words))
    assert paths(record) == [[0, 0, 0], path]


def test_what_diverged_at_a_rung_is_not_tried_again():
    words = {"lr": (1e30, 0.01), "epochs": 8, "batch": 10, "optimiser": "sgd"}
    net = hf.net("mlp", hidden=(8, 8))
    record = hf.run(hf.method("mntdp", search="halving"), digits(tasks=2), net=net, protocol=protocol(**words))
    failed = [row["option"] for row in record.study["trials"] if row["task"] == 1 and "failed" in row]
    assert sorted(failed) == ["0 1 1", "1 1 1"]  # each once; the head alone does not diverge
    assert max(row["updates"] for row in record.study["trials"] if row["task"] == 1) == 48


def test_the_learning_curve_is_whole_where_the_first_rung_is_shorter():
    words = {"epochs": 4, "batch": 20, "score_first": 5}
    net = hf.net("mlp", hidden=(8, 8))
    record = hf.run(hf.method("mntdp", search="halving"), digits(tasks=2), net=net, protocol=protocol(**words))
    assert record.metrics["lca"] is not None


def test_what_a_task_costs_does_not_grow_with_the_past_but_for_the_neighbours():
    asked = [0]

    class Counted(MNTDP):
        def nearest(self, train, k):
            with counting() as counter:
                found = super().nearest(train, k)
            asked.append(counter.total)
            return found

    words = {"tasks": 7, "examples": 40, "test_examples": 20, "val": 0.3, "scenario": "task"}
    record = hf.run(
        Counted(), hf.stream("permuted", **words), net=hf.net("mlp", hidden=(8, 8)), protocol=protocol(score="ends")
    )
    spent = [flops - neighbours for flops, neighbours in zip(record.resources["flops"], asked, strict=True)]
    for row in record.study["trials"]:
        spent[row["task"]] += 0 if row["chosen"] else row["flops"]
    assert spent[1:] == pytest.approx([spent[1]] * 6, rel=0.02)
    assert len({tuple(path[:2]) for path in paths(record)}) > 2 and asked[-1] > asked[1]


def test_neighbours_are_looked_for_among_rows_as_they_are():
    """Views stand behind the rows themselves."""
    taken = []

    class Seen(MNTDP):
        def nearest(self, train, k):
            whole, train.take = train.take, lambda rows: taken.append(rows) or whole(rows)
            return super().nearest(train, k)

    few = digits(tasks=2, augment=True, views=3)
    hf.run(Seen(), few, net=hf.net("mlp", hidden=(8, 8)), protocol=protocol())
    assert len(few.tasks[1].train) == 240 and sorted(taken[0].tolist()) == list(range(60))


def test_what_goes_on_is_what_may_still_win():
    racing = [
        Racer("new", 0.40, 0.10, 1.00),
        Racer("nearly new", 0.41, 0.10, 0.97),  # alike, and better
        Racer("half", 0.40, 0.10, 0.50),
        Racer("probed", 0.40, 0.55, 0.40),
        Racer("head", 0.46, 0.40, 0.00),
    ]
    # rows=2500: noise 0.005. Best 0.6: new may be 0.205 behind, nearly new 0.202, half 0.155, head 0.105
    assert survivors(racing, best=0.6, margin=0.1, rows=2500) == ["nearly new", "probed"]
    assert survivors(racing, best=0.6, margin=0.1, rows=16) == ["nearly new", "half", "probed", "head"]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({}, ["0 0 2", "2 2 2"]),
        ({"thrift": 0.03}, ["0 0 2", "0 2 2", "2 2 2"]),
        ({"probe": 0.73}, ["0 0 2", "0 2 2", "2 2 2"]),
        ({"full": 0.8}, ["0 0 2", "0 2 2", "2 2 2"]),
        ({"full": 1.0}, ["0 0 2"]),  # the best of the others alone
        ({"copies": 2}, ["0 0 2", "0 2 2", "2 2 2"]),
    ],
)
def test_the_cheap_search_asks_for_what_may_still_win(change, left):
    """Modules of 30, 35 and 12 weights, 30 validation rows: noise 0.046. Full reuse has 0.9, so that at a quarter 0 0 2
    may have 0.762 (m = 0.08 · 1.156), 0 2 2 0.726 (· 1.610) and 2 2 2 0.694 (· 2)."""
    learner, lease = library_of_two(search="halving", thrift=change.get("thrift", 0.0))
    assert learner.options(lease) == [("0 0 0", 1), ("0 0 2", 0.25), ("0 2 2", 0.25), ("2 2 2", 0.25)]
    learner.probes = dict.fromkeys(learner.probes, 0.0) | {"0 2 2": change.get("probe", 0.0)}
    lease._val.copies = change.get("copies", 0)  # then there are 10 rows: noise 0.079
    worths = {"0 0 2": 0.8, "0 2 2": 0.7, "2 2 2": 0.72}
    if change.get("full") == 1.0:
        learner.probes["0 0 2"] = 1.0
    tried = [(Rung("0 0 0", 1), change.get("full", 0.9))]
    tried += [(Rung(name, 0.25), worth) for name, worth in worths.items()]
    more = learner.more_options(lease, tried)
    assert more == [(name, 0.5 if len(left) > 1 else 1.0) for name in left]


def test_paths_off_different_past_paths_are_not_alike():
    racing = [Racer("0 0 2", 0.5, 0, 0.2, (0, 0)), Racer("1 1 2", 0.5, 0, 0.2, (1, 1)), Racer("2 2 2", 0.4, 0, 0.22)]
    assert survivors(racing, best=0.5, margin=0.2, rows=100) == ["0 0 2", "1 1 2"]


def test_the_probe_is_a_ridge_classifier():
    from sklearn.linear_model import RidgeClassifier
    from sklearn.preprocessing import StandardScaler

    rng = torch.Generator().manual_seed(0)
    y, val_y = torch.arange(40) % 2, torch.arange(30) % 2
    x, val = (torch.randn(len(c), 60, generator=rng, dtype=torch.float64) + 0.2 * c[:, None] for c in (y, val_y))
    scaler = StandardScaler().fit(x)
    scale = (39 / 40) ** 0.5  # ours divides by the unbiased deviation
    oracle = RidgeClassifier(40.0).fit(scaler.transform(x) * scale, y).score(scaler.transform(val) * scale, val_y)
    assert ridge_accuracy(x, y, val, val_y) == pytest.approx(oracle) and oracle > 0.6


def test_neighbours_vote_as_scikit_learns():
    from sklearn.neighbors import KNeighborsClassifier

    rng = torch.Generator().manual_seed(0)
    x, val = torch.randn(60, 3, generator=rng), torch.randn(40, 3, generator=rng)
    y, val_y = torch.randint(4, (60,), generator=rng), torch.randint(4, (40,), generator=rng)
    for k in (1, 5, 15):
        oracle = KNeighborsClassifier(k).fit(x, y).score(val, val_y)
        assert knn_accuracy(x, y, val, val_y, k) == pytest.approx(oracle)


def library_of_two(**settings):
    """The path of task 0 keeps its inputs apart, that of task 1 makes one point of them."""
    info = StreamInfo("hand-made", "task", (4,), 2, ((0, 1),) * 3)
    build = lambda: hf.net("mlp", hidden=(6, 5)).build(info)  # noqa: E731
    with seeded(0):
        module = build()
    learner = hf.method("mntdp", **settings)
    learner.start(Net(module, build), SGD(0.1), info, generator(0))
    learner.open(1)
    with torch.no_grad():
        learner.fresh.theta.zero_()
    learner.close()
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(80) % 2
    x = torch.randn(80, 4, generator=rng) * 0.3 + torch.where(y == 0, -1.0, 1.0)[:, None]
    part = Part(x, torch.arange(80), y)
    return learner, Lease(2, part.take(torch.arange(50)), part.take(torch.arange(50, 80)))


def names(options):
    return [each if isinstance(each, str) else each.option for each in options]


def test_the_nearest_path_is_the_one_whose_features_tell_the_classes_apart():
    learner, lease = library_of_two()
    options = learner.options(lease)
    assert learner.scores[0] == 1.0 and learner.scores[1] < 0.8
    assert names(options) == ["0 0 0", "0 0 2", "0 2 2", "2 2 2"]
    assert options[0].steps == 1  # nothing to learn
    learner, lease = library_of_two(ties="new")
    assert names(learner.options(lease)) == ["2 2 2", "0 2 2", "0 0 2", "0 0 0"]


def test_what_past_networks_begin_with_alike_is_passed_through_once():
    """Features are what each network makes of rows by itself, bit for bit; rows in more than one chunk."""
    learner, _ = library_of_two()
    for path in ([0, 0, 2], [0, 3, 3], [1, 1, 4]):
        learner.path = path
        learner.begun = False
        learner.open(learner.task)
        learner.close()
    x = torch.randn(CHUNK + 7, 4, generator=torch.Generator().manual_seed(0))
    trunks = [(1, 1), (0, 3), (0,), (0, 0), ()]
    alone = {trunk: learner.reused(x[:CHUNK], trunk) for trunk in trunks}
    passed = []
    learner.reused, whole = lambda x, path, start: passed.append(path) or whole(x, path, start), learner.reused
    found = learner.features(x, trunks)
    assert set(found) == set(trunks) and all(torch.equal(found[t][:CHUNK], alone[t]) for t in trunks)
    assert passed == [(0,), (0, 0), (0, 3), (1,), (1, 1)] * 2
    assert all(len(features) == len(x) for features in found.values())


def test_all_past_paths_may_be_candidates_and_one_at_random():
    learner, lease = library_of_two(nearest_paths=None)
    assert names(learner.options(lease)) == ["0 0 0", "1 1 1", "0 0 2", "1 1 2", "0 2 2", "1 2 2", "2 2 2"]
    taken = set()
    for seed in range(6):
        learner, lease = library_of_two(prior="random")
        learner.rng.manual_seed(seed)
        taken.add(names(learner.options(lease))[0])
        assert learner.scores == []
    assert taken == {"0 0 0", "1 1 1"}


def test_thrift_takes_the_path_with_the_fewest_new_weights_that_lacks_little():
    """New weights of a 4-6-5-2 perceptron: head 12, the second layer and the head 47, all 77."""
    learner, _ = library_of_two(thrift=0.02)
    head, half, whole = ("0 0 2", 0.56), ("0 2 2", 0.59), ("2 2 2", 0.60)
    assert learner.prefer([head]) == [0]
    assert learner.prefer([head, half]) == [1]  # .03 behind, and never to come back
    assert learner.prefer([half, whole]) == [0, 1]
    assert learner.prefer([half, whole, ("0 0 0", 0.58)]) == [2, 0, 1]  # .02 behind is not more than .02
    assert learner.prefer([half, whole, ("0 2 2", 0.595)]) == [2, 0, 1]  # the same path, of another learning rate
    assert learner.prefer([half, whole, ("0 0 0", 0.62)]) == [2, 1]  # half lacks .03 now
    learner.thrift = 0.0
    assert learner.prefer([head, half, whole]) == [2] and learner.prefer([half, ("2 2 2", 0.59)]) == [0]


WORTHS = (0.58, 0.57, 0.50, 0.10)  # of paths, by how many modules are reused of three


class Judged(MNTDP):
    """Its paths are as good as is written here."""

    def prefer(self, tried):
        return super().prefer([(o, WORTHS[sum(m != str(self.task) for m in o.split())]) for o, _ in tried])


@pytest.mark.parametrize(("thrift", "path"), [(0.0, [1, 1, 1]), (0.01, [0, 1, 1]), (0.08, [0, 0, 1])])
@pytest.mark.parametrize("ties", ["reuse", "new"])
def test_a_path_that_was_not_the_best_may_be_taken_in_the_end_with_its_own_weights(thrift, path, ties):
    record = hf.run(
        Judged(thrift=thrift, ties=ties), digits(tasks=2), net=hf.net("mlp", hidden=(8, 8)), protocol=protocol()
    )
    assert paths(record) == [[0, 0, 0], path]
    (taken,) = [row for row in record.study["trials"] if row["task"] == 1 and row["chosen"]]
    assert taken["option"] == " ".join(map(str, path)) == record.settings["option"]["value"][1]
    assert record.bwt == 0.0


def test_states_of_a_task_have_one_library_and_a_later_one_gives_way_to_it():
    learner, lease = library_of_two()
    early, theta = learner.state(), learner.net.theta.detach().clone()
    logits = learner.predict(lease.x, 0)
    assert learner.state()["library"] is early["library"] is learner.twin().state()["library"]
    learner.begin(lease, Lesson(1, 1, 1))
    learner.close()
    late = learner.state()
    assert late["library"] is not early["library"] and learner.net.size > len(theta)
    learner.load(early)
    assert torch.equal(learner.net.theta, theta) and learner.task == 2
    learner.load(late)
    assert torch.equal(learner.net.theta[: len(theta)], theta) and learner.task == 3
    other, _ = library_of_two()
    with torch.no_grad():
        other.net.theta.zero_()
    other.load(early)
    assert torch.equal(other.predict(lease.x, 0), logits)


def test_without_a_choice_every_task_has_a_network_of_its_own():
    learner, lease = library_of_two()
    learner.begin(lease, Lesson(1, 1, 1))
    assert learner.path == [2, 2, 2]


def test_the_record_says_which_path_each_task_has_and_how_near_the_others_were():
    record = hf.run("mntdp", digits(), net=hf.net("mlp", hidden=(8, 8)), protocol=protocol())
    rows = record.study["paths"]
    assert [row["task"] for row in rows] == [0, 1, 2]
    for t, row in enumerate(rows):
        assert row["new"] == [layer for layer, maker in enumerate(row["path"]) if maker == t]
        assert len(row["knn"]) == t and sum(row["sizes"]) == 64 * 8 + 8 + 8 * 8 + 8 + 8 * 10 + 10
        assert record.settings["option"]["value"][t] == " ".join(map(str, row["path"]))
    assert record.settings["option"]["chosen_by"] == "val:task"


def test_a_network_that_cannot_be_cut_is_refused():
    with pytest.raises(hf.BadInput, match="one module"):
        hf.run("mntdp", digits(), net=hf.net("mlp", hidden=()), protocol=protocol())
