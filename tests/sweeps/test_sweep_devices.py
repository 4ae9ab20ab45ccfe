"""Devices are looked up where cells are made, and touched only where they are run: CUDA that has begun cannot fork."""

import os
import random

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.cli import main
from holdfast.seeds import seeded
from holdfast.sweeps import Failure, execute
from holdfast.sweeps.cell import pick_device

NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"  # with it, torch asks the driver's library and does not begin to use CUDA


@pytest.fixture
def cuda(tmp_path, monkeypatch):
    """One device that only pretends. `cuda()`: the processes in which CUDA was begun."""
    path, zeros = tmp_path / "pids", torch.zeros

    def note():
        with path.open("a") as file:
            file.write(f"{os.getpid()}\n")

    def begun(*args, **words):
        note()
        raise RuntimeError("no such device")

    def noted_zeros(*args, **words):
        if str(words.get("device")).startswith("cuda"):
            note()
        return zeros(*args, **words)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for module in (torch.cuda, torch.cuda.random):
        monkeypatch.setattr(module, "_lazy_init", begun)
    monkeypatch.setattr(torch, "zeros", noted_zeros)
    path.touch()
    return lambda: [int(pid) for pid in path.read_text().split()]


def elsewhere(pids):
    return len(set(pids)) == 2 and os.getpid() not in pids


@pytest.mark.parametrize("device", ["auto", "cuda", "cuda:0"])
def test_compare_begins_cuda_in_its_processes_alone(cuda, stream, device):
    found = hf.compare(["finetune", "er"], stream, seeds=1, jobs=2, device=device)
    assert elsewhere(cuda())
    used = "cuda" if device == "auto" else device
    assert [f.reason for f in found.failures] == [f"device {used!r} cannot be used: no such device"] * 2


def test_sweeps_and_the_command_line_do_so_too(cuda, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.toml").write_text(
        'method = ["finetune", "er"]\nstream = {tasks = 2, examples = 20}\nnet = ["mlp"]\n'
    )
    for command in (
        "compare finetune,er --tasks 2 --examples 20 --jobs 2 --out out",
        "sweep some.toml --jobs 2 --out store",
    ):
        (tmp_path / "pids").write_text("")
        assert main(command.split()) == 1
        assert elsewhere(cuda())
    assert "cannot be used: no such device" in capsys.readouterr().err


def test_looking_does_not_begin_cuda_and_leaves_the_environment_alone(monkeypatch):
    asked = []

    def is_available():
        asked.append(os.environ.get(NVML))
        return False

    monkeypatch.setattr(torch.cuda, "is_available", is_available)
    for before in (None, "0"):
        if before is None:
            monkeypatch.delenv(NVML, raising=False)
        else:
            monkeypatch.setenv(NVML, before)
        pick_device("auto")
        assert os.environ.get(NVML) == before
    assert asked == ["1", "1"]


@pytest.mark.parametrize("name", ["cuda:1", "cuda:x", "mps", "meta", "tpu9", "", "xpu"])
def test_what_is_not_there_is_refused_without_touching_it(cuda, name):
    with pytest.raises(hf.BadInput) as caught:
        pick_device(name)
    assert str(caught.value) == f"device {name!r} is not available here; choose from auto, cpu, cuda, mps"
    assert cuda() == []


def test_auto_is_cuda_then_mps_then_cpu(cuda, monkeypatch):
    assert str(pick_device("auto")) == "cuda" and str(pick_device("cuda:0")) == "cuda:0"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert str(pick_device("auto")) == "mps"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert str(pick_device("auto")) == "cpu"
    assert cuda() == []


def test_where_cuda_has_begun_its_cells_are_run_here_and_others_are_not(cuda, cell, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: [])
    notes = []

    def run(device):
        notes.clear()
        cells = [cell("finetune", seed, device=device) for seed in range(2)]
        return execute(cells, jobs=2, watch=lambda event: notes.append(event.note) if event.note else None)

    assert all(isinstance(found, Failure) for found in run("cuda"))
    assert set(cuda()) == {os.getpid()}
    assert notes == [
        "the cells are run in this process, one after the other: it has begun to use CUDA, "
        "and processes forked from it could not"
    ]
    assert not any(isinstance(found, Failure) for found in run("cpu")) and notes == []


def test_known_seeds_do_not_begin_cuda_and_leave_all_dice_as_they_were(cuda):
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    with seeded(3):
        drawn = torch.rand(1).item(), np.random.rand(), random.random()
    assert cuda() == []
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]
    with seeded(3):
        assert (torch.rand(1).item(), np.random.rand(), random.random()) == drawn


def test_cudas_dice_are_as_they_would_have_been_when_a_run_has_begun_it(monkeypatch):
    """Before CUDA begins it has no state to put back; when it begins, its seed is the one that torch was given."""
    torch.manual_seed(11)
    given, begun = [], [False]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: begun[0])
    with seeded(3):
        begun[0] = True
        monkeypatch.setattr(torch.cuda, "manual_seed_all", given.append)
    assert given == [11]
