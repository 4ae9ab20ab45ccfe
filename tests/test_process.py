"""What our own processes ask of the machine."""

import subprocess
import sys

import pytest

FAULTS = """
import resource
from holdfast.process import keep_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        bytearray(4 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults())
keep_memory()
faults()
print(faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc gives blocks back at once")
def test_memory_that_is_kept_is_not_asked_of_the_machine_again():
    said = subprocess.run([sys.executable, "-c", FAULTS], check=True, capture_output=True, text=True).stdout.split()
    before, after = map(int, said)
    assert before > 1000  # 20 blocks of 1,024 pages
    assert after < 100
