"""``dualfree bench``: any solvers on your own data, with the paper's figures."""

from __future__ import annotations

from typing import Any

import click

from ..losses import LOSSES
from ..solvers import SOLVERS
from . import exits
from .fit import READING, taken
from .options import json_option, quiet_option, read_training_data, reading_options, training_data_options
from .output import Output, say_data_notes
from .reproduce import interrupted, plan_bar


class Listed(click.ParamType[list[str]]):
    """Entries with commas between them."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the entries."""
        if isinstance(value, list):
            return value
        entries = [entry.strip() for entry in value.split(",")]
        if not all(entries):
            self.fail(f"{value!r} has an empty entry; write a,b,c.", param, ctx)
        return entries


@click.command(short_help="Compare solvers on your data, with the paper's figures.")
@click.argument("data", type=click.Path())
@click.option("--out", metavar="FOLDER", type=click.Path(file_okay=False), required=True, help="Write everything here.")
@click.option(
    "--solvers",
    type=Listed(),
    default="dfsdca,adfsdca+:step=safe,adfsdca+:step=exact,prox-sdca,auto",
    show_default=True,
    help=f"Any of {', '.join(SOLVERS)}; options follow a colon, as in adfsdca+:step=safe:shrink=2.",
)
@click.option("--losses", type=Listed(), default="logistic", show_default=True, help=f"Any of {', '.join(LOSSES)}.")
@click.option(
    "--lams", type=Listed(), default="1/n", show_default=True, help="λ: numbers or multiples of 1/n, as 0.1/n."
)
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Seeds of each run.")
@click.option("--epochs", type=click.IntRange(min=1), default=50, show_default=True, help="The most epochs of a run.")
@click.option("--tol", type=float, default=1e-8, show_default=True, help="The relative gap at which a run ends.")
@training_data_options
@reading_options
@json_option
@quiet_option
def bench(data: str, as_json: bool, quiet: bool, **options: Any) -> int:
    r"""Run SOLVERS on DATA for each loss and λ; draw the gap against epochs, passes and seconds, and the residuals.

    Interrupted, it goes on where it was when the same command is given again.

    \b
    Examples:
      dualfree bench train.svm --out bench
      dualfree bench train.svm --out bench --solvers prox-sdca,auto --losses logistic,squared_hinge --lams 1/n,0.1/n
    """
    from ..reproduce import compare

    output = Output("bench", as_json)
    training = read_training_data(data, quiet, **taken(options, READING))
    say_data_notes(output, training)
    names = ("out", "solvers", "losses", "lams", "seeds", "epochs", "tol")
    with plan_bar(quiet) as progress:
        try:
            made = compare(training, progress=progress, **taken(options, names))
        except KeyboardInterrupt:
            return interrupted(output, options["out"])
    shown = made.summary[made.summary["target"] == made.summary["target"].min()]
    output.say(f"To a relative gap of {shown['target'].iloc[0]:.0e} (median over the seeds):")
    output.say(f"  {'loss':<14} {'λ':<10} {'solver':<28} {'epochs':>8} {'passes':>9} {'seconds':>10}")
    for row in shown.itertuples():
        needs = [f"{v:.3g}" if v == v else "-" for v in (row.epochs, row.passes, row.seconds)]
        output.say(f"  {row.loss:<14} {row.lam:<10} {row.method:<28} {needs[0]:>8} {needs[1]:>9} {needs[2]:>10}")
    output.say(f"Wrote {made.out / 'index.html'}, summary.parquet, traces.parquet and figures.")
    output.put(out=str(made.out), summary=made.summary.to_dict(orient="records"))
    return output.end(exits.CERTIFIED)
