"""A LIBSVM file of 1 GB: as fast as scikit-learn's loader, in 1.5 times the memory of the matrix."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.slow

SIZE = 10**9
_MEASURE = """
import json, resource, sys, time
from dualfree.io import read_libsvm
from sklearn.datasets import load_svmlight_file

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

which, small, large = sys.argv[1:]
read = read_libsvm if which == "dualfree" else load_svmlight_file
read(small)  # compiled code and imports are not what is measured
before, began = peak(), time.perf_counter()
result = read(large)
seconds = time.perf_counter() - began
X = result.X if which == "dualfree" else result[0]
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + 8 * X.shape[0]
print(json.dumps({"seconds": seconds, "memory": (peak() - before) / size, "sum": float(X.sum()), "shape": X.shape}))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One block of rows as text, and the same repeated until it is 1 GB."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(20_000):
        indices = np.unique(rng.integers(1, 50_000, size=75))
        values = rng.random(indices.size)
        lines.append("1 " + " ".join(f"{i}:{v:.6g}" for i, v in zip(indices.tolist(), values.tolist(), strict=True)))
    block = ("\n".join(lines) + "\n").encode()
    (folder / "small.svm").write_bytes(block[: block.index(b"\n") + 1])
    with open(folder / "large.svm", "wb") as file:
        for _ in range(-(-SIZE // len(block))):
            file.write(block)
    yield folder
    (folder / "large.svm").unlink()


def measure(which, folder):
    command = [sys.executable, "-c", _MEASURE, which, str(folder / "small.svm"), str(folder / "large.svm")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=True)
    return json.loads(done.stdout)


def test_one_gigabyte(files):
    ours, theirs = measure("dualfree", files), measure("scikit-learn", files)
    print(ours, theirs)
    assert ours["shape"] == theirs["shape"]
    assert ours["sum"] == pytest.approx(theirs["sum"], rel=1e-12)
    assert ours["seconds"] <= theirs["seconds"]
    assert ours["memory"] <= 1.5
