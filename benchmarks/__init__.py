"""Benchmarks: programs, not tests. `compare` measures peers, `engine` the engine itself; docs/benchmarks.md says how."""
