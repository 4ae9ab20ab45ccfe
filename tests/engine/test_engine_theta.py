"""The weight vector: views, mixed losses, growth, freezing, state."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from holdfast.engine import Growing, Net, optimiser
from holdfast.engine.penalty import pull
from holdfast.engine.state import read, save
from holdfast.errors import BadInput
from holdfast.nets._base import Dropout
from holdfast.nets.lwta import Winners
from holdfast.seeds import seeded

ALL = pytest.mark.parametrize("module", ["mlp", "conv", "resnet", "tied"], indirect=True)
OPTIMISERS = pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])


def same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def train(net: Net, name: str, examples, steps: int, decay: float = 0.01) -> None:
    descent = optimiser(name, 0.05, decay=decay)
    for step in range(steps):
        x, y = examples(8, seed=step)
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        descent.step(net)


@ALL
def test_parameters_and_gradients_are_views_of_two_buffers(module, flat):
    values = [p.detach().clone() for p in module.parameters()]
    net = Net(module)
    assert net.size == sum(v.numel() for v in values)
    assert torch.equal(net.theta, flat(values))
    assert all(same_memory(p, net.theta) and same_memory(p.grad, net.grad) for p in module.parameters())
    assert same_memory(net.theta.grad, net.grad)
    net.set(torch.zeros(net.size))
    assert all(not p.any() for p in module.parameters())


@ALL
def test_a_loss_over_outputs_and_theta_has_the_per_parameter_gradients(module, examples, flat):
    twin = copy.deepcopy(module)
    net = Net(module)
    x, y = examples(6)
    for times in (1, 2):  # the second time the buffers already hold something
        net.zero_grad()
        (F.cross_entropy(net(x), y) + (net.theta**2).sum() + net.theta.sin().sum()).backward()
        twin.zero_grad()
        penalty = sum((p**2).sum() + p.sin().sum() for p in twin.parameters())
        (F.cross_entropy(twin(x), y) + penalty).backward()
        expected = flat(p.grad for p in twin.parameters())
        rounding = 2e-5 * expected.abs().max().item()  # measured 1e-5 behind the resnet's layers, 1e-7 elsewhere
        torch.testing.assert_close(net.grad, expected, rtol=1e-5, atol=rounding, msg=f"pass {times}")


def perceptron() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 5))


def autograd(net: Net, x: torch.Tensor, y: torch.Tensor, allowed: torch.Tensor | None = None):
    """Loss and gradient as torch finds them."""
    logits = net(x) if allowed is None else net(x).masked_fill(~allowed, -torch.inf)
    loss = F.cross_entropy(logits, y)
    return loss.detach(), torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(net.module.parameters()))])


@pytest.mark.parametrize("mask", ["none", "shared", "per row"])
def test_the_gradient_by_hand_is_that_of_autograd(mask):
    net = Net(perceptron())
    torch.manual_seed(0)
    x, y = torch.randn(7, 3, 4), torch.tensor([0, 1, 3, 0, 3, 1, 0])
    allowed = {"none": None, "shared": torch.tensor([1, 1, 0, 1, 0]).bool()}.get(mask, F.one_hot(y, 5).bool())
    if mask == "per row":
        allowed[:, 4] = True
    for _ in range(2):  # the second time the buffer already holds something
        loss = net.collect(x, y, allowed)
        expected, gradient = autograd(net, x, y, allowed)
        torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(net.grad, gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "layers",
    [
        [nn.Flatten(), nn.Dropout(0.2), nn.Linear(12, 9), nn.ReLU(), nn.Dropout(0.5), nn.Linear(9, 5)],
        [nn.Flatten(), nn.Linear(12, 9), nn.Identity(), nn.ReLU(), nn.Dropout(0.3), nn.Dropout(0.5), nn.Linear(9, 5)],
        [nn.Flatten(), Dropout(0.2), nn.Linear(12, 9), nn.ReLU(), Dropout(0.5), nn.Linear(9, 5)],
        [nn.Flatten(), nn.Linear(12, 8), Winners(2), nn.Linear(8, 6), Winners(3), nn.Dropout(0.25), nn.Linear(6, 5)],
    ],
    ids=["dropout", "dropout twice", "our dropout", "competing units"],
)
def test_gates_have_the_gradient_of_autograd_with_the_same_dice(layers):
    torch.manual_seed(3)
    net = Net(nn.Sequential(*layers))
    x, y = torch.randn(40, 3, 4), torch.randint(5, (40,))
    with seeded(7):
        loss = net.collect(x, y)
    with seeded(7):
        expected, gradient = autograd(net, x, y)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(net.grad, gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", ["hook", "frozen", "half flattened", "conv"])
def test_what_is_not_a_plain_perceptron_is_left_to_autograd(way):
    module = perceptron()
    if way == "frozen":
        module[1].weight.requires_grad_(False)
    if way == "half flattened":
        module = nn.Sequential(nn.Flatten(2), nn.Linear(4, 5), nn.Flatten(), nn.Linear(15, 5))
    if way == "conv":
        module = nn.Sequential(nn.Conv1d(3, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(6, 5))
    net = Net(module)
    doubled = []
    if way == "hook":
        module[1].register_forward_hook(lambda m, args, out: doubled.append(1) or 2 * out)
    x, y = torch.randn(4, 3, 4), torch.tensor([0, 1, 2, 3])
    net.collect(x, y)
    expected = torch.autograd.grad(F.cross_entropy(net(x), y), [p for p in module.parameters() if p.requires_grad])
    found = torch.cat([p.grad.flatten() for p in module.parameters() if p.requires_grad])
    torch.testing.assert_close(found, torch.cat([g.flatten() for g in expected]))
    assert way != "frozen" or not module[1].weight.grad.any()
    assert way != "hook" or len(doubled) == 2


def test_double_weights_are_refused_by_name():
    with pytest.raises(BadInput, match=r"must all be float32, not torch\.float64"):
        Net(nn.Linear(2, 2).double())


@pytest.mark.parametrize("module", ["conv", "tied"], indirect=True)
def test_unflatten_writes_through_under_the_modules_own_names(module):
    net = Net(module)
    vector = torch.zeros(net.size)
    views = net.unflatten(vector)
    assert {k: v.shape for k, v in views.items()} == {k: p.shape for k, p in module.named_parameters()}
    for i, view in enumerate(views.values()):
        view.fill_(i)
    sizes = [p.numel() for p in module.parameters()]
    assert torch.equal(vector, torch.arange(len(sizes)).float().repeat_interleave(torch.tensor(sizes)))


def test_growth_keeps_old_bits_and_places_and_appends(growing, examples):
    train(growing, "sgd", examples, 3)
    before, places = growing.theta.detach().clone(), growing.unflatten(torch.arange(growing.size))
    growing.grow("first", seed=1)
    growing.grow("ab", seed=2)
    assert growing.size == len(before) + (6 * 5 + 5) + 10 + (5 * 5 + 5) + (6 * 2 + 2) + 4 + (2 * 5 + 5)
    assert torch.equal(growing.theta[: len(before)], before)
    later = growing.unflatten(torch.arange(growing.size))
    assert all(torch.equal(later[name], where) for name, where in places.items())
    assert all(same_memory(p, growing.theta) and same_memory(p.grad, growing.grad) for p in growing.module.parameters())


def test_a_part_depends_on_its_seed_alone_and_leaves_the_global_generator_alone(growing):
    twin = growing.copy()
    state = torch.get_rng_state()
    growing.grow("a", seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(10)
    twin.grow("a", seed=1)
    assert torch.equal(growing.theta, twin.theta)
    assert not torch.equal(growing.theta[-10:], growing.fresh(0).theta[-10:])


def test_only_growing_modules_grow():
    with pytest.raises(TypeError, match="a Linear cannot grow: derive it from"):
        Net(nn.Linear(2, 2)).grow("a", seed=0)


@OPTIMISERS
def test_optimiser_state_after_growth_equals_torch_with_a_new_parameter_group(name, growing, examples):
    growing.grow("old", seed=1)
    reference = copy.deepcopy(growing.module)
    kinds = {
        "sgd": lambda p: torch.optim.SGD(p, 0.05, weight_decay=0.01),
        "momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.01),
        "adam": lambda p: torch.optim.Adam(p, 0.05, weight_decay=0.01),
    }
    theirs, ours = kinds[name](list(reference.parameters())), optimiser(name, 0.05, decay=0.01)
    for step in range(30):
        if step in (7, 19):
            part = f"part{step}"
            growing.grow(part, seed=step)
            reference.parts[part] = copy.deepcopy(growing.module.parts[part])
            theirs.add_param_group({"params": list(reference.parts[part].parameters())})
        x, y = examples(8, seed=step)
        growing.zero_grad()
        F.cross_entropy(growing(x), y).backward()
        ours.step(growing)
        theirs.zero_grad()
        F.cross_entropy(reference(x), y).backward()
        theirs.step()
    values = dict(reference.named_parameters())
    for key, view in growing.unflatten(growing.theta.detach()).items():
        torch.testing.assert_close(view, values[key].detach(), rtol=2e-4, atol=2e-5)


@OPTIMISERS
def test_frozen_entries_never_move_and_the_rest_does(name, growing, examples):
    growing.grow("a", seed=1)
    growing.freeze()
    growing.grow("b", seed=2)
    frozen = growing.frozen.clone()
    assert int((~frozen).sum()) == 6 * 1 + 1 + 2 + 1 * 5 + 5
    before = growing.theta.detach().clone()
    train(growing, name, examples, 20)
    moved = growing.theta.detach() != before
    assert not moved[frozen].any()
    assert moved[~frozen].float().mean() > 0.5


@OPTIMISERS
def test_entries_frozen_in_mid_flight_stop_at_once(name, growing, examples):
    """Momentum gathered before the freeze must not carry them on."""
    growing.grow("a", seed=1)
    descent = optimiser(name, 0.05, decay=0.01)
    for step in range(10):
        if step == 5:
            growing.freeze("a")
            held = growing.theta.detach().clone()
        x, y = examples(8, seed=step)
        growing.zero_grad()
        F.cross_entropy(growing(x), y).backward()
        descent.step(growing)
    inside = {k for k in growing.unflatten(held) if k.startswith("parts.a.")}
    now, then = growing.unflatten(growing.theta.detach()), growing.unflatten(held)
    assert {k for k in now if torch.equal(now[k], then[k])} == inside


@OPTIMISERS
def test_parameters_that_come_without_gradient_are_frozen(name, examples):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 5))
    module[1].requires_grad_(False)
    net = Net(module)
    before = net.theta.detach().clone()
    train(net, name, examples, 10)
    assert torch.equal(net.theta[: 65 * 6], before[: 65 * 6])
    assert (net.theta[65 * 6 :] != before[65 * 6 :]).all()


def test_copy_is_independent_and_equal_also_after_growth(growing, examples):
    growing.grow("a", seed=1)
    growing.freeze("a")
    twin = growing.copy()
    x, _ = examples(4)
    assert torch.equal(twin.theta, growing.theta)
    assert torch.equal(twin.frozen, growing.frozen)
    assert list(twin.unflatten(twin.theta)) == list(growing.unflatten(growing.theta))
    before = growing.theta.detach().clone()
    train(twin, "sgd", examples, 3)
    twin.freeze()
    assert torch.equal(growing.theta, before)
    assert not growing.frozen.all()
    assert not growing.grad.any()
    with growing.evaluating(), twin.evaluating():
        assert not torch.allclose(twin(x), growing(x))


def test_fresh_is_new_weights_by_seed_of_the_same_kind():
    net = Net(nn.Linear(4, 3), lambda: nn.Linear(4, 3))
    assert torch.equal(net.fresh(1).theta, net.fresh(1).theta)
    assert not torch.equal(net.fresh(1).theta, net.fresh(2).theta)
    assert not torch.equal(net.fresh(1).theta, net.theta)


@pytest.mark.parametrize("parts", [[], ["a"], ["a", "bb", "ccc"], ["z", "bb"]])
def test_state_goes_back_and_forth_over_growth(parts, growing, examples):
    """A network with parts a and bb takes the state of one with other parts: fewer, more, or different ones."""
    other = growing.fresh(9)
    for part in parts:
        other.grow(part, seed=5)
    train(other, "sgd", examples, 3)  # moves batch statistics, too
    other.freeze()
    state = other.state()
    for part in ("a", "bb"):
        growing.grow(part, seed=1)
    growing.load(state)
    x, _ = examples(4)
    assert list(growing.module.parts) == parts
    assert torch.equal(growing.theta, other.theta)
    assert torch.equal(growing.frozen, other.frozen)
    with growing.evaluating(), other.evaluating():
        assert torch.equal(growing(x), other(x))
    assert all(same_memory(p, growing.theta) for p in growing.module.parameters())


def test_state_is_a_copy_and_has_the_buffers(growing, examples):
    state = growing.state()
    before = {k: v.clone() for k, v in state["buffers"].items()}
    train(growing, "sgd", examples, 2)
    assert all(torch.equal(state["buffers"][k], v) for k, v in before.items())
    assert growing.state()["buffers"]["trunk.2.num_batches_tracked"] == 2
    growing.load(state)
    assert growing.module.trunk[2].num_batches_tracked == 0
    train(growing, "sgd", examples, 2)
    assert state["buffers"]["trunk.2.num_batches_tracked"] == 0


def test_evaluating_restores_each_modules_mode_also_after_an_error(growing, examples):
    growing.module.trunk.eval()  # a trunk that is held in eval mode while the rest trains
    modes = {name: m.training for name, m in growing.module.named_modules()}
    assert set(modes.values()) == {True, False}

    def fail() -> None:
        with growing.evaluating():
            assert not any(m.training for m in growing.module.modules())
            assert not torch.is_grad_enabled()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert {name: m.training for name, m in growing.module.named_modules()} == modes
    assert torch.is_grad_enabled()


def test_a_part_may_share_weights_with_the_trunk(growing):
    """Tied weights keep the place they had first, also in a copy."""
    growing.grow("a", seed=1)
    tied = nn.Linear(6, 5)
    tied.weight = growing.module.base.weight
    growing.module.parts["tied"] = tied
    growing._lay()
    assert torch.equal(growing.copy().theta, growing.theta)


class Columns(Growing):
    """Columns side by side, each with batch statistics; the last one answers, from what all others found."""

    def build(self, name):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 150), nn.BatchNorm1d(150), nn.Linear(150, 5))

    def forward(self, x):
        return sum(part(x) for part in self.parts.values())


def columns(frozen: int) -> Net:
    """So many frozen columns, and one that moves."""
    net = Net(Columns())
    for i in range(frozen):
        net.grow(f"c{i}", seed=i)
    net.freeze()
    net.grow("last", seed=99)
    return net


class Touched(TorchDispatchMode):
    """Counts the entries that operations write in place, or into a tensor given to them."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for word, value in zip(func._schema.arguments, args, strict=False):
            if word.alias_info is not None and word.alias_info.is_write and isinstance(value, torch.Tensor):
                self.entries += value.numel()
        if isinstance(out := (kwargs or {}).get("out"), torch.Tensor):
            self.entries += out.numel()
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw"])
def test_a_step_writes_as_many_entries_with_100_frozen_parts_as_with_one(name):
    counts = []
    for frozen in (1, 100):
        net, descent = columns(frozen), optimiser(name, 0.01, decay=0.1, clip=1.0)
        ones = torch.ones(net.size)
        descent.step(net)
        for _ in range(2):
            net.zero_grad()  # somebody may have had the vectors; from here on nobody does
        with Touched() as touched:
            net.zero_grad()
            descent.step(net)
            pull(net, ones, ones, 0.5)
        counts.append(touched.entries)
        assert net.frozen.sum() == frozen * (net.size // (frozen + 1))
    assert counts[0] == counts[1] > 0


def test_frozen_parameters_have_no_gradient_and_the_others_theirs(examples):
    net = columns(2)
    x, y = examples(8)
    F.cross_entropy(net(x), y).backward()
    assert not net.grad[net.frozen].any()
    net.frozen = None
    thawed = net.grad.clone()
    net.zero_grad()
    F.cross_entropy(net(x), y).backward()
    last = net.size * 2 // 3
    assert torch.equal(net.grad[last:], thawed[last:])
    assert net.grad[:last].any()


def test_what_is_written_into_the_whole_gradient_does_not_stay(examples):
    """A penalty on θ, or a learner, may write to frozen entries; they are cleared like the rest."""
    net = columns(2)
    for write in (lambda: net.theta.sum().backward(), lambda: net.grad.fill_(1.0)):
        write()
        assert net.grad.all()
        net.zero_grad()
        assert not net.grad.any()
    loss = net.theta.sum()
    net.zero_grad()  # before the backward pass, as learners do
    loss.backward()
    net.zero_grad()
    assert not net.grad.any()


def test_batch_statistics_of_a_frozen_part_do_not_move_in_training(examples):
    net = columns(1)
    held, moving = (net.module.parts[name][2] for name in ("c0", "last"))
    before = held.running_mean.clone(), held.running_var.clone()
    for step in range(5):
        if step == 2:
            net.module.train()  # as some do before every step
        if step == 3:
            with net.evaluating():
                net(examples(8)[0])
        train(net, "sgd", examples, 1)
    assert torch.equal(held.running_mean, before[0]) and torch.equal(held.running_var, before[1])
    assert held.num_batches_tracked == 0 and moving.num_batches_tracked == 5
    twin = net.copy()
    train(twin, "sgd", examples, 1)
    assert twin.module.parts["c0"][2].num_batches_tracked == 0


def test_freezing_all_holds_the_trunk_still_too(growing, examples):
    growing.freeze()
    growing.grow("new", seed=1)
    train(growing, "sgd", examples, 3)
    assert growing.module.trunk[2].num_batches_tracked == 0
    assert growing.module.parts["new"][1].num_batches_tracked == 3


def test_a_network_that_cannot_grow_is_held_still_and_set_free_by_its_state(examples):
    net = Net(nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.BatchNorm1d(6), nn.Linear(6, 5)))
    free = net.state()
    net.freeze()
    net.collect(*examples(8))  # finds nothing to change
    optimiser("sgd", 0.05, decay=0.01).step(net)
    assert net.module[2].num_batches_tracked == 0 and torch.equal(net.theta, free["theta"])
    again = net.fresh(0)
    train(again, "sgd", examples, 2)
    assert again.module[2].num_batches_tracked == 2 and not torch.equal(again.theta, net.theta)
    net.load(free)
    train(net, "sgd", examples, 2)
    assert net.module[2].num_batches_tracked == 2 and torch.equal(net.theta, again.theta)


def tensors(state) -> dict[int, int]:
    """Bytes by storage."""
    if isinstance(state, torch.Tensor):
        return {state.untyped_storage().data_ptr(): state.untyped_storage().nbytes()}
    inside = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else ()
    return {place: size for item in inside for place, size in tensors(item).items()}


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_one_more_state_holds_only_what_moves(name, examples):
    sizes = []
    for frozen in (1, 30):
        net, descent = columns(frozen), optimiser(name, 0.01)
        states = []
        for step in range(2):
            x, y = examples(8, seed=step)
            net.zero_grad()
            F.cross_entropy(net(x), y).backward()
            descent.step(net)
            states.append([net.state(), descent.state()])
        first, second = map(tensors, states)
        sizes.append(sum(size for place, size in second.items() if place not in first))
    assert sizes[0] == sizes[1] >= 4 * (64 * 150)


def test_a_state_is_of_its_moment_also_where_somebody_wrote_to_what_is_frozen(examples):
    net = columns(3)
    first = net.state()
    with torch.no_grad():
        net.module.parts["c1"][1].weight.data.fill_(-0.0)
    second = net.state()
    net.load(first)
    assert torch.equal(net.theta, columns(3).theta)
    net.load(second)
    weight = net.module.parts["c1"][1].weight
    assert not weight.any() and weight.signbit().all()
    shared = tensors(first).keys() & tensors(second).keys()
    assert len(shared) == 2 + 3 * 3  # of c0 and c2, and the three columns' statistics


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_growth_freezing_saving_and_loading_go_on_bit_for_bit(name, examples, tmp_path):
    def go(net, descent, steps):
        for step in steps:
            x, y = examples(8, seed=step)
            net.zero_grad()
            F.cross_entropy(net(x), y).backward()
            descent.step(net)

    net, descent = columns(2), optimiser(name, 0.05, decay=0.01)
    go(net, descent, range(3))
    net.freeze("last")
    net.grow("more", seed=5)
    net.frozen[-3:] = True  # a few entries of the part that moves
    go(net, descent, range(3, 6))
    save([net.state(), descent.state()], tmp_path / "state")
    held = net.theta.detach().clone()
    other, again = Net(Columns()), optimiser(name, 0.05, decay=0.01)
    weights, momenta = read(tmp_path / "state")
    other.load(weights)
    again.load(momenta)
    assert torch.equal(other.theta, held) and torch.equal(other.frozen, net.frozen)
    for each, mine in ((net, descent), (other, again)):
        go(each, mine, range(6, 9))
    assert torch.equal(other.theta, net.theta) and not torch.equal(net.theta, held)
    assert torch.equal(net.theta[net.frozen], held[net.frozen])
    assert all(torch.equal(a, b) for a, b in zip(other.module.buffers(), net.module.buffers(), strict=True))
