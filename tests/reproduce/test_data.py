"""Where data come from, and how that is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dualfree.io import DataError
from dualfree.reproduce.data import find
from dualfree.reproduce.synthetic import like_mushrooms, like_rcv1

TEXT = b"2 1:1 3:1\n1 2:1 3:1\n2 1:1 2:1\n"


def test_libsvm_text_and_archives_are_found(tmp_path: Path) -> None:
    (tmp_path / "mushrooms.svm").write_bytes(TEXT)
    text = find("mushrooms", tmp_path, tmp_path / "none", allow_download=False)
    X = text.X.tocsr()
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, "y": np.array([2.0, 1.0, 2.0])}
    (tmp_path / "archive").mkdir()
    np.savez(tmp_path / "archive" / "mushrooms.npz", **parts)
    archive = find("mushrooms", tmp_path / "archive", tmp_path / "none", allow_download=False)
    assert text.origin == archive.origin == "file"
    assert text.y.tolist() == [1.0, -1.0, 1.0]
    assert text.fingerprint() == archive.fingerprint()


def test_a_stand_in_is_never_called_by_the_name_of_the_other(tmp_path: Path) -> None:
    (tmp_path / "rcv1_subsets.svm").write_bytes(TEXT)
    found = find("rcv1", tmp_path, tmp_path / "none", allow_download=False)
    assert found.origin == "stand-in"
    assert found.label == "rcv1_subsets (stands in for rcv1)"
    (tmp_path / "rcv1_train.binary").write_bytes(TEXT)
    assert find("rcv1", tmp_path, tmp_path / "none", allow_download=False).origin == "file"


def test_more_than_two_classes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mushrooms").write_bytes(b"1 1:1\n2 1:1\n3 1:1\n")
    with pytest.raises(DataError, match="two classes are needed, it has 3"):
        find("mushrooms", tmp_path, tmp_path / "none", allow_download=False)


def test_without_data_they_are_made_up_and_say_so(tmp_path: Path) -> None:
    notes: list[str] = []
    found = find("mushrooms", None, tmp_path, allow_download=False, note=notes.append)
    assert found.synthetic
    assert found.label == "synthetic, shaped like mushrooms"
    assert len(notes) == 1
    part = found.part(100)
    assert part.label == "synthetic, shaped like mushrooms, 100 of 8,124 rows"
    assert part.fingerprint() == found.part(100).fingerprint() != found.fingerprint()


def test_synthetic_data_have_the_shape_of_the_real_ones() -> None:
    X, y = like_mushrooms()
    assert X.shape == (8124, 112)
    assert np.diff(X.indptr).tolist() == [21] * 8124
    assert 0.4 < (y > 0).mean() < 0.6
    X, y = like_rcv1(n=2000)
    assert X.shape == (2000, 47236)
    assert 60 < X.nnz / 2000 < 90
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0)
    assert 0.45 < (y > 0).mean() < 0.6
