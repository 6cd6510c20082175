"""The page of the reproduction: verdicts, figures, assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import assumptions, figures
from .claims import Claim
from .data import PaperData
from .machine import machine
from .page import Page
from .plan import PAPER_LOSSES, Plan
from .style import SHORT_AXES, look


def write_paper_page(
    folder: Path,
    plan: Plan,
    data: Mapping[str, PaperData],
    complete: Mapping[str, PaperData],
    main: Any,
    sensitivity: Any,
    checks: Any,
    kept: Mapping[tuple[str, str, str, str], Any],
    speed: list[dict[str, Any]],
    verdicts: list[Claim],
    seconds: float,
) -> None:
    """Draw all figures and write ``index.html``."""
    pictures = folder / "figures"
    page = Page("Dual Free SDCA with Adaptive Probabilities: the experiments, reproduced")
    labels = " and ".join(source.label for source in data.values())
    for source in data.values():
        if source.synthetic:
            page.paragraph(
                f"{source.name} could not be had: these results are from SYNTHETIC data in its shape and say nothing about "
                f"{source.name} itself. Every figure and row says so.",
                "banner",
            )
        elif source.origin == "stand-in":
            page.paragraph(f"{source.name} was not at hand: {source.label}.", "banner")
    page.paragraph(
        f"{plan.mode} mode: {plan.seeds} seed{'s' if plan.seeds > 1 else ''}, at most {plan.epochs} epochs"
        + "".join(f", {e} for adfSDCA on {d}" for d, e in plan.slow_epochs)
        + f", until a relative gap of {plan.tol:g}. Data: {labels}. "
        + (f"λ is a multiple of 1/n with the n of the part ({plan.rows:,}). " if plan.rows else "")
        + f"The runs took {seconds:.0f} s, certificates included, on {machine()}."
    )
    page.section("The claims")
    page.claims(verdicts)
    if speed:
        page.figure(
            pictures,
            figures.speedup_figure(speed, pictures, labels),
            "The adaptive methods against the baselines at the smallest gap that both reach: "
            "how many times fewer epochs, passes and seconds.",
        )
        page.table(*_speed_table(speed), folded="Every comparison, in numbers")
    page.section("Figure 1: the duality gap")
    for name in data:
        for loss in PAPER_LOSSES:
            page.figure(
                pictures,
                figures.gap_figure(main, pictures, name, loss),
                f"{data[name].label}, {loss} loss. The same runs against epochs, passes and seconds. "
                "Where a curve is missing below, its method was given fewer epochs.",
            )
    page.section("Figure 2: the dual residuals")
    shown = "1/n" if any(key[2] == "1/n" for key in kept) else str(plan.strengths[0])
    for name in data:
        for loss in PAPER_LOSSES:
            pair = {key[3]: frame for key, frame in kept.items() if key[:3] == (name, loss, shown)}
            if pair:
                drawn = figures.residual_figure(pair, pictures, name, loss, shown, data[name].label)
                page.figure(
                    pictures,
                    drawn,
                    f"{data[name].label}, {loss} loss, λ = {shown}: |κ| after 1 to 5 epochs, first seed.",
                )
    page.section("The theorem")
    page.figure(
        pictures,
        figures.theorem_figure(checks, pictures),
        f"The potential (1/n)‖α − α*‖²/L + λ‖w − w*‖² and its bound, on {plan.theory_rows:,} rows.",
    )
    page.section("What the paper leaves open")
    page.items(assumptions.SILENT)
    page.figure(
        pictures,
        figures.sensitivity_figure(sensitivity, pictures, shown, min(10, plan.epochs)),
        "adfSDCA+: the effect of s and of the step. One seed.",
    )
    page.section("Slips in the paper")
    page.items(assumptions.SLIPS)
    page.section("How it was measured")
    page.items(assumptions.MEASURED)
    page.table(
        ("data", "rows × features", "origin", "from"),
        [
            (s.label, f"{s.X.shape[0]:,} × {s.X.shape[1]:,} (of {complete[n].X.shape[0]:,} rows)", s.origin, s.where)
            for n, s in data.items()
        ],
    )
    page.write(folder / "index.html")


def _speed_table(speed: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    header = [
        "data",
        "loss",
        "λ",
        "method",
        "against",
        "gap",
        *(f"{name}: needs / baseline" for name in SHORT_AXES.values()),
    ]
    rows = []
    for row in speed:
        needs = [
            f"{row['needs'][a]:.3g} / {row['baseline_needs'][a]:.3g} (×{row['factor'][a]:.2g})" for a in SHORT_AXES
        ]
        names = [look(row["method"]).label, look(row["baseline"]).label]
        rows.append([row["data"], row["loss"], row["lam"], *names, f"{row['target']:.0e}", *needs])
    return header, rows
