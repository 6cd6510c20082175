"""The compiled part of the LIBSVM reader: lines of text in, labels, lengths, indices and values out.

    label index:value index:value …  # comment

One forward scan, no allocation, no Python object. A row is written to the output arrays as it is read and counted only
when its line has ended well, so a broken line leaves no trace. The scan stops where Python has to act: no room, or a
broken line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import device, kernel
from .decimal import EXACT_POWERS, LARGEST_EXPONENT, to_double

# Why the scan stopped.
DONE, NO_ROOM, BROKEN = 0, 1, 2

# What is wrong with a line.
BAD_LABEL, BAD_INDEX, BAD_VALUE, TOO_LARGE, NOT_ASCENDING, INDEX_TOO_LARGE, INDEX_BELOW_BASE = 1, 2, 3, 4, 5, 6, 7

# Places of `state`, which carries the scan from call to call.
POSITION, LINE, ROWS, ENTRIES, HARD = 0, 1, 2, 3, 4
LEAST_INDEX, GREATEST_INDEX, BAD_LINES, IGNORED = 5, 6, 7, 8
ERROR, ERROR_POSITION = 9, 10
STATE_SIZE = 11

_MAX_DIGITS = 19  # as many as always fit into 64 bits
_NEWLINE, _SPACE, _TAB, _RETURN, _HASH = 10, 32, 9, 13, 35
_PLUS, _MINUS, _POINT, _COLON, _ZERO, _NINE = 43, 45, 46, 58, 48, 57
_E, _SMALL_E = 69, 101
_TEN = np.uint8(10)
_SHORT = 15  # digits that are below 2^53
_MAX_EXPONENT = 1 << 40


@device
def _is_blank(c: Any) -> Any:
    return c == _SPACE or (_TAB <= c <= _RETURN and c != _NEWLINE)


@device
def _ends_token(c: Any) -> Any:
    return _is_blank(c) or c in (_NEWLINE, _HASH)


@device
def _is_digit(c: Any) -> Any:
    return _ZERO <= c <= _NINE


@device
def _number(text: Any, at: int) -> Any:
    """Read a number at `at`: return its value (perhaps `UNDECIDED`), where it ends, and an error code or 0.

    The text always ends with a newline, so that no test for its end is needed. Short numbers without an exponent end
    here, and nearly all are such; the others go to `_long_number`.
    """
    start = at
    c = text[at]
    negative = c == _MINUS
    if negative or c == _PLUS:
        at += 1
        c = text[at]
    digits, count, places = np.int64(0), 0, 0
    digit = np.uint8(c - _ZERO)
    while digit < _TEN:
        digits = digits * 10 + digit
        count += 1
        at += 1
        c = text[at]
        digit = np.uint8(c - _ZERO)
    if c == _POINT:
        at += 1
        c = text[at]
        digit = np.uint8(c - _ZERO)
        while digit < _TEN:
            digits = digits * 10 + digit
            places += 1
            at += 1
            c = text[at]
            digit = np.uint8(c - _ZERO)
    count += places
    if 0 < count <= _SHORT and c in (_SPACE, _NEWLINE):
        value = digits / EXACT_POWERS[places]
        return (-value if negative else value), at, 0
    return _long_number(text, start)


@device
def _long_number(text: Any, at: int) -> Any:
    """Read any number; see `_number`."""
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    digits, count, exponent, seen, truncated = np.uint64(0), 0, 0, 0, False
    fraction = False
    while _is_digit(text[at]) or (text[at] == _POINT and not fraction):
        c = text[at]
        at += 1
        if c == _POINT:
            fraction = True
            continue
        seen += 1
        if count < _MAX_DIGITS:
            digits = digits * np.uint64(10) + np.uint64(c - _ZERO)
            count += digits != np.uint64(0)
            exponent -= fraction
        else:
            truncated = truncated or c != _ZERO
            exponent += not fraction
    if seen == 0:
        return 0.0, at, BAD_VALUE
    if text[at] == _E or text[at] == _SMALL_E:
        at += 1
        down = text[at] == _MINUS
        if down or text[at] == _PLUS:
            at += 1
        if not _is_digit(text[at]):
            return 0.0, at, BAD_VALUE
        written = 0
        while _is_digit(text[at]):
            written = min(written * 10 + (text[at] - _ZERO), _MAX_EXPONENT)
            at += 1
        exponent += -written if down else written
    if not _ends_token(text[at]):
        return 0.0, at, BAD_VALUE
    if count > 0 and count + exponent > LARGEST_EXPONENT:
        return 0.0, at, TOO_LARGE
    value = to_double(digits, exponent, truncated)
    return (-value if negative else value), at, 0


@device
def _index(text: Any, at: int, limit: int) -> Any:
    """Read a feature index and its colon: return the index, where the value begins, and an error code or 0."""
    start = at
    index = 0
    while _is_digit(text[at]):
        index = min(index * 10 + (text[at] - _ZERO), 1 << 40)
        at += 1
    if at == start or text[at] != _COLON:
        return 0, at, BAD_INDEX
    return index, at + 1, INDEX_TOO_LARGE if index > limit else 0


@device
def _after_line(text: Any, at: int) -> int:
    while text[at] != _NEWLINE:
        at += 1
    return at + 1


@kernel
def scan(
    text: Any,
    stop: int,
    skip_broken: bool,
    base: int,
    keep_below: int,
    limit: int,
    largest: float,
    labels: Any,
    lengths: Any,
    indices: Any,
    values: Any,
    hard: Any,
    state: Any,
) -> int:
    """Read the lines of text[state[POSITION] : stop], which ends with a newline; return why the scan stopped.

    The least index allowed is `base`, the greatest `limit`; entries from `keep_below` on are counted and left out. A
    value above `largest` in size is an error. Rows go to `labels` and `lengths`, entries to `indices` and `values`.
    `hard` receives the numbers that Python must read: row or entry, 0 for a label or 1 for a value, begin and end in
    the text. `state` says where the scan stands; see the names above.
    """
    at, line = state[POSITION], state[LINE]
    row, entry, hard_count = state[ROWS], state[ENTRIES], state[HARD]
    least, greatest, ignored = state[LEAST_INDEX], state[GREATEST_INDEX], state[IGNORED]
    outcome = DONE
    while at < stop:
        begin = at
        while _is_blank(text[at]):
            at += 1
        if text[at] in (_NEWLINE, _HASH):
            at = _after_line(text, at)
            line += 1
            continue
        if row == labels.size:
            at, outcome = begin, NO_ROOM
            break

        token = at
        k, n_hard, n_ignored = entry, hard_count, 0
        first, last = np.int64(1) << 40, np.int64(-1)
        room = n_hard < hard.shape[0]
        label, at, error = _number(text, at)
        if error == BAD_VALUE:
            error = BAD_LABEL
        if np.isnan(label) and room:
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = row, 0, token, at
            n_hard += 1
        while error == 0:
            while _is_blank(text[at]):
                at += 1
            c = text[at]
            if c in (_NEWLINE, _HASH):
                break
            token = at
            index, at, error = _index(text, at, limit)
            if error == 0 and index <= last:
                error = NOT_ASCENDING
            if error == 0 and index < base:
                error = INDEX_BELOW_BASE
            if error != 0:
                break
            start = at
            value, at, error = _number(text, at)
            if abs(value) > largest:
                error = TOO_LARGE
            if error != 0:
                break
            if last < 0:
                first = index
            last = index
            if index >= keep_below:
                n_ignored += 1
                continue
            if k == indices.size:
                room = False
                break
            if np.isnan(value):
                if n_hard == hard.shape[0]:
                    room = False
                    break
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = k, 1, start, at
                n_hard += 1
            indices[k] = index
            values[k] = value
            k += 1

        if error != 0:
            if not skip_broken:
                state[ERROR], state[ERROR_POSITION] = error, token
                at, outcome = begin, BROKEN
                break
            state[BAD_LINES] += 1
        elif not room:
            at, outcome = begin, NO_ROOM
            break
        else:
            labels[row] = label
            lengths[row] = k - entry
            row, entry, hard_count = row + 1, k, n_hard
            least, greatest, ignored = min(least, first), max(greatest, last), ignored + n_ignored
        at = _after_line(text, at)
        line += 1
    state[POSITION], state[LINE] = at, line
    state[ROWS], state[ENTRIES], state[HARD] = row, entry, hard_count
    state[LEAST_INDEX], state[GREATEST_INDEX], state[IGNORED] = least, greatest, ignored
    return outcome


@kernel
def end_of_last_line(text: Any, filled: int) -> int:
    """Return the position after the last newline of text[:filled], 0 when there is none."""
    at = filled
    while at > 0 and text[at - 1] != _NEWLINE:
        at -= 1
    return at
