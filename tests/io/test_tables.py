"""CSV, TSV, Parquet and Arrow: kinds of columns, categories, broken cells, new data for a model."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse

from dualfree.io import Column, DataError, read_data

TEXT = "colour,size,kind,price\nred,1,3,10\nblue,2.5,4,20\nred,3,3,35\n"


def csv(text, **options):
    content = text.encode() if isinstance(text, str) else text
    file = io.BytesIO(content)
    file.name = "data.csv"
    return read_data(file, **options)


class TestColumns:
    def test_numbers_and_categories(self):
        data = csv(TEXT, target="price")
        assert data.encoding.feature_names == ("colour=blue", "colour=red", "size", "kind")
        assert data.X.tolist() == [[0, 1, 1, 3], [1, 0, 2.5, 4], [0, 1, 3, 3]]
        assert data.y.tolist() == [10, 20, 35]

    def test_numbers_named_categorical(self):
        data = csv(TEXT, target="price", categorical=["kind"], ignore=["colour"])
        assert data.encoding.feature_names == ("size", "kind=3", "kind=4")

    def test_text_target(self):
        data = csv("a,b\n1,x\n2,y\n", target="b")
        assert data.y.tolist() == ["x", "y"]

    def test_kind_is_decided_from_all_cells(self):
        """A column of whole numbers whose last cell has a fraction is still a column of numbers."""
        rows = ["1"] * 200_000 + ["2.5"]
        data = csv("a,t\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(rows)), target="t")
        assert data.X[-1, 0] == 2.5

    def test_many_levels_become_sparse(self):
        data = csv("name,t\n" + "".join(f"n{i},{i % 2}\n" for i in range(200)), target="t")
        assert scipy.sparse.issparse(data.X)
        assert data.X.shape == (200, 200)
        assert data.X.sum() == 200
        assert "leave it out with --ignore name" in data.notes[0]

    def test_quoted_cells_with_newlines_and_commas(self):
        data = csv('a,t\n"x, y",1\n"two\nlines",0\n', target="t")
        assert data.encoding.columns == (Column("a", ("two\nlines", "x, y")),)

    def test_tsv_and_no_header(self):
        file = io.BytesIO(b"1\t2\t0\n3\t4\t1\n")
        file.name = "data.tsv"
        data = read_data(file, header=False, target="column3")
        assert data.X.tolist() == [[1, 2], [3, 4]]

    def test_missing_category_is_a_category(self):
        file = io.BytesIO()
        pa.parquet.write_table(pa.table({"a": ["x", None, "y"], "t": [0, 1, 0]}), file)
        file.seek(0)
        data = read_data(file, target="t")
        assert data.encoding.feature_names == ("a=x", "a=y", "a=(missing)")
        assert data.X.toarray().tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


class TestTypedFiles:
    table = pa.table(
        {
            "i": pa.array([1, 2, 3], pa.int32()),
            "b": [True, False, True],
            "s": pa.array(["u", "v", "u"]).dictionary_encode(),
            "t": [0.5, 1.5, 2.5],
        }
    )

    @pytest.mark.parametrize("form", ["parquet", "feather", "file", "stream"])
    def test_forms(self, form, tmp_path):
        path = tmp_path / f"data.{'parquet' if form == 'parquet' else 'arrow'}"
        if form == "parquet":
            pa.parquet.write_table(self.table, path)
        elif form == "feather":
            pa.feather.write_feather(self.table, path)
        else:
            new = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
            with new(path, self.table.schema) as writer:
                writer.write_table(self.table)
        data = read_data(path, target="t")
        assert data.encoding.feature_names == ("i", "b", "s=u", "s=v")
        assert data.X.tolist() == [[1, 1, 1, 0], [2, 0, 0, 1], [3, 1, 1, 0]]
        assert data.y.tolist() == [0.5, 1.5, 2.5]

    def test_dates_are_refused_with_advice(self, tmp_path):
        path = tmp_path / "data.parquet"
        pa.parquet.write_table(pa.table({"when": pa.array([0, 1], pa.timestamp("s")), "t": [0, 1]}), path)
        with pytest.raises(DataError, match=r"'when' has the type timestamp\[ms\].*--ignore when"):
            read_data(path, target="t")

    def test_null_number_names_the_row(self, tmp_path):
        path = tmp_path / "data.parquet"
        pa.parquet.write_table(pa.table({"a": [1.0, None, 2.0], "t": [0, 1, 0]}), path)
        with pytest.raises(DataError, match="row 2: column 'a' is empty"):
            read_data(path, target="t")

    @pytest.mark.parametrize("name", ["data.parquet", "data.arrow"])
    def test_damaged(self, name, tmp_path):
        path = tmp_path / name
        path.write_bytes(b"PAR1 and then nothing of the kind PAR1")
        with pytest.raises(DataError, match="this is not a readable"):
            read_data(path, target="t")


class TestBrokenCsv:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a,t\n1,0\n\n2\n3,1\n", "data.csv, line 4: expected 2 cells, got 1"),
            ("a,t\n1,0\n2,1,5\n", "data.csv, line 3: expected 2 cells, got 3"),
            ("a,t\n1,0\n2,1\nx,1\n", "line 4: column 'a': expected a finite number, got 'x'"),
            ('a,t\n1,0\n2,"two\nlines"\n3,0\nx,1\n', "line 6: column 'a': expected a finite number, got 'x'"),
            ("a,t\n1,0\n2,1\n,1\n", "line 4: column 'a' is empty"),
            ("a,t\n1,0\n2,1\ninf,1\n", "line 4: column 'a': expected a finite number, got 'inf'"),
            ("a,t\n1,0\n2,\n", "line 3: the target 't' is empty"),
            ("a,a,t\n1,2,0\n", "line 1: the column 'a' occurs twice"),
            ("1,2\n3,4\n", "expected the names of the columns, got the numbers '1,2'. Say --no-header"),
            ("a,t\n", "it has no rows"),
            ("", "it is empty"),
            ("t\n1\n", "no column is left besides the target"),
        ],
    )
    def test_sentence(self, text, message):
        with pytest.raises(DataError) as caught:
            csv(text, target="t")
        assert message in str(caught.value)

    def test_other_character_sets(self):
        with pytest.raises(DataError, match="line 3: the byte 0xe9 is not UTF-8; save the file as UTF-8"):
            csv("a,t\nx,0\ncaf\u00e9,1\n".encode("latin-1"), target="t")

    def test_skipping(self):
        data = csv("a,b,t\n1,u,0\n2,u\nx,v,1\n,v,1\n3,u,1\n", target="t", skip_bad_lines=True)
        assert data.bad_lines == 3
        assert data.X[:, 0].tolist() == [1, 3]
        assert data.y.tolist() == [0, 1]

    def test_target_must_be_named(self):
        with pytest.raises(DataError, match="say which column is the target with --target; it has colour, size, kind"):
            csv(TEXT)

    def test_unknown_names(self):
        with pytest.raises(DataError, match=r"there is no column 'cost' \(--target\); it has 'colour', 'size'"):
            csv(TEXT, target="cost")


class TestNewDataForAModel:
    encoding = csv(TEXT, target="price").encoding

    def test_other_order_and_further_columns(self):
        data = csv("new,kind,size,colour\n9,3,1,red\n", encoding=self.encoding, need_target=False)
        assert data.X.tolist() == [[0, 1, 1, 3]]
        assert data.y is None
        assert data.unknown == 0

    def test_unknown_category_is_counted(self):
        data = csv("kind,size,colour\n3,1,green\n", encoding=self.encoding, need_target=False)
        assert data.X.tolist() == [[0, 0, 1, 3]]
        assert data.unknown == 1

    def test_missing_column(self):
        with pytest.raises(DataError, match="the model needs columns 'colour', 'kind'"):
            csv("size\n1\n", encoding=self.encoding, need_target=False)

    def test_missing_target(self):
        with pytest.raises(DataError, match="the target column 'price' is missing"):
            csv("kind,size,colour\n3,1,red\n", encoding=self.encoding)

    def test_file_without_names(self):
        with pytest.raises(DataError, match="the model was fitted on a table with named columns"):
            read_data(io.BytesIO(b"1 1:1\n"), encoding=self.encoding)


def test_fingerprint_depends_on_the_numbers_alone(tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 6)) < 0.4, rng.normal(size=(50, 6)), 0.0)
    X[:, 0] = 1.0
    y = rng.integers(0, 2, size=50).astype(float)
    sparse = scipy.sparse.csr_array(X)
    parts = {"data": sparse.data, "indices": sparse.indices, "indptr": sparse.indptr, "shape": sparse.shape, "y": y}
    np.savez(tmp_path / "sparse.npz", **parts)
    np.savez_compressed(tmp_path / "dense.npz", X=X, y=y)
    rows = (
        f"{label!r} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    )
    (tmp_path / "data.svm").write_text("\n".join(rows))
    lines = (",".join(map(repr, [*row, label])) for label, row in zip(y.tolist(), X.tolist(), strict=True))
    (tmp_path / "data.csv").write_text("a,b,c,d,e,f,t\n" + "\n".join(lines))
    prints = {
        read_data(tmp_path / name, target="t").fingerprint()
        for name in ("sparse.npz", "dense.npz", "data.svm", "data.csv")
    }
    assert len(prints) == 1
    X[17, 3] += 1e-9
    np.savez(tmp_path / "changed.npz", X=X, y=y)
    assert read_data(tmp_path / "changed.npz").fingerprint() not in prints
