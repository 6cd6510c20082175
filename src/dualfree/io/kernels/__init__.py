"""The compiled parts of the readers, apart from the rest so that only an edit here makes numba compile anew."""
