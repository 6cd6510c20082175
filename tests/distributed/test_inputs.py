"""Everything that Dask users have becomes the same rows in the same order, and bad data become one sentence."""

import bz2
import gzip

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

from dualfree.distributed import (
    Block,
    ClusterError,
    Partitions,
    from_array,
    from_dataframe,
    from_delayed,
    from_libsvm,
    scatter,
)
from dualfree.distributed.inputs.files import read_libsvm_files
from dualfree.distributed.inputs.survey import survey
from dualfree.distributed.inputs.waiting import collect, make_resident
from dualfree.io import read_libsvm
from dualfree.io.libsvm_ranges import read_libsvm_range, split_file

N, D = 60, 4


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    X = np.round(random.normal(size=(N, D)), 6)
    X[random.random(X.shape) < 0.3] = 0.0
    return X, (X[:, 0] > 0).astype(int), random.integers(1, 4, size=N).astype(float)


def gathered(client, partitions):
    """The rows of all partitions as the workers hold them."""
    blocks = client.gather(make_resident(client, partitions.blocks))
    X = np.vstack([block.X.toarray() if scipy.sparse.issparse(block.X) else block.X for block in blocks])
    y = np.concatenate([block.y for block in blocks])
    weights = [block.sample_weight for block in blocks]
    return X, y, None if weights[0] is None else np.concatenate(weights), blocks


def surveyed(client, partitions, task="classification"):
    return survey(client, make_resident(client, partitions.blocks), task, timeout=30.0)


def assert_same(client, partitions, rows, weighted=True):
    X, y, weights, blocks = gathered(client, partitions)
    np.testing.assert_array_equal(X, rows[0])
    np.testing.assert_array_equal(y, rows[1])
    if weighted:
        np.testing.assert_array_equal(weights, rows[2])
    else:
        assert weights is None
    return blocks


# --- dask arrays ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_of_an_array_stay_what_they_are(client, rows, dtype):
    X = rows[0].astype(dtype)
    partitions = from_array(da.from_array(X, chunks=(20, D)), da.from_array(rows[1], chunks=20))
    blocks = assert_same(client, partitions, (X, rows[1]), weighted=False)
    assert [block.X.dtype for block in blocks] == [dtype] * 3
    assert partitions.n_features == D


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csr_array, scipy.sparse.csc_array])
@pytest.mark.parametrize("columns", [D, 3])
def test_sparse_blocks_stay_sparse(client, rows, kind, columns):
    X = da.from_array(rows[0], chunks=(20, columns)).map_blocks(kind)
    blocks = assert_same(client, from_array(X, da.from_array(rows[1], chunks=20)), rows, weighted=False)
    assert all(scipy.sparse.issparse(block.X) and block.X.format == "csr" for block in blocks)


def test_blocks_of_columns_and_other_rows_are_brought_together(client, rows):
    X, y, s = rows
    partitions = from_array(
        da.from_array(X, chunks=(25, 3)), da.from_array(y, chunks=11), da.from_array(s, chunks=(7, *[53]))
    )
    assert len(assert_same(client, partitions, rows)) == 3
    assert_same(client, from_array(da.from_array(X, chunks=(25, D)), y, s), rows)


def test_unknown_lengths_are_fine(client, rows):
    everything = da.from_array(np.column_stack([rows[0], rows[1]]), chunks=(20, -1))
    kept = everything[everything[:, 0] >= 0]
    assert np.isnan(kept.shape[0])
    X, y, _, blocks = gathered(client, from_array(kept[:, :-1], kept[:, -1]))
    wanted = rows[0][:, 0] >= 0
    np.testing.assert_array_equal(X, rows[0][wanted])
    np.testing.assert_array_equal(y, rows[1][wanted])
    assert len(blocks) == 3


def test_arrays_that_do_not_fit_together(rows):
    X, y, _ = rows
    whole = da.from_array(X, chunks=(20, D))
    with pytest.raises(ValueError, match=r"y must have one entry per row of X \(60\), got 59"):
        from_array(whole, da.from_array(y[:-1], chunks=20))
    with pytest.raises(
        ValueError, match=r"lengths .* unknown.* X has 3 blocks of rows, sample_weight has 2.*compute_chunk"
    ):
        from_array(whole[whole[:, 0] > 0], da.from_array(y, chunks=20), da.from_array(y, chunks=30))
    with pytest.raises(ValueError, match="y must have one dimension"):
        from_array(whole, da.from_array(X, chunks=20))
    with pytest.raises(ValueError, match="X must have two dimensions"):
        from_array(da.from_array(y, chunks=20), y)


def test_what_x_and_y_share_is_computed_once(client, rows, tmp_path):
    def load(k):
        with open(tmp_path / f"loaded-{k}", "a") as log:
            log.write("x")
        return np.column_stack([rows[0], rows[1]])[20 * k : 20 * (k + 1)]

    parts = [da.from_delayed(dask.delayed(load)(k), (20, D + 1), dtype=float) for k in range(3)]
    everything = da.concatenate(parts)
    assert_same(client, from_array(everything[:, :-1], everything[:, -1]), rows, weighted=False)
    assert [(tmp_path / f"loaded-{k}").read_text() for k in range(3)] == ["x"] * 3


# --- dask dataframes --------------------------------------------------------------------------------------------------


@pytest.fixture
def frame(rows):
    X, y, s = rows
    table = pd.DataFrame(X, columns=list("abcd"))
    table["target"], table["weight"] = y, s
    return table


def test_parquet_on_disk(client, frame, rows, tmp_path):
    dd.from_pandas(frame, npartitions=3).to_parquet(tmp_path / "data")
    table = dd.read_parquet(tmp_path / "data")
    assert len(assert_same(client, from_dataframe(table, "target", "weight"), rows)) == 3
    X = table[list("abcd")]
    assert_same(client, from_dataframe(X, table["target"], table["weight"]), rows)
    assert_same(client, from_dataframe(X, table["target"]), rows, weighted=False)


def test_types_of_columns(client, frame):
    narrow = dd.from_pandas(frame.astype(dict.fromkeys("abcd", "float32")), npartitions=2)
    assert gathered(client, from_dataframe(narrow[[*"abcd", "target"]], "target"))[0].dtype == np.float32
    mixed = frame.assign(a=frame.a > 0, b=frame.b.round().astype("Int64"), c=frame.c.astype("float32"))
    X = gathered(client, from_dataframe(dd.from_pandas(mixed, npartitions=2), "target", "weight"))[0]
    np.testing.assert_array_equal(X, mixed[list("abcd")].to_numpy(dtype=float))


def test_frames_that_cannot_be_used(client, frame):
    table = dd.from_pandas(frame, npartitions=3)
    text = table.assign(b=table.b.astype(str))
    with pytest.raises(ValueError, match=r"Column 'b' does not hold numbers.*get_dummies"):
        from_dataframe(text, "target")
    with pytest.raises(ValueError, match="Column 'b' does not hold numbers"):
        from_dataframe(table.assign(b=table.b.astype("category")), "target")
    with pytest.raises(
        ValueError, match=r"y names the column 'tarjet', which X does not have. Did you mean 'target'\?"
    ):
        from_dataframe(table, "tarjet")
    with pytest.raises(ValueError, match="cut differently: 3 and 2 partitions"):
        from_dataframe(table[list("abcd")], dd.from_pandas(frame, npartitions=2)["target"])
    with pytest.raises(TypeError, match=r"y must be the name of a column or a dask series.*got ndarray"):
        from_dataframe(table, np.zeros(N))
    frame.loc[frame.index[45], "c"] = np.nan
    with pytest.raises(ValueError, match=r"Partition 2: X contains NaN \(row 5, column 'c'\)"):
        surveyed(client, from_dataframe(dd.from_pandas(frame, npartitions=3), "target", "weight"))


# --- partitions and data in memory ------------------------------------------------------------------------------------


def test_delayed_partitions(client, rows):
    X, y, s = rows
    parts = [
        dask.delayed((X[:10], y[:10], s[:10])),
        dask.delayed(Block)(scipy.sparse.csr_array(X[10:10]), y[10:10], s[10:10]),
        dask.delayed((pd.DataFrame(X[10:]), pd.Series(y[10:]), s[10:])),
    ]
    assert_same(client, from_delayed(parts), rows)
    assert surveyed(client, from_delayed(parts)).n_rows == N
    assert_same(client, from_delayed(client.compute(parts)), rows)


def test_scattered_data(client, rows):
    X, y, s = rows
    assert len(assert_same(client, scatter(X, y, s), rows)) == 2
    blocks = assert_same(client, scatter(scipy.sparse.csr_matrix(X), y.tolist(), s, n_partitions=7), rows)
    assert len(blocks) == 7
    assert_same(client, scatter(pd.DataFrame(X), pd.Series(y), n_partitions=1000), rows, weighted=False)
    with pytest.raises(ValueError, match=r"X contains NaN \(row 59, column 3\)"):
        scatter(np.where(np.arange(N * D).reshape(N, D) == N * D - 1, np.nan, X), y)


# --- the survey -------------------------------------------------------------------------------------------------------


def test_survey_sums_over_partitions(client, rows):
    X, _, s = rows
    labels = np.array(["no", "yes", "maybe"])[np.arange(N) // 25]  # no class is in every partition
    found = surveyed(client, from_array(da.from_array(X, chunks=(20, D)), labels, s))
    assert (found.n_rows, found.n_features, found.nnz) == (N, D, N * D)
    assert found.classes.tolist() == ["maybe", "no", "yes"]
    np.testing.assert_allclose(found.class_weights, [s[labels == name].sum() for name in found.classes])
    assert found.weight == s.sum()


def broken(rows, **changes):
    """Three partitions of which the second has something wrong."""
    X, y, s = rows
    parts = []
    for k in range(3):
        part = {"X": X[20 * k : 20 * (k + 1)], "y": y[20 * k : 20 * (k + 1)], "s": s[20 * k : 20 * (k + 1)]}
        if k == 1:
            part.update({name: change(part[name].copy()) for name, change in changes.items()})
        parts.append(dask.delayed((part["X"], part["y"], part["s"])))
    return parts


def with_entry(value, at):
    def change(array):
        array = array.astype(
            np.result_type(array.dtype, type(value)) if not isinstance(value, (str, type(None))) else object
        )
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("changes", "task", "sentence"),
    [
        ({"X": with_entry(np.nan, (7, 2))}, "regression", r"Partition 1: X contains NaN \(row 7, column 2\)"),
        ({"X": with_entry(-np.inf, (0, 0))}, "regression", r"Partition 1: X contains infinity \(row 0, column 0\)"),
        ({"X": with_entry("red", (0, 0))}, "regression", "Partition 1: X must hold real numbers"),
        ({"X": lambda X: X[:, :3]}, "regression", "Partition 1 has 3 columns, partition 0 has 4"),
        ({"X": lambda X: X[0]}, "regression", "Partition 1: X must have two dimensions"),
        ({"y": lambda y: y[:-1]}, "regression", r"Partition 1: y must have one entry per row of X \(20\), got 19"),
        ({"y": with_entry(np.nan, 3)}, "regression", r"Partition 1: y contains NaN \(row 3\)"),
        ({"y": with_entry("high", 3)}, "regression", "Partition 1: y must hold real numbers"),
        ({"y": with_entry(np.nan, 3)}, "classification", r"Partition 1: y contains NaN \(row 3\)"),
        ({"y": with_entry(0.5, 3)}, "classification", "Partition 1: y must hold classes, got the number 0.5 in row 3"),
        ({"y": with_entry(None, 3)}, "classification", "Partition 1: y has no label in row 3"),
        ({"y": lambda y: y.astype(str)}, "classification", "one type: partition 1 holds text, partition 2 numbers"),
        ({"s": with_entry(-1.0, 4)}, "regression", "Partition 1: sample_weight must not be negative, got -1 in row 4"),
        ({"s": lambda s: s[1:]}, "regression", r"Partition 1: sample_weight must have one entry per row .* got 19"),
    ],
)
def test_bad_data_become_a_sentence_that_names_the_place(client, rows, changes, task, sentence, capfd):
    partitions = from_delayed(broken(rows, **changes))
    with pytest.raises(ValueError, match=sentence):
        surveyed(client, partitions, task)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_all_partitions_together_must_make_sense(client, rows):
    X, y, s = rows
    with pytest.raises(ValueError, match="at least two classes, all partitions hold one class only: 1"):
        surveyed(client, from_array(da.from_array(X, chunks=(20, D)), np.ones(N, dtype=int)))
    with pytest.raises(ValueError, match="sample_weight must have at least one positive entry"):
        surveyed(client, from_array(da.from_array(X, chunks=(20, D)), y, 0 * s))
    with pytest.raises(ValueError, match="all partitions are empty"):
        surveyed(client, from_delayed([dask.delayed((X[:0], y[:0]))]))
    with pytest.raises(ValueError, match="more than 1000; for numbers, use a regression"):
        surveyed(client, from_delayed([dask.delayed((np.ones((1001, 1)), np.arange(1001)))]))
    with pytest.raises(ValueError, match=r"Partition 0: it must be a tuple \(X, y\)"):
        surveyed(client, from_delayed([dask.delayed(X)]))
    with pytest.raises(ValueError, match="Partition 0: it must be a Block, got tuple"):
        surveyed(client, Partitions([dask.delayed((X, y))]))


def test_a_loader_that_fails(client, rows):
    def load():
        raise FileNotFoundError("part-7 is not there")

    with pytest.raises(
        ValueError, match=r"Partition 1 of the data could not be made: FileNotFoundError: part-7 is not"
    ):
        surveyed(client, from_delayed([dask.delayed(rows[:2]), dask.delayed(load)()]))


def test_data_of_another_cluster(client, rows):
    from distributed import Client

    with Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0", set_as_default=False
    ) as other:
        X = other.persist(da.from_array(rows[0], chunks=(30, D)))
        with pytest.raises(ClusterError, match="A part of the data is not on this cluster"):
            surveyed(client, from_array(X, rows[1]))


def test_waiting_ends(client):
    import time

    slow = client.submit(time.sleep, 5, pure=False)
    with pytest.raises(
        ClusterError, match=r"for 0.2 s: 0 of 1 partitions are ready, the cluster has 2 workers.*Raise timeout"
    ):
        collect(client, [slow], "the data", 0.2)
    slow.cancel()


# --- LIBSVM files -----------------------------------------------------------------------------------------------------


def write_libsvm(path, X, y, zero_based=False):
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)


@pytest.mark.parametrize("size", [23, 100, 1000, 10**6])
def test_ranges_of_bytes_hold_every_line_once(rows, tmp_path, size):
    path = tmp_path / "data.svm"
    write_libsvm(path, rows[0], rows[1])
    text = path.read_bytes().rstrip(b"\n") + b"\n\n# the last line has no newline\n1 3:2"
    path.write_bytes(text)
    parts = [read_libsvm_range(part, index_base=1) for part in split_file(path, size)]
    whole = read_libsvm(path)
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), whole.y)
    indices = np.concatenate([part.X.indices for part in parts])
    np.testing.assert_array_equal(indices, whole.X.indices)
    np.testing.assert_array_equal(np.concatenate([part.X.data for part in parts]), whole.X.data)


def test_files_become_one_matrix(client, rows, tmp_path):
    X, y, _ = rows
    X = X.copy()
    X[:20, 2:] = 0.0  # the first file knows two columns only
    write_libsvm(tmp_path / "part-0.svm", X[:20], y[:20])
    for name, opener, part in (("part-1.svm.gz", gzip.open, slice(20, 40)), ("part-2.svm.bz2", bz2.open, slice(40, N))):
        write_libsvm(tmp_path / "plain", X[part], y[part])
        with opener(tmp_path / name, "wb") as file:
            file.write((tmp_path / "plain").read_bytes())
    found = read_libsvm_files(tmp_path / "part-*", partition_bytes=300, client=client)
    assert (found.n_features, found.index_base, found.n_rows, found.nnz) == (D, 1, N, np.count_nonzero(X))
    blocks = assert_same(client, found.partitions, (X, y), weighted=False)
    assert len(blocks) > 3
    assert (
        from_libsvm([tmp_path / "part-0.svm", tmp_path / "part-1.svm.gz"], n_features=9, client=client).n_features == 9
    )


def test_one_file_that_counts_from_zero_decides_for_all(client, tmp_path):
    (tmp_path / "a.svm").write_text("1 1:5\n")
    (tmp_path / "b.svm").write_text("0 0:7 3:1\n")
    X, *_ = gathered(client, from_libsvm(tmp_path / "*.svm", client=client))
    np.testing.assert_array_equal(X, [[0, 5, 0, 0], [7, 0, 0, 1]])


def test_broken_files(client, tmp_path):
    (tmp_path / "a.svm").write_text("".join(f"1 1:{k}\n" for k in range(40)) + "1 1:oops\n")
    with pytest.raises(ValueError, match=r"a\.svm, line 41: expected index:value with a number as value, got '1:oops'"):
        from_libsvm(tmp_path / "a.svm", partition_bytes=100, client=client)
    assert read_libsvm_files(tmp_path / "a.svm", skip_bad_lines=True, partition_bytes=100, client=client).bad_lines == 1
    with pytest.raises(ValueError, match=r"b\*\.svm: there is no such file, and none that matches"):
        from_libsvm(tmp_path / "b*.svm", client=client)
    (tmp_path / "c.svm").write_text("1 7:1\n")
    with pytest.raises(ValueError, match=r"c\.svm: the feature index 7 is beyond the 6 features"):
        from_libsvm(tmp_path / "c.svm", n_features=6, client=client)
    (tmp_path / "d.svm").write_text("# nothing\n")
    with pytest.raises(ValueError, match=r"d\.svm: there are no rows"):
        from_libsvm(tmp_path / "d.svm", client=client)
    (tmp_path / "e.svm").write_text("1\n0\n")
    with pytest.raises(ValueError, match=r"e\.svm: no row has a feature; say how many"):
        from_libsvm(tmp_path / "e.svm", client=client)
