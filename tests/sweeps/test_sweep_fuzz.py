"""Whatever stands in a sweep file, it is a plan or a list of faults."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.sweeps import read_sweep, sweep_of

TOML = """name = "x"
seeds = [0, 1]
stream = {name = "rotated", tasks = 2, examples = 20, angles = [0, 90]}
[protocol]
lr = [0.01, 0.1]
[[method]]
name = "ewc"
strength = [1, 10]
[[cell]]
where.method = {name = "ewc", strength = 10}
set.protocol.lr = 0.5
"""
WORDS = st.sampled_from(
    "ewc er gem rotated split mlp conv online epochs digits class task none auto cpu ../x 0 1,2".split()
)
KEYS = st.sampled_from(
    "name seeds device method stream net protocol cell where set skip seed strength samples memories tasks examples "
    "angles order sizes data scenario val hidden filters lr batch epochs optimiser odd".split()
)
LEAVES = WORDS | st.integers(-2, 12) | st.floats() | st.booleans() | st.text(max_size=5) | st.none() | st.dates()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=8
)
TABLES = st.dictionaries(KEYS, VALUES, max_size=4).flatmap(
    lambda table: st.sampled_from(["ewc", "er", "rotated", "mlp", "online"]).map(lambda name: {"name": name, **table})
)
DOCUMENTS = st.fixed_dictionaries(
    {"method": TABLES | VALUES},
    optional={
        "stream": TABLES | VALUES,
        "net": TABLES | VALUES,
        "protocol": TABLES | VALUES,
        "seeds": VALUES,
        "device": VALUES,
        "name": VALUES,
        "cell": st.lists(
            st.fixed_dictionaries(
                {}, optional={"where": VALUES | TABLES, "set": VALUES | TABLES, "skip": VALUES, "method": TABLES}
            ),
            max_size=2,
        ),
    },
)
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def understood(make):
    try:
        cells, faults = make().cells, ()
    except hf.BadInput as error:
        cells, faults = (), error.faults
    assert bool(cells) != bool(faults) and all(faults)


@QUICK
@given(document=DOCUMENTS)
def test_documents(document):
    understood(lambda: sweep_of(document))


@QUICK
@given(
    cuts=st.lists(st.tuples(st.integers(0, len(TOML)), st.integers(0, 6), st.text(max_size=3)), min_size=1, max_size=4)
)
def test_files(cuts, tmp_path_factory):
    text = TOML
    for at, gone, new in cuts:
        text = text[:at] + new + text[at + gone :]
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    understood(lambda: read_sweep(path))
