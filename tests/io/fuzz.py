"""Broken inputs for the readers of data and model files.

    python tests/io/fuzz.py --inputs 100000

Each input must be read, or refused with a `DataError`; nothing else may come out, nothing may hang, and memory must stay
bounded. LIBSVM text is also read by a slow reader written with regular expressions, which must agree in every number.
"""

import argparse
import io
import math
import random
import re
import resource
import struct
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dualfree.cli.fitting import fit_model
from dualfree.io import DataError, Objective, load_model, read_data, read_libsvm, save_model

LONGEST_SECONDS = 5.0
MOST_MEMORY = 1 << 30
SHARES = {"libsvm": 0.5, "csv": 0.15, "npz": 0.1, "arrow": 0.1, "model": 0.15}

# --- inputs -----------------------------------------------------------------------------------------------------------

_ODD_NUMBERS = [
    "",
    "1",
    "+1",
    "-0",
    "1e5",
    "1e999",
    "1e-999",
    ".5",
    "5.",
    ".",
    "e5",
    "1e",
    "0x1",
    "1_0",
    "--1",
    "nan",
    "inf",
]


def _number(rng):
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(_ODD_NUMBERS)
    if kind == 1:
        return "".join(rng.choices("0123456789.eE+-", k=rng.randrange(30)))
    if kind == 2:
        return repr(struct.unpack("d", rng.randbytes(8))[0])
    if kind == 3:
        return str(rng.getrandbits(rng.randrange(1, 100)))
    return repr(round(rng.uniform(-9, 9), rng.randrange(18)))


def libsvm_text(rng):
    """Lines that are mostly good, some broken in one place, some not lines at all."""
    lines = []
    for _ in range(rng.randrange(8)):
        indices = rng.sample(range(30), rng.randrange(6))
        if rng.random() < 0.9:
            indices.sort()
        if rng.random() < 0.1:
            indices.append(rng.getrandbits(rng.randrange(1, 40)))
        colon = ":" if rng.random() < 0.9 else rng.choice(["", " ", "::", ":q:"])
        good = rng.random() < 0.6
        numbers = [repr(round(rng.uniform(-9, 9), 3)) if good else _number(rng) for _ in range(len(indices) + 1)]
        blank = rng.choice([" ", " ", "\t", "  ", "\r", "\v"])
        line = blank.join([numbers[0], *(f"{i}{colon}{v}" for i, v in zip(indices, numbers[1:], strict=True))])
        lines.append(line + rng.choice(["", "", "", " ", "\r", "#", " # note 1:2", "\x00", "\ufeff"]))
    return "\n".join(lines).encode()


def csv_text(rng):
    """Tables with cells of every kind and rows of the wrong length."""

    def cell():
        odd = ['"', '""', '"a,b"', '"\n"', "NA", "red", "blue", "\x00", "é", "\ud7ff"]
        return (
            rng.choice(odd) if rng.random() < 0.15 else repr(rng.randrange(9)) if rng.random() < 0.7 else _number(rng)
        )

    header = "a,b,t" if rng.random() < 0.9 else ",".join(cell() for _ in range(3))
    widths = (3 if rng.random() < 0.9 else rng.randrange(5) for _ in range(rng.randrange(8)))
    return "\n".join([header, *(",".join(cell() for _ in range(width)) for width in widths)]).encode()


def damaged(files):
    """Return a generator of one of some good files with bytes changed, cut out or put in."""

    def generate(rng):
        content = bytearray(rng.choice(files))
        for _ in range(rng.randrange(5)):
            at = rng.randrange(len(content) + 1)
            kind = rng.randrange(5)
            if kind == 0:
                content[at : at + 1] = rng.randbytes(1)
            elif kind == 1:
                del content[at : at + rng.randrange(1, 40)]
            elif kind == 2:
                content[at:at] = rng.randbytes(rng.randrange(1, 9))
            elif kind == 3:
                content[at : at + 8] = rng.getrandbits(rng.choice([8, 32, 64])).to_bytes(8, "little")
            else:
                del content[at:]
        return bytes(content)

    return generate


def inputs_from(generate):
    """Let hypothesis choose seeds, which is fast, and some raw bytes, which it can shrink."""
    seeded = st.integers(0, 2**64 - 1).map(lambda seed: generate(random.Random(seed)))
    return st.one_of(seeded, seeded, seeded, seeded, st.binary(max_size=200))


def _npz_files():
    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    for save in (np.savez, np.savez_compressed):
        for arrays in (
            {"X": X, "y": np.array([0, 1])},
            {
                "data": X[X != 0],
                "indices": np.array([0, 1]),
                "indptr": np.array([0, 1, 2]),
                "shape": X.shape,
                "y": [0, 1],
            },
        ):
            file = io.BytesIO()
            save(file, **arrays)
            yield file.getvalue()


def _arrow_files():
    table = pa.table({"a": [1.0, 2.0], "s": ["u", None], "t": [0, 1]})
    for new in (pa.ipc.new_file, pa.ipc.new_stream):
        file = io.BytesIO()
        with new(file, table.schema) as writer:
            writer.write_table(table)
        yield file.getvalue()
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    yield file.getvalue()


def _model_files():
    data = read_data(io.BytesIO(b"c,a,t\nx,1,u\ny,2,v\nx,3,w\n"), format="csv", target="t")
    numbers = read_data(io.BytesIO(b"1 1:1\n2 1:2\n"), format="libsvm")
    with tempfile.TemporaryDirectory() as folder:
        for rows, objective in ((data, Objective("logistic", lam=0.1)), (numbers, Objective("huber", 1.35, 0.1, True))):
            path = Path(folder) / "m"
            save_model(fit_model(rows, objective, seed=0).model, path)
            yield path.read_bytes()


# --- a slow reader ----------------------------------------------------------------------------------------------------

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BLANK = b" \t\r\v\f"


def _slow_number(token):
    if not _NUMBER.fullmatch(token):
        return None
    value = float(token)
    return value if abs(value) < 1e308 else None


def slow_libsvm(text):
    """Return labels and rows (index to value), or None where a line is broken."""
    labels, rows = [], []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        tokens = line.split(b"#", 1)[0].translate(bytes.maketrans(_BLANK, b" " * len(_BLANK))).split(b" ")
        tokens = [token for token in tokens if token]
        if not tokens:
            if line.translate(None, _BLANK) and not line.translate(None, _BLANK).startswith(b"#"):
                return None
            continue
        label = _slow_number(tokens[0])
        if label is None:
            return None
        row = {}
        for token in tokens[1:]:
            index, colon, value = token.partition(b":")
            number = _slow_number(value)
            if not (colon and re.fullmatch(rb"\d+", index)) or number is None or int(index) > 10**8:
                return None
            if row and int(index) <= max(row):
                return None
            row[int(index)] = number
        labels.append(label)
        rows.append(row)
    return (labels, rows) if labels else None


# --- one input --------------------------------------------------------------------------------------------------------


def check_libsvm(text):
    """Read text the fast and the slow way; both must refuse it, or both see the same numbers."""
    expected = slow_libsvm(text) if text[:2] not in (b"\x1f\x8b", b"BZ") and text[:4] != b"\xfd7zX" else NotImplemented
    try:
        data = read_libsvm(io.BytesIO(text))
    except DataError:
        assert expected is None or expected is NotImplemented, text
    else:
        if expected is NotImplemented:
            return
        assert expected is not None, text
        labels, rows = expected
        base = 0 if any(0 in row for row in rows) else 1
        assert data.y.tolist() == labels
        assert np.diff(data.X.indptr).tolist() == [len(row) for row in rows]
        assert data.X.indices.tolist() == [index - base for row in rows for index in row]
        assert data.X.data.tolist() == [value for row in rows for value in row.values()]
    only_clean_errors(lambda: read_libsvm(io.BytesIO(text), skip_bad_lines=True, dtype=np.float32))


def check_csv(text):
    """Read CSV text, strictly and skipping broken lines."""
    only_clean_errors(lambda: read_data(io.BytesIO(text), format="csv", target="t"))
    only_clean_errors(lambda: read_data(io.BytesIO(text), format="csv", target="t", skip_bad_lines=True))


def check_npz(content):
    """Read a NumPy archive."""
    only_clean_errors(lambda: read_data(io.BytesIO(content), format="npz"))


def check_arrow(content):
    """Read Parquet or Arrow."""
    for kind in ("parquet", "arrow"):
        only_clean_errors(lambda kind=kind: read_data(io.BytesIO(content), format=kind, target="t"))


def check_model(content):
    """Load a model, the checksum forgiven: every field is looked at."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        model = only_clean_errors(lambda: load_model(file.name, accept_edited=True))
    if model is not None:
        model.predict(model.scores(np.zeros((1, model.coef.shape[1]))))


def only_clean_errors(action):
    """Run it; a `DataError` is clean and gives None."""
    began = time.perf_counter()
    try:
        result = action()
        if hasattr(result, "X") and hasattr(result.X, "data"):
            assert all(
                math.isfinite(value) for value in np.asarray(getattr(result.X, "data", []))[:100].ravel().tolist()
            )
        return result
    except DataError:
        return None
    finally:
        assert time.perf_counter() - began < LONGEST_SECONDS


def campaigns():
    """Return the strategy and the check of each kind of input."""
    for dtype in (np.float64, np.float32):
        read_libsvm(io.BytesIO(b"1 1:1\n"), dtype=dtype)  # compiles the reader, which is not what is timed
    return {
        "libsvm": (inputs_from(libsvm_text), check_libsvm),
        "csv": (inputs_from(csv_text), check_csv),
        "npz": (inputs_from(damaged(list(_npz_files()))), check_npz),
        "arrow": (inputs_from(damaged(list(_arrow_files()))), check_arrow),
        "model": (inputs_from(damaged(list(_model_files()))), check_model),
    }


def fuzz(kind, inputs, strategy, check):
    """Try that many inputs; return how many were really tried."""
    tried = 0

    @settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def attempt(content):
        nonlocal tried
        tried += 1
        check(content)

    attempt()
    return tried


def main():
    """Run every campaign and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000, help="inputs in all")
    parser.add_argument("--only", choices=list(SHARES))
    arguments = parser.parse_args()
    before, total = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, 0
    for kind, (strategy, check) in campaigns().items():
        if arguments.only in (None, kind):
            share = 1.0 if arguments.only else SHARES[kind]
            began = time.perf_counter()
            tried = fuzz(kind, math.ceil(share * arguments.inputs), strategy, check)
            total += tried
            print(f"{kind:8} {tried:8} inputs, {time.perf_counter() - began:6.1f} s: only clean errors", flush=True)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before
    print(f"{total} inputs; memory grew by {grown / 2**20:.0f} MiB at most")
    return 0 if grown < MOST_MEMORY else 1


if __name__ == "__main__":
    sys.exit(main())
