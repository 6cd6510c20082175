"""Pictures and the HTML report."""

from .page import write_report
from .pictures import draw_convergence, draw_path
from .residuals import Density, ResidualRecorder

__all__ = ["Density", "ResidualRecorder", "draw_convergence", "draw_path", "write_report"]
