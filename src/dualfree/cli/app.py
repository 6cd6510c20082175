"""The commands together, and the one place where errors become sentences."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence

import click

from .._version import __version__
from . import exits
from .bench import bench
from .certify import certify
from .demo import demo
from .evaluate import evaluate
from .export import export
from .fit import fit
from .info import info
from .path import path
from .predict import predict
from .reproduce import reproduce

_EXITS = "\n".join(f"  {status:<4} {meaning}" for status, meaning in exits.MEANING.items())


class _Group(click.Group):
    """Lists the commands in the order in which they are used, and keeps the line breaks of their examples."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        # click marks a paragraph that must not be wrapped by a backspace; docstrings here spell it out.
        cmd.help = (cmd.help or "").replace("\\b\n", "\b\n")
        super().add_command(cmd, name)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExit statuses:\n" + _EXITS + "\n\n\b\nA first session:\n"
    "  dualfree fit train.svm --intercept --model m.safetensors\n"
    "  dualfree evaluate m.safetensors test.svm\n"
    "  dualfree predict m.safetensors new.svm -o predictions.txt\n",
)
@click.version_option(__version__, "-V", "--version", prog_name="dualfree")
def cli() -> None:
    """Train linear models to a certified optimum.

    Each fit ends with a certificate: a number, proven from the data, that says how far the model is from the best one
    there is, at most.
    """


for command in (fit, predict, evaluate, certify, path, info, export, demo, reproduce, bench):
    cli.add_command(command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit status. Errors are one sentence on standard error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = cli.main(args=given, prog_name="dualfree", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except click.exceptions.Exit as done:
        return int(done.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return exits.BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted; nothing was written.", exits.INTERRUPTED, given)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "dualfree"
        return _complain(f"{error.format_message()} See '{where} --help'.", exits.BAD_INPUT, given)
    except BrokenPipeError:
        # The reader of our output has gone, `head` for instance; Python must not try to flush what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.BROKEN_PIPE
    except MemoryError as error:
        return _complain(f"there is not enough memory ({error}).", exits.BAD_INPUT, given)
    except OSError as error:
        return _complain(_os_sentence(error), exits.BAD_INPUT, given)
    except (ValueError, TypeError, ImportError, click.ClickException) as error:
        return _complain(str(error), exits.BAD_INPUT, given)
    except Exception as error:
        text = f"this is a bug in dualfree: {type(error).__name__}: {error}. Set DUALFREE_TRACEBACK=1 to see where."
        return _complain(text, exits.BUG, given)


def _complain(sentence: str, status: int, arguments: Sequence[str]) -> int:
    if os.environ.get("DUALFREE_TRACEBACK"):
        traceback.print_exc()
    one_line = " ".join(sentence.split())
    print(f"dualfree: {one_line}", file=sys.stderr)
    if "--json" in arguments:
        print(json.dumps({"error": one_line, "exit_status": status}, ensure_ascii=False))
    return status


def _os_sentence(error: OSError) -> str:
    if error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}."
    return str(error)
