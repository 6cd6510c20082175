"""The benchmark on a cluster: its data, its limit, and a small run from end to end."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

from benchmarks import scale, scale_data, scale_report
from benchmarks.scale_data import Synthetic


def whole(data, count):
    blocks = [block.compute(scheduler="synchronous") for block in data.blocks(count)]
    return scipy.sparse.vstack([block.X for block in blocks]), np.concatenate([block.y for block in blocks])


def test_synthetic_rows_do_not_depend_on_the_number_of_blocks(monkeypatch):
    monkeypatch.setattr(scale_data, "_ROWS_AT_ONCE", 97)
    data = Synthetic(entries=5000, d=600, fields=10)
    X, y = whole(data, 1)
    assert X.shape == (500, 600)
    assert X.nnz == 5000
    assert X.dtype == np.float32
    assert X.has_canonical_format
    assert set(np.unique(y)) == {-1.0, 1.0}
    for count in (2, 3, 7):
        again, labels = whole(data, count)
        assert (again != X).nnz == 0
        assert np.array_equal(labels, y)


def test_each_row_has_one_category_of_each_field():
    X, _ = whole(Synthetic(entries=2000, d=1000, fields=10), 1)
    edges = np.round(1000 * (np.arange(11) / 10) ** 2)
    field = np.searchsorted(edges, X.indices, side="right") - 1
    assert np.array_equal(field.reshape(-1, 10), np.tile(np.arange(10), (200, 1)))


@pytest.mark.parametrize(("entries", "d", "sentence"), [(1000, 99, "d must be at least 100"), (5, 100, "one row")])
def test_sizes_that_make_no_data_are_a_sentence(entries, d, sentence):
    with pytest.raises(ValueError, match=sentence):
        Synthetic(entries=entries, d=d, fields=10)


@pytest.mark.parametrize(("seconds", "verdict"), [([1.2, 1.4, 9.0], r"1\.40 .* kept"), ([1.2, 1.6, 9.0], "NOT KEPT")])
def test_the_overhead_is_the_median_of_pairs(seconds, verdict):
    rows = [
        {"set": "a", "workers": 1, "level": 1e-6, "repeat": i, "kind": kind, "seconds": s if kind == "cluster" else 1.0}
        for i, s in enumerate(seconds)
        for kind in ("cluster", "solve")
    ]
    assert re.search(verdict, scale_report.overhead(pd.DataFrame(rows)))


def test_a_report_needs_a_file(tmp_path):
    with pytest.raises(SystemExit, match="does not exist"):
        scale.main(["--report", "--out", str(tmp_path / "none.parquet")])


@pytest.mark.slow
def test_a_quick_run_measures_and_reports(tmp_path, capsys):
    out = tmp_path / "scale.parquet"
    scale.main(["--quick", "--repeats", "1", "--peer-workers", "0", "--out", str(out)])
    frame = pd.read_parquet(out)
    fits = frame[frame.kind == "cluster"]
    assert sorted(zip(fits.workers, fits.level, strict=True)) == [(1, 1e-6), (1, 1e-3), (2, 1e-6), (2, 1e-3)]
    assert fits.reached.all()
    assert (fits.gap <= fits.level).all()
    two = fits[fits.workers == 2]
    assert (two.n_bytes >= two.rounds * 2 * 2 * 8 * two.d).all()  # w to each of two partitions, and a vector from each
    assert (frame.kind == "calibration").sum() == 4
    printed = capsys.readouterr().out
    assert "ns a non-zero visited" in printed
    assert "100 workers" in printed
    scale.main(["--report", "--out", str(out)])
    assert "ns a non-zero visited" in capsys.readouterr().out
