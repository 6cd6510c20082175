"""NumPy archives, good and hostile."""

import io
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse

from dualfree.io import DataError, read_data


def parts(**changes):
    X = scipy.sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], dtype=np.float32))
    held = {
        "data": X.data,
        "indices": X.indices,
        "indptr": X.indptr,
        "shape": np.array(X.shape),
        "y": np.array([1, -1]),
    }
    held.update(changes)
    return {key: value for key, value in held.items() if value is not None}


def read(arrays, **options):
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    file.name = "data.npz"
    return read_data(file, **options)


def test_sparse_without_a_change_of_type():
    data = read(parts())
    assert data.X.dtype == np.float32
    assert data.X.toarray().tolist() == [[1, 0, 2], [0, 3, 0]]
    assert data.y.tolist() == [1, -1]


def test_dense():
    assert read({"X": np.eye(2), "y": np.array(["a", "b"])}).y.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": np.array([0, 2])}, "the parts do not fit together"),
        ({"indptr": np.array([0, 4, 3])}, "indptr must rise from 0"),
        ({"indptr": np.array([0, 1, 2])}, "indptr must rise from 0"),
        ({"indices": np.array([0, 2, 3])}, "indices must lie between 0 and 2"),
        ({"indices": np.array([0, -1, 1])}, "indices must lie between 0 and 2"),
        ({"indices": np.array([0.0, 1.0, 2.0])}, "indices must be a vector of whole numbers"),
        ({"shape": np.array([2])}, "shape must be two numbers"),
        ({"shape": np.array([2, 10**12])}, "it has 1000000000000 features, the limit is"),
        ({"data": np.array(["a", "b", "c"])}, "data must hold real numbers"),
        ({"y": np.array([1.0])}, "y must have one entry per row"),
        ({"y": None}, "it holds no target y"),
        ({"data": None}, "expected the arrays data, indices, indptr, shape and y"),
        ({"data": np.array([object()] * 3)}, "which are never loaded"),
    ],
)
def test_what_does_not_fit(changes, message):
    with pytest.raises(DataError, match=message):
        read(parts(**changes))


def archive(name, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        target.writestr(name, content)
    file.seek(0)
    file.name = "data.npz"
    return file


def test_pickles_are_never_opened():
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was opened",))

    header = (
        b"\x93NUMPY\x01\x00\x46\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(69) + b"\n"
    )
    with pytest.raises(DataError, match="never loaded"):
        read_data(archive("X.npy", header + pickle.dumps(Trap())))


def test_header_that_asks_for_more_than_is_there():
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 9), }"
    content = b"\x93NUMPY\x01\x00" + len(header + b" \n").to_bytes(2, "little") + header + b" \n" + bytes(16)
    with pytest.raises(DataError, match="its header asks for shape"):
        read_data(archive("X.npy", content))


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"PK\x03\x04" + bytes(100)])
def test_not_an_archive(content):
    file = io.BytesIO(content)
    file.name = "data.npz"
    with pytest.raises(DataError, match=r"not a readable \.npz archive"):
        read_data(file)
