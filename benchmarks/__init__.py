"""Benchmarks: programs, not tests. `compare.py` measures peers, `engine.py` the engine itself."""
