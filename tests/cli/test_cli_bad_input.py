"""Bad input: exit 2, one line per fault that names the thing and what to write instead, and nothing is written."""

import os
from pathlib import Path

import pytest

OWN = '''
from dataclasses import dataclass
import holdfast as hf
from torch import nn

@dataclass
class Needy(hf.Learner):
    much: int
    def observe(self, batch): ...

class Half(hf.Learner):
    """Without observe."""

number = 3

def number_net(info): return 3
def narrow(info): return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
def crash(info): raise KeyError("oops")

class TakesTwo(nn.Module):
    def __init__(self, info, width): ...

@dataclass(frozen=True)
class Shows(hf.Passing):
    passes = 1
    much: int = 1

@dataclass(frozen=True, kw_only=True)
class Wants(hf.Passing):
    passes = 1
    much: int

class Unfinished(hf.Protocol): ...

@dataclass(frozen=True)
class Trips(hf.Passing):
    passes = 1
    def faults(self, learner, stream): raise KeyError("oops")

@dataclass(frozen=True)
class Falls(hf.Passing):
    passes = 1
    def descent(self): raise SystemExit(3)

@dataclass(frozen=True)
class Cuts(hf.StreamSpec):
    high: bool = False
    def plan(self, data, seed):
        return "class", 2, [hf.Plan("all", (0, 1), (0, 1))]

class Uncut(hf.StreamSpec): ...

@dataclass(frozen=True)
class Slips(hf.StreamSpec):
    def plan(self, data, seed): raise IndexError("no such row")
'''


def refused(holdfast, here: Path, command: str) -> list[str]:
    """The complaints of a command that must be refused and must not have written anything."""
    before = sorted(here.rglob("*"))
    done = holdfast(command)
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    assert [p for p in sorted(here.rglob("*")) if "__pycache__" not in p.parts] == before
    return done.complaints


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        # names
        ("run gme", ["method 'gme'", "'gem'"]),
        ("run zzzzz", ["method 'zzzzz'", "choose from", "ewc"]),
        ("run gem --stream permted", ["stream 'permted'", "'permuted'"]),
        ("run gem --data mnits", ["data set 'mnits'", "'mnist'"]),
        ("run gem --stream assorted --data digits,mnits", ["data set 'mnits'", "'mnist'"]),
        ("run gem --data digits,synth", ["stream 'split'", "one data set, not from digits, synth", "'assorted'"]),
        ("run gem --stream assorted --set stream.per_class=20,5 --examples 9", ["per_class", "leave examples out"]),
        ("run gem --net mpl", ["net 'mpl'", "'mlp'"]),
        ("run gem --protocol onlin", ["protocol 'onlin'", "'online'"]),
        ("run gem --scenario clas", ["scenario", "class, domain, task", "'clas'"]),
        ("run gem --optimiser adm", ["optimiser", "sgd, momentum, adam", "'adm'"]),
        ("run gem --set protocol.schedule=cosin", ["schedule", "constant, cosine, step", "'cosin'"]),
        ("run gem --set protocol.clip=-1", ["clip", "number >= 0", "'-1'"]),
        ("run gem --set protocol.schedul=cosine", ["'schedul'", "'schedule'"]),
        ("run gem --set protocol.schedule_every=9", ["schedule_every", "ignored", "schedule=step"]),
        ("run gem --set schedule=step", ["'schedule'", "'protocol.schedule'"]),
        ("run gem --device gpu", ["device 'gpu'", "auto, cpu, cuda, mps"]),
        # types and ranges
        ("run gem --tasks abc", ["tasks", "whole number >= 1", "'abc'"]),
        ("run gem --tasks 0", ["tasks", "whole number >= 1", "'0'"]),
        ("run gem --tasks 1.5", ["tasks", "whole number", "'1.5'"]),
        ("run gem --examples -3", ["examples", "whole number >= 1", "'-3'"]),
        ("run gem --lr -1", ["lr", "> 0", "'-1'"]),
        ("run gem --lr nan", ["lr", "> 0", "'nan'"]),
        ("run gem --batch 0", ["batch", ">= 1", "'0'"]),
        ("run gem --epochs 0", ["epochs", ">= 1", "'0'"]),
        ("run gem --epochs many", ["epochs", ">= 1", "'many'"]),
        ("run gem --jobs 0", ["jobs", ">= 1", "'0'"]),
        ("run gem --threads 0", ["threads", "from 1 to 256", "'0'"]),
        ("run gem --threads many", ["threads", "from 1 to 256", "'many'"]),
        ("run gem --thread 2", ["'--thread'", "'--threads'"]),
        ("run gem --checkpoint-every 0", ["checkpoint_every", ">= 1", "'0'"]),
        ("run gem --seeds a", ["seeds", ">= 0", "'a'"]),
        ("run gem --seeds -1", ["seeds", ">= 0", "'-1'"]),
        ("run gem --seeds ''", ["seeds", ">= 0", "''"]),
        ("run gem --seeds 1,2,1", ["seed 1", "twice"]),
        ("compare gem,er --scenario class,clas --out out", ["scenario", "class, domain, task", "'clas'"]),
        ("compare gem,er --scenario class,class --out out", ["scenario 'class'", "given twice"]),
        ("run gem --scenario ''", ["scenario", "class, domain, task"]),
        # --set
        ("run gem --set memories", ["NAME=VALUE", "'memories'"]),
        ("run gem --set =3", ["NAME=VALUE", "'=3'"]),
        ("run gem --set memories=-1", ["memories", ">= 1", "'-1'"]),
        ("run gem --set memries=3", ["'memries'", "'memories'"]),
        ("run finetune --set memories=3", ["'memories'", "no settings"]),
        ("compare gem,ewc --set bogus=1", ["'bogus'", "memories", "strength"]),
        ("run gem --set lr=0.1", ["'lr'", "'protocol.lr'"]),
        ("run finetune --stream slt --set parts=d5-5", ["'parts'", "'stream.parts'"]),
        ("run finetune --protocol realistic --set stream.val=0.1 --set later_lr=0.1", ["'protocol.later_lr'"]),
        ("run finetune --set hidden=3", ["'hidden'", "'net.hidden'"]),
        ("compare gem,ewc --set er.memories=3", ["er.memories", "not run here"]),
        ("run gem --set nte.hidden=3", ["'nte'", "'net'"]),
        ("run gem --set net.hiden=3", ["'hiden'", "'hidden'"]),
        ("run gem --set net.hidden=0", ["hidden", ">= 1", "'0'"]),
        ("run gem --set protocol.score_every=x", ["score_every", ">= 0", "'x'"]),
        ("run gem --set protocol.score=end", ["score of protocol 'online'", "all, seen, ends", "'end'"]),
        ("run gem --set stream.seed=x", ["seed of stream 'split'", "whole number >= 0", "'x'"]),
        ("run gem --set stream.seed=-1", ["seed of stream 'split'", ">= 0", "'-1'"]),
        ("run gem --set stream.sed=1", ["'sed'", "'seed'"]),
        ("run gem --set seed=1", ["'seed'", "'stream.seed'"]),
        ("run gem --set memories=3 --set memories=4", ["memories", "twice"]),
        ("run gem --lr 0.1 --set protocol.lr=0.2", ["protocol.lr", "twice"]),
        # impossible together
        ("run gem --tasks 11", ["11 tasks", "10 classes"]),
        ("run gem --set stream.sizes=2,2,2,2,2,2 --tasks 6", ["12 classes", "10"]),
        ("run gem --examples 99999", ["99999", "at most"]),
        ("run gem --stream rotated --set stream.angles=1,2,3", ["angles", "3 values"]),
        ("run gem --net resnet --set net.maps=0", ["maps", ">= 1"]),
        ("run independent", ["'independent'", "scenario 'task'"]),
        ("run gem --set net.hidden=1000000000,1000000000", ["network", "memory"]),
        ("run gem --data mnist --set stream.val=1", ["train-images-idx3-ubyte.gz", "holdfast data fetch mnist"]),
        # usage
        ("run", ["no method", "holdfast list methods"]),
        ("compare ,", ["no method", "holdfast list methods"]),
        ("run gem,ewc", ["one method", "holdfast compare gem,ewc"]),
        ("run gem ewc", ["one method", "holdfast compare gem,ewc"]),
        ("compare gem,gem", ["'gem'", "twice"]),
        ("run gem --steam permuted", ["'--steam'", "'--stream'"]),
        ("run --quite gem", ["'--quite'", "'--quiet'"]),
        ("run gem --lr", ["'--lr'", "requires an argument"]),
        ("run gem --json=yes", ["'--json'"]),
        ("hlep", ["command 'hlep'", "'--help'"]),
        ("comapre gem,ewc", ["command 'comapre'", "'compare'"]),
        ("data stauts", ["command 'stauts'", "'status'"]),
        ("--verson", ["'--verson'", "'--version'"]),
        ("demo gem", ["gem", "holdfast demo --help"]),
        ("demo --ot x", ["'--ot'", "'--out'"]),
        ("list metods", ["'metods'", "'methods'"]),
        ("list methods gme", ["'gme'", "'gem'"]),
        ("list data mnits", ["'mnits'", "'mnist'"]),
        ("list methods --jsn", ["'--jsn'", "'--json'"]),
        ("report", ["'DIR'", "holdfast report --help"]),
        ("report nowhere", ["nowhere", "experiment.json"]),
        ("audit nowhere", ["nowhere", "experiment.json"]),
        ("data fetch mnits", ["'mnits'", "'mnist'"]),
        ("data verify mnits", ["'mnits'", "'mnist'"]),
        # a user's own code
        ("run mine.py:Nedy", ["'Nedy'", "'Needy'"]),
        ("run mine.py", ["mine.py", "Needy or Half"]),
        ("run nowhere.py:Mine", ["nowhere.py", "not a file"]),
        ("run broken.py:Mine", ["broken.py", "SyntaxError"]),
        ("run mine.py:Needy", ["'Needy'", "--set much="]),
        ("run mine.py:Half", ["Half", "observe"]),
        ("run mine.py:number", ["number of mine.py", "not a Learner"]),
        ("run gem --net mine.py:number", ["number of mine.py", "function of info"]),
        ("run gem --net mine.py:narow", ["'narow'", "'narrow'"]),
        ("run gem --net mine.py:narrow", ["(3,)", "(10,)"]),
        ("run gem --net mine.py:number_net", ["nn.Module", "int"]),
        ("run gem --net mine.py:crash", ["KeyError", "oops"]),
        ("run gem --net mine.py:TakesTwo", ["TakesTwo", "one argument", "'width'"]),
        ("run gem --protocol mine.py:Show", ["Protocol of mine.py", "'Show'", "'Shows'"]),
        ("run gem --protocol mine.py", ["which Protocol of mine.py", "mine.py:Shows or Wants"]),
        ("run gem --protocol mine.py:number", ["number of mine.py", "not a Protocol", "holdfast.Protocol"]),
        ("run gem --protocol mine.py:Cuts", ["Cuts of mine.py", "not a Protocol"]),
        ("run gem --protocol mine.py:Unfinished", ["Unfinished", "does not define descent, show"]),
        ("run gem --protocol mine.py:Wants", ["'Wants'", "--set protocol.much="]),
        ("run gem --protocol mine.py:Shows --set protocol.mcuh=1", ["'mcuh' of protocol 'Shows'", "'much'"]),
        ("run gem --protocol mine.py:Shows --set protocol.much=x", ["much of protocol 'Shows'", "whole number", "'x'"]),
        ("run gem --protocol mine.py:Shows --set much=1", ["'much'", "'protocol.much'"]),
        ("run gem --protocol mine.py:Shows --epochs 3", ["'epochs' of protocol 'Shows'"]),
        ("run gem --protocol mine.py:Trips", ["protocol 'Trips' cannot be used", "KeyError", "oops"]),
        ("run gem --protocol mine.py:Falls", ["protocol 'Falls' cannot be used", "SystemExit"]),
        ("run gem --protocol broken.py:Mine", ["broken.py", "SyntaxError"]),
        ("run gem --protocol nowhere.py:Mine", ["nowhere.py", "not a file"]),
        ("run gem --stream mine.py:Cut", ["StreamSpec of mine.py", "'Cut'", "'Cuts'"]),
        ("run gem --stream mine.py:number", ["number of mine.py", "not a StreamSpec", "holdfast.StreamSpec"]),
        ("run gem --stream mine.py:Uncut", ["Uncut", "does not define plan"]),
        ("run gem --stream mine.py:Cuts --set stream.hihg=1", ["'hihg' of stream 'Cuts'", "'high'"]),
        ("run gem --stream mine.py:Cuts --set stream.seed=x", ["seed of stream 'Cuts'", "'x'"]),
        ("run gem --stream mine.py:Cuts --set high=1", ["'high'", "'stream.high'"]),
        ("run gem --stream mine.py:Cuts --examples 99999", ["99999", "at most"]),
        ("run gem --stream mine.py:Slips", ["stream 'Slips' cannot be made", "IndexError", "no such row"]),
        # folders
        ("run gem --out mine.py", ["mine.py", "file"]),
        ("run gem --out mine.py/below", ["mine.py", "file"]),
        ("run gem --out .", ["experiment.json"]),
    ],
)
def test_one_fault_is_one_line(holdfast, here, command, parts):
    (here / "mine.py").write_text(OWN)
    (here / "broken.py").write_text("def f(:")
    complaints = refused(holdfast, here, command)
    assert len(complaints) == (4 if "mnist --set" in command else 1), complaints  # MNIST lacks four files
    for part in parts:
        assert part in complaints[0]


def test_all_faults_are_told_at_once(holdfast, here):
    complaints = refused(
        holdfast,
        here,
        "compare gme,ewx --stream permted --lr -1 --set bogus=1 --seeds a --tasks 0 --device gpu --steam x --out .. "
        "--data mnits --net mpl --set novalue",
    )
    expected = (
        "'--steam' 'gme' 'ewx' 'permted' lr 'bogus' seeds tasks 'gpu' 'mnits' 'mpl' 'novalue' experiment.json".split()
    )
    assert len(complaints) == len(expected)
    for thing in expected:
        assert sum(thing in line for line in complaints) >= 1, thing


def test_a_report_is_refused_for_where_it_comes_from_and_where_it_goes(holdfast, here):
    nothing, a_folder = refused(holdfast, here, "report nowhere --out .")
    assert "experiment.json" in nothing and "name of a file" in a_folder


def test_stream_and_net_are_looked_at_beside_other_faults(holdfast, here):
    complaints = refused(holdfast, here, "run gme --tasks 11 --batch 0")
    assert [("gme" in c, "11 tasks" in c, "batch" in c) for c in complaints] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    complaints = refused(holdfast, here, "run gme --set net.filters=1,1,1,1,1 --net conv --lr x")
    assert any("'conv' needs images" in c for c in complaints) and len(complaints) == 3


def test_setting_of_an_unknown_method_is_not_held_against_it(holdfast, here):
    assert len(refused(holdfast, here, "run gme --set memories=3 --set gme.margin=1")) == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_folder_that_cannot_be_written(holdfast, here):
    (here / "locked").mkdir(mode=0o500)
    assert "cannot be written" in refused(holdfast, here, "run gem --out locked/out")[0]


def test_damaged_results_are_told_in_one_line(holdfast, here):
    holdfast("run gem TINY --out out --quiet")
    (record,) = (here / "out").glob("cells/*/record.json")
    record.write_text("{")
    for command in ("report out", "audit out", "run gem TINY --out out"):
        done = holdfast(command)
        assert done.code == 2 and len(done.complaints) == 1 and "record" in done.complaints[0]
