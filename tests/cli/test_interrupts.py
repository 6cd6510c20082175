"""Ctrl-C in a real process, on a real terminal where it matters."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dualfree.io import load_model

COMMAND = [sys.executable, "-c", "from dualfree.cli import main; main()"]


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """Data and options with which a fit goes on for minutes."""
    path = tmp_path_factory.mktemp("endless") / "data.npz"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 100)) * np.logspace(0, 3, 100)
    np.savez(path, X=X, y=np.where(X[:, 0] + rng.normal(size=20_000) > 0, 1, -1))
    return [
        str(path),
        "--solver",
        "dfsdca",
        "--lam",
        "1e-9",
        "--tol",
        "1e-15",
        "--max-epochs",
        "1000000",
        "--seed",
        "0",
    ]


def start(arguments, **options):
    # A process group of its own, and SIGINT as a shell leaves it; under some test runners it is ignored.
    return subprocess.Popen(
        [*COMMAND, *arguments],
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,
    )


class Terminal:
    """A process whose standard error is a terminal, and what it has written there."""

    def __init__(self, arguments, **options):
        self.leader, follower = pty.openpty()
        self.seen = b""
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
        self.process = start(arguments, stderr=follower, env=environment, **options)
        os.close(follower)

    def read_until(self, condition, seconds=120):
        """Read on until the condition holds; fail when the process ends before."""
        deadline = time.monotonic() + seconds
        while not condition(self.seen):
            assert time.monotonic() < deadline, self.seen[-2000:]
            assert self._read(), self.seen[-2000:]

    def _read(self):
        if not select.select([self.leader], [], [], 0.2)[0]:
            return True
        try:
            piece = os.read(self.leader, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.seen += piece
        return bool(piece)

    def end(self):
        """Read to the end; return the exit status, standard output and what the terminal showed."""
        while self._read() and self.process.poll() is None:
            pass
        out, _ = self.process.communicate(timeout=60)
        while self._read():
            if not select.select([self.leader], [], [], 0.2)[0]:
                break
        os.close(self.leader)
        return self.process.returncode, out, self.seen.decode()


def some_epochs(seen):
    return len(set(re.findall(rb"epoch +(\d+)", seen))) > 3


def test_first_press_keeps_the_best_model(endless, tmp_path):
    path = tmp_path / "m.safetensors"
    terminal = Terminal(["fit", *endless, "--model", str(path)], stdout=subprocess.PIPE)
    terminal.read_until(some_epochs)
    terminal.process.send_signal(signal.SIGINT)
    status, out, shown = terminal.end()
    assert status == 130
    assert "stopping; the best model so far is kept. Press Ctrl-C again to stop at once." in shown
    assert b"Interrupted after" in out
    assert "Traceback" not in shown
    live = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert re.search(r"epoch +\d+ +gap +\d\.\de[+-]\d+ .*→ \d\.\de[+-]\d+ +\d+\.\d s", live)
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")  # the terminal has its cursor back
    model = load_model(path)
    assert model.outcomes[0].status == "interrupted"
    assert np.isfinite(model.outcomes[0].certificate.gap)
    checked = subprocess.run([*COMMAND, "certify", str(path), endless[0]], capture_output=True, timeout=120)
    assert checked.returncode == 0, checked.stdout


def test_second_press_stops_at_once(endless, tmp_path):
    terminal = Terminal(["fit", *endless, "--model", str(tmp_path / "m.safetensors")], stdout=subprocess.PIPE)
    terminal.read_until(some_epochs)
    terminal.process.send_signal(signal.SIGINT)
    terminal.read_until(lambda seen: b"Press Ctrl-C again" in seen)
    terminal.process.send_signal(signal.SIGINT)
    began = time.perf_counter()
    status, _, _ = terminal.end()
    assert time.perf_counter() - began < 10
    # The system ended the process, unless the model had been written by then.
    assert status in (-signal.SIGINT, 130)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_press_while_reading_leaves_nothing(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = start(["fit", str(pipe), "--model", str(tmp_path / "m")], stderr=subprocess.PIPE)
    with open(pipe, "wb") as data:  # opens when the command begins to read
        data.write(b"1 1:1\n")
        data.flush()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.decode().strip().endswith("dualfree: interrupted; nothing was written.")
    assert os.listdir(tmp_path) == ["pipe"]
