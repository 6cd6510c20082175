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


def wait_for_first_line(process):
    line = process.stdout.readline()
    assert b"20000 rows" in line
    time.sleep(1.5)  # into the epochs


def test_first_press_keeps_the_best_model(endless, tmp_path):
    path = tmp_path / "m.safetensors"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = start(
        ["fit", *endless, "--model", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    wait_for_first_line(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"stopping; the best model so far is kept. Press Ctrl-C again to stop at once." in err
    assert b"Interrupted after" in out
    assert b"Traceback" not in err
    model = load_model(path)
    assert model.outcomes[0].status == "interrupted"
    assert np.isfinite(model.outcomes[0].certificate.gap)
    checked = subprocess.run([*COMMAND, "certify", str(path), endless[0]], capture_output=True, timeout=60)
    assert checked.returncode == 0, checked.stdout


def test_second_press_stops_at_once(endless, tmp_path):
    path = tmp_path / "m.safetensors"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = start(
        ["fit", *endless, "--model", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    wait_for_first_line(process)
    process.send_signal(signal.SIGINT)
    while b"Press Ctrl-C again" not in process.stderr.readline():
        pass
    began = time.perf_counter()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert time.perf_counter() - began < 5
    # Either the second press came first, and the system ended the process, or the model had been written by then.
    assert process.returncode in (-signal.SIGINT, 130)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_press_while_reading_leaves_nothing(tmp_path):
    process = start(["fit", "-", "--model", str(tmp_path / "m")], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"1 1:1\n")
    process.stdin.flush()
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.decode().strip().endswith("dualfree: interrupted; nothing was written.")
    assert list(tmp_path.iterdir()) == []


def test_live_line_on_a_terminal(endless):
    """The line shows epoch, gap and target, moves on, and Ctrl-C gives the terminal its cursor back."""
    leader, follower = pty.openpty()
    process = start(
        ["fit", *endless], stdin=follower, stdout=follower, stderr=follower, env={**os.environ, "TERM": "xterm"}
    )
    os.close(follower)
    seen, pressed, deadline = b"", False, time.monotonic() + 90
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                seen += os.read(leader, 1 << 16)
            except OSError:
                break
        epochs = {int(number) for number in re.findall(rb"epoch +(\d+)", seen)}
        if not pressed and len(epochs) > 3:
            process.send_signal(signal.SIGINT)
            pressed = True
    process.wait(timeout=60)
    os.close(leader)
    text = seen.decode()
    assert process.returncode == 130
    assert re.search(
        r"epoch +\d+ +gap +\d\.\de[+-]\d+ .*→ \d\.\de[+-]\d+ +\d+\.\d s", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    )
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")
