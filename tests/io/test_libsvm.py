"""The LIBSVM reader: the right numbers, the right sentences, little memory."""

import bz2
import gzip
import io
import lzma
import random
import struct

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from dualfree.io import DataError, read_libsvm


def read(text, **options):
    content = text.encode() if isinstance(text, str) else text
    return read_libsvm(io.BytesIO(content), name="data.svm", **options)


def svm_text(X, y, zero_based=False):
    out = io.BytesIO()
    dump_svmlight_file(X, y, out, zero_based=zero_based)
    return out.getvalue()


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(300, 40, density=0.2, random_state=0, format="csr")
    X.data = rng.normal(size=X.nnz) * 10.0 ** rng.integers(-30, 30, size=X.nnz)
    X = scipy.sparse.hstack([np.full((300, 1), 1.5), X], format="csr")  # so that the index base can be seen
    return X, rng.integers(-3, 4, size=300).astype(float)


class TestSameAsScikitLearn:
    @pytest.mark.parametrize("zero_based", [False, True])
    def test_matrix(self, matrix, zero_based):
        X, y = matrix
        text = svm_text(X, y, zero_based)
        ours = read(text)
        theirs, labels = load_svmlight_file(io.BytesIO(text))
        assert ours.index_base == (0 if zero_based else 1)
        assert ours.X.shape == theirs.shape
        difference = theirs != ours.X
        assert difference.nnz == 0
        assert np.array_equal(ours.y, labels)
        assert ours.X.has_canonical_format

    def test_float32(self, matrix):
        X, y = matrix
        ours = read(svm_text(X, y), dtype=np.float32)
        theirs, _ = load_svmlight_file(io.BytesIO(svm_text(X, y)), dtype=np.float32)
        assert ours.X.dtype == np.float32
        difference = theirs != ours.X
        assert difference.nnz == 0


class TestNumbers:
    def test_every_number_is_what_python_reads(self):
        rng = random.Random(1)
        tokens = ["0", "-0", "+1", "1.", ".5", "00012", "1e5", "1E-5", "5e-324", "2.2250738585072011e-308", "1e-400"]
        for _ in range(20000):
            kind = rng.randrange(6)
            if kind == 0:
                number = struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0]
                if abs(number) < 1e308:
                    tokens.append(repr(number))
            elif kind == 1:
                tokens.append(f"{rng.uniform(-1, 1) * 10.0 ** rng.randrange(-320, 300):.{rng.randrange(40)}e}")
            elif kind == 2:
                tokens.append(str(rng.getrandbits(rng.randrange(1, 200))))
            elif kind == 3:
                tokens.append("0" * rng.randrange(30) + "." + "0" * rng.randrange(40) + str(rng.getrandbits(70)))
            elif kind == 4:  # half way between two doubles, or just beside it
                tokens.append(str(2 * (rng.getrandbits(53) | 1 << 52) + 1) + rng.choice(["", ".0", ".00001"]))
            else:
                tokens.append(f"{rng.getrandbits(rng.randrange(1, 90))}e{rng.randrange(-340, 270)}")
        text = "7 " + " ".join(f"{i + 1}:{token}" for i, token in enumerate(tokens))
        found = read(text).X.data
        wanted = np.array([float(token) for token in tokens])
        wrong = np.flatnonzero(found.view(np.int64) != wanted.view(np.int64))
        assert wrong.size == 0, [tokens[i] for i in wrong[:5]]

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.floats(min_value=-1e307, max_value=1e307), min_size=1, max_size=20))
    def test_repr_round_trip(self, numbers):
        data = read("\n".join(f"{x!r} 1:{x!r}" for x in numbers))
        assert data.y.tolist() == numbers
        assert data.X.toarray()[:, 0].tolist() == numbers


class TestForms:
    @pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
    def test_compression(self, compress, tmp_path):
        path = tmp_path / "file.with.any.name"
        path.write_bytes(compress(b"1 1:2\n-1 2:3\n"))
        assert read_libsvm(path).X.toarray().tolist() == [[2.0, 0.0], [0.0, 3.0]]

    @pytest.mark.parametrize(
        "text",
        [
            "1 1:2 3:4\n-1 2:5\n",
            "1 1:2 3:4\n-1 2:5",
            "1 1:2 3:4\r\n-1 2:5\r\n",
            "\ufeff1 1:2 3:4\n-1 2:5\n",
            "# a comment\n\n  1\t1:2  3:4 # more\n\n-1 2:5#\n\n",
            "+1 1:2. 3:4.0\n-1.0 2:0.5e1",
        ],
    )
    def test_spellings_of_the_same(self, text):
        data = read(text)
        assert data.X.toarray().tolist() == [[2.0, 0.0, 4.0], [0.0, 5.0, 0.0]]
        assert data.y.tolist() == [1.0, -1.0]

    def test_rows_without_entries(self):
        data = read("1\n2 1:1\n3 # nothing\n")
        assert data.X.shape == (3, 1)
        assert np.diff(data.X.indptr).tolist() == [0, 1, 0]

    def test_base_is_zero_when_the_index_zero_occurs_late(self):
        assert read("1 1:1\n1 0:1\n").X.toarray().tolist() == [[0.0, 1.0], [1.0, 0.0]]

    def test_given_base(self):
        assert read("1 1:1\n", index_base=0).X.shape == (1, 2)

    def test_stream_that_gives_a_byte_at_a_time(self):
        class Slow(io.RawIOBase):
            def __init__(self, content):
                self.content, self.at = content, 0

            def readable(self):
                return True

            def readinto(self, buffer):
                piece = self.content[self.at : self.at + 1]
                buffer[: len(piece)] = piece
                self.at += len(piece)
                return len(piece)

        assert read_libsvm(Slow(b"1 1:2\n-1 2:3"), name="slow").X.nnz == 2

    def test_row_longer_than_every_buffer(self):
        count = 900_000
        text = "1 " + " ".join(f"{i}:1" for i in range(1, count + 1)) + "\n-1 5:2\n"
        data = read(text)
        assert data.X.shape == (2, count)
        assert data.X.nnz == count + 1
        assert data.X[1, 4] == 2

    def test_more_rows_than_a_slab(self):
        n = 70_000
        data = read("\n".join(f"{i} {1 + i % 9}:{i}" for i in range(n)))
        assert np.array_equal(data.y, np.arange(n))
        assert np.array_equal(data.X.data, np.arange(n))
        assert np.array_equal(data.X.indices, np.arange(n) % 9)

    def test_progress_is_told_in_bytes(self, tmp_path):
        path = tmp_path / "data.svm"
        path.write_text("1 1:2\n" * 1000)
        seen = []
        read_libsvm(path, progress=lambda done, size: seen.append((done, size)))
        assert seen[-1] == (6000, 6000)


class TestNewDataForAModel:
    def test_features_beyond_are_left_out_and_counted(self):
        data = read("1 1:1 5:1 7:1\n", n_features=5, index_base=1, ignore_beyond=True)
        assert data.X.shape == (1, 5)
        assert data.ignored == 1

    def test_width_is_kept(self):
        assert read("1 1:1\n", n_features=5, index_base=1, ignore_beyond=True).X.shape == (1, 5)

    def test_zero_in_a_file_that_should_count_from_one(self):
        with pytest.raises(DataError, match=r"data.svm, line 1: indices start at 1 here, got '0:1'"):
            read("1 0:1\n", n_features=5, index_base=1, ignore_beyond=True)

    def test_too_many_features_are_refused_where_they_are_not_ignored(self):
        with pytest.raises(DataError, match="the feature index 7 is beyond the 5 features"):
            read("1 7:1\n", n_features=5)


BROKEN = {
    "x 1:1": r"expected a number as label, got 'x'",
    "1,2 1:1": r"expected a number as label, got '1,2'",
    "nan 1:1": r"expected a number as label, got 'nan'",
    "1 1:": r"expected index:value with a number as value, got '1:'",
    "1 1:1:1": r"with a number as value, got '1:1:1'",
    "1 1:inf": r"with a number as value, got '1:inf'",
    "1 1:0x10": r"with a number as value, got '1:0x10'",
    "1 1:1e": r"with a number as value, got '1:1e'",
    "1 1:--1": r"with a number as value, got '1:--1'",
    "1 1:1.2.3": r"with a number as value, got '1:1.2.3'",
    "1 1:1_000": r"with a number as value, got '1:1_000'",
    "1 qid:3 1:1": r"expected index:value, got 'qid:3'",
    "1 -1:1": r"expected index:value, got '-1:1'",
    "1 1 2": r"expected index:value, got '1'",
    "1 :1": r"expected index:value, got ':1'",
    "1 2:1 1:1": r"indices must be ascending, '1:1' comes too late or twice",
    "1 2:1 2:1": r"indices must be ascending, '2:1' comes too late or twice",
    "1 1:1e400": r"the number in '1:1e400' is too large",
    "1 123456789012:1": r"the index of '123456789012:1' is above the limit of 100000000",
    "1 1:\x00": r"got '1:\\x00'",
}


class TestBrokenLines:
    @pytest.mark.parametrize("line", BROKEN, ids=range(len(BROKEN)))
    def test_file_line_and_what_was_expected(self, line):
        with pytest.raises(DataError, match=BROKEN[line].replace("\\\\", "\\\\")) as caught:
            read(f"# first\n1 1:1\n\n{line}\n1 1:1\n")
        assert str(caught.value).startswith("data.svm, line 4: ")

    @pytest.mark.parametrize("line", BROKEN, ids=range(len(BROKEN)))
    def test_skipping_leaves_no_trace(self, line):
        data = read(f"1 1:1 2:2\n{line}\n-1 2:3\n", skip_bad_lines=True)
        assert data.bad_lines == 1
        assert data.X.toarray().tolist() == [[1.0, 2.0], [0.0, 3.0]]
        assert data.y.tolist() == [1.0, -1.0]

    def test_float32_overflow(self):
        with pytest.raises(DataError, match="the number in '1:1e39' is too large"):
            read("1 1:1e39\n", dtype=np.float32)

    def test_limit_can_be_raised(self):
        assert read("1 200000000:1\n", max_features=10**9).X.shape[1] == 200_000_000

    @pytest.mark.parametrize(("text", "reason"), [("", "it has no rows"), ("# only this\n\n", "it has no rows")])
    def test_nothing_there(self, text, reason):
        with pytest.raises(DataError, match=reason):
            read(text)

    def test_nothing_usable_there(self):
        with pytest.raises(DataError, match="none of its 2 lines is LIBSVM text"):
            read("<html>\n</html>\n", skip_bad_lines=True)

    @pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
    def test_damaged_compression(self, compress):
        content = compress(b"1 1:1\n" * 5000)
        with pytest.raises(DataError, match="the compressed data are damaged"):
            read(content[: len(content) // 2])

    def test_folder(self, tmp_path):
        with pytest.raises(DataError, match="this is a folder"):
            read_libsvm(tmp_path)

    def test_no_such_file(self, tmp_path):
        with pytest.raises(DataError, match="there is no such file"):
            read_libsvm(tmp_path / "nothing.svm")
