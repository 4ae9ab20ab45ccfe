"""kill -9 at any moment: the same command goes on and ends bit for bit as the undisturbed one."""

import json
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.data import data_folder
from holdfast.sweeps import Cell, execute


def gone(pid):
    """Dead, perhaps not yet buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def states(out, name="*"):
    """The states of unfinished cells; a folder may go while it is looked into."""
    try:
        return set(out.glob(f"cells/*/checkpoint/{name}"))
    except FileNotFoundError:
        return set()


def test_a_run_killed_at_random_moments_ends_as_undisturbed(holdfast, compare, contents, undisturbed, tmp_path):
    dice, out = random.Random(0), tmp_path / "out"
    kills, code = 0, -9
    while code == -9:
        code = holdfast(f"{compare} --out {out}").kill_after(dice.uniform(0.1, 0.5 + 0.2 * kills))
        kills += code == -9
    assert code == 0 and kills >= 1
    assert contents(out) == undisturbed
    leftovers = [p for p in out.rglob("*") if p.name.startswith(".") or "checkpoint" in p.name]
    assert leftovers == []


SOURCES = ("digits", "synth", *(name for name in ("mnist", "cifar-10", "svhn") if (data_folder() / name).is_dir()))
ASSORTED = (
    f"compare er,ewc --stream assorted --data {','.join(SOURCES)} --tasks 5 --set stream.per_class=6,3,4 "
    "--set stream.augment=yes --set stream.scale=task --set stream.head=task --set net.hidden=20 --checkpoint-every 3 "
    "--jobs 2"
)


CROSSVAL = "crossval --epochs 3 --batch 20 --set protocol.lr=0.01,0.001 --set protocol.decay=0"


def killed_twice(command, holdfast, contents, whole, out):
    """It ends as if undisturbed, killed twice when it has saved some more states, however fast the machine is."""
    assert holdfast(f"{command} --out {whole}").wait() == 0
    dice = random.Random(1)
    for _ in range(2):
        seen, wanted = states(out), dice.randint(1, 3)
        before = len(seen)
        child = holdfast(f"{command} --out {out}")
        while len(seen) < before + wanted and not gone(child.pid):
            time.sleep(0.005)
            seen |= states(out)
        assert child.kill_after(dice.uniform(0.0, 0.02)) == -9
    assert holdfast(f"{command} --out {out}").wait() == 0
    assert contents(out) == contents(whole) and len(contents(out)) == 2


@pytest.mark.parametrize("protocol", ["online", "epochs --epochs 2", CROSSVAL], ids=lambda words: words.split()[0])
def test_so_does_one_on_several_data_sets_augmented_and_scaled(protocol, holdfast, contents, tmp_path):
    """Five tasks of 32×32 RGB from all data sets that are here; killed twice, soon after a state was saved."""
    stream = hf.stream("assorted", data=",".join(SOURCES))  # read before the processes are forked, and so by all
    out = tmp_path / "out"
    killed_twice(f"{ASSORTED} --protocol {protocol}", holdfast, contents, tmp_path / "whole", out)
    experiment = json.loads((out / "experiment.json").read_text())
    assert stream.info.shape == (3, 32, 32)
    assert {run["data"] for run in experiment["runs"]} == {stream.fingerprint}
    assert {run["stream"]["data"] for run in experiment["runs"]} == {",".join(SOURCES)}


@pytest.mark.slow
@pytest.mark.parametrize("methods", ["new_head,new_leg", "er,finetune"])
def test_so_does_a_transfer_stream_whose_tasks_choose_their_learning_rate(methods, holdfast, contents, tmp_path):
    """S⁻ on synth: six tasks, heads and legs of a ResNet, two trials for each task."""
    shown = "--stream ctrl --data synth --set stream.kind=minus --set stream.rows=0.02 --set stream.test=20"
    command = f"compare {methods} {shown} --net ctrl_resnet --set net.width=4 --protocol {CROSSVAL} --jobs 2"
    hf.stream("ctrl", data="synth")  # read before the processes are forked
    killed_twice(command, holdfast, contents, tmp_path / "whole", tmp_path / "out")


def test_a_run_killed_whenever_it_saves_a_state(holdfast, compare, contents, undisturbed, tmp_path):
    """Each time the first unfinished state is seen, in whatever stage its files are."""
    out, kills = tmp_path / "out", 0
    for _ in range(6):
        child = holdfast(f"{compare} --out {out}")
        before = states(out)
        while not (states(out, "*.part") - before) and os.waitpid(child.pid, os.WNOHANG)[0] == 0:
            pass
        try:
            os.kill(child.pid, signal.SIGKILL)
            kills += child.wait() == -9
        except (ProcessLookupError, ChildProcessError):
            break
    assert kills >= 3
    assert holdfast(f"{compare} --out {out}").wait() == 0
    assert contents(out) == undisturbed


def test_a_killed_parent_takes_its_workers_along(child, tmp_path):
    stream = hf.stream("split", tasks=2, examples=60)
    cells = [
        Cell(hf.method("finetune"), stream, hf.net("mlp"), hf.protocol("epochs", epochs=10000), seed)
        for seed in range(2)
    ]
    pids = tmp_path / "pids"

    def noted(event):
        if len(multiprocessing.active_children()) == 2:
            pids.write_text(" ".join(str(p.pid) for p in multiprocessing.active_children()))

    parent = child(lambda: bool(execute(cells, jobs=2, watch=noted)))
    while not pids.exists() or len(pids.read_text().split()) < 2:
        time.sleep(0.01)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 300
    while not all(map(gone, pids.read_text().split())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert all(map(gone, pids.read_text().split()))


def test_a_folder_killed_before_it_had_begun_is_taken_up(holdfast, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / ".lock").write_text("1")
    (out / ".experiment.json.x1y2").write_text("{")
    assert holdfast(f"run finetune --tasks 2 --examples 20 --out {out}").wait() == 0
    assert holdfast(f"run finetune --tasks 2 --examples 20 --lr 0.3 --fresh --out {out}").wait() == 0
    assert {p.name for p in out.iterdir()} == {"cells", "experiment.json", "report.html", "summary.json"}


def test_a_damaged_checkpoint_is_told_and_the_one_before_it_used(holdfast, compare, contents, undisturbed, tmp_path):
    found: list[Path] = []
    while not found:  # a run that was over before the kill came has thrown its states away
        out = tmp_path / f"out{len([*tmp_path.iterdir()])}"
        child = holdfast(f"{compare} --out {out}")
        while not states(out, "[2-9]"):
            pass
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        found = [*out.glob("cells/*/checkpoint/[2-9]")]
    whose = found[0].parent
    newest = max(int(p.name) for p in whose.iterdir() if p.name.isdecimal())
    tensors = whose / str(newest) / "tensors.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-7])
    child = holdfast(f"{compare} --out {out}")
    assert child.wait() == 0
    said = [line for line in child.said.read_text().splitlines() if "cannot be used" in line]
    who = whose.parent.name.split("-")[0]
    assert said == [
        f"{who} seed 0: a checkpoint cannot be used (tensors.safetensors is damaged); goes on from the one before"
    ]
    assert contents(out) == undisturbed
