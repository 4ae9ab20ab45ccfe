"""Results do not change by accident: R of every method, stream and protocol is bit for bit the pinned one."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from holdfast.methods import Weighing, methods
from holdfast.protocols import protocols

_spec = importlib.util.spec_from_file_location("pinned_make", Path(__file__).with_name("make.py"))
assert _spec is not None and _spec.loader is not None
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)


@pytest.fixture(scope="module")
def pinned():
    return json.loads(make.FILE.read_text())


def test_every_method_stream_and_protocol_is_pinned(pinned):
    assert set(make.PROTOCOLS) == set(protocols.names())
    wanted = {
        f"{method} on {stream} under {protocol}, seed {seed}"
        for method in methods.names()
        for stream in make.STREAMS
        for protocol in make.PROTOCOLS
        for seed in make.SEEDS
    }
    assert set(pinned["R"]) == wanted


def test_refused_are_only_those_that_cannot_be(pinned):
    refused = {name.partition(",")[0] for name, R in pinned["R"].items() if R == "refused"}
    needing = {
        f"{method} on split {scenario} under {protocol}"
        for method in methods.names()
        if methods.find(method).needs_task
        for scenario in ("class", "domain")
        for protocol in make.PROTOCOLS
    }
    mixing = {
        f"joint on {stream} under {selecting}"
        for stream in make.STREAMS
        for selecting in ("prescient", "realistic", "application", "crossval")
    }
    weighing = {name for name in methods.names() if issubclass(methods.find(name), Weighing)}  # terms of a loss
    unknown = {f"{name} on {stream} under early" for name in {*methods.names()} - weighing for stream in make.STREAMS}
    assert refused == needing | mixing | unknown


def test_results_are_bit_for_bit_the_pinned_ones(pinned):
    if make.versions() != pinned["versions"]:
        pytest.skip(f"pinned with {pinned['versions']}, this is {make.versions()}")
    found = make.measured()
    changed = {name: (pinned["R"].get(name), R) for name, R in found.items() if pinned["R"].get(name) != R}
    assert not changed, f"{len(changed)} of {len(found)} results changed; if that is meant, tests/pinned/make.py"
