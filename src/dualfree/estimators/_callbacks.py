"""`sklearn.callback`, where the installed scikit-learn has it (1.9 and later), and lines of progress for `verbose`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..solvers import State

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    FRAMES_OF_FIT = 2
except ImportError:
    FRAMES_OF_FIT = 1

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's class of that name: without it an estimator has no `set_callbacks`."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = ["FRAMES_OF_FIT", "CallbackSupportMixin", "Progress", "with_callbacks"]

Attributes = Callable[[State], dict[str, Any]]


class Progress:
    """Reports on a fit, or on a part of it: prints lines if the estimator is verbose, calls its callbacks if it has some.

    In scikit-learn's terms it is a task. Where it stands for one problem, its subtasks are the evaluations of the
    certificate, and nobody knows how many there will be. Where it has several parts, each is a subtask.

    Parameters
    ----------
    estimator : estimator
        The one being fitted.
    names : list of str
        The names of the parts.
    data : dict
        What callbacks may ask for: X, y and metadata.
    context : CallbackContext or None
        The task; None where nobody listens.
    """

    def __init__(self, estimator: Any, names: list[str], data: dict[str, Any], context: Any) -> None:
        self.estimator, self.names, self.data, self.context = estimator, names, data, context
        self.began = time.perf_counter()
        self.stopped = False
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator, **data)

    @classmethod
    def begin(cls, estimator: Any, names: list[str], X: Any, y: Any, sample_weight: Any) -> Progress:
        """Begin the report on a fit."""
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        context = None
        if hasattr(estimator, "_init_callback_context"):
            context = estimator._init_callback_context(**_size(names))
        return cls(estimator, names, {"X": X, "y": y, "metadata": metadata}, context)

    @property
    def heard(self) -> bool:
        """Whether the estimator has callbacks."""
        return bool(getattr(self.estimator, "_skl_callbacks", []))

    def part(self, index: int, names: list[str] | None = None) -> Progress:
        """Begin the report on a part, which itself consists of problems or of nothing that is reported."""
        context = None
        if self.heard:
            context = self.context.subcontext(self.names[index], task_id=index, **_size(names))
        return Progress(self.estimator, names or [], self.data, context)

    def watch(self, index: int, attributes: Attributes | None) -> Watch | None:
        """Return the callback for the solve of one problem; None where nobody listens."""
        if not self.heard and not self.estimator.verbose:
            return None
        task = self if len(self.names) == 1 else self.part(index, [self.names[index]])
        return Watch(task, self.names[index], attributes, ends_task=task is not self, parent=self)

    def say(self, name: str, line: str) -> None:
        """Print a line if the estimator is verbose."""
        if self.estimator.verbose:
            print(f"[{type(self.estimator).__name__}{name and ', '}{name}] {line}", flush=True)

    def end(self) -> None:
        """Say that the task is over."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, **self.data, reconstruction_attributes={})


def _size(names: list[str] | None) -> dict[str, Any]:
    """The number of subtasks: none, an unknown number in sequence (a single problem), or one per part, in any order."""
    if not names:
        return {"max_subtasks": 0}
    if len(names) == 1:
        return {"max_subtasks": None}
    return {"max_subtasks": len(names), "sequential_subtasks": False}


class Watch:
    """Follows the solve of one problem: the engine calls it after each evaluation."""

    def __init__(
        self, task: Progress, name: str, attributes: Attributes | None, ends_task: bool, parent: Progress
    ) -> None:
        self.task, self.name, self.attributes, self.ends_task, self.parent = task, name, attributes, ends_task, parent
        self.step: Any = None
        self._next_step()

    def _next_step(self) -> None:
        if self.task.heard:
            self.step = self.task.context.subcontext("evaluation")
            self.step.call_on_fit_task_begin(estimator=self.task.estimator, **self.task.data)

    def __call__(self, state: State) -> bool:
        """Report on an evaluation; True asks the solver to stop."""
        certificate, seconds = state.certificate, time.perf_counter() - self.parent.began
        self.task.say(
            self.name,
            f"epoch {state.epoch}: objective {certificate.primal:.8g}, relative gap {certificate.relative_gap:.1e}, "
            f"{seconds:.2f} s",
        )
        if self.step is None:
            return False
        fitted = None if self.attributes is None else self.attributes(state)
        stop = bool(
            self.step.call_on_fit_task_end(
                estimator=self.task.estimator, **self.task.data, reconstruction_attributes=fitted
            )
        )
        self._next_step()
        self.parent.stopped = self.parent.stopped or stop
        return stop

    def end(self) -> None:
        """Say that this problem is solved."""
        if self.step is not None:
            self.step.call_on_fit_task_end(estimator=self.task.estimator)  # it was begun, but the solver was done
            if self.ends_task:
                self.task.end()
