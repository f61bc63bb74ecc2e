"""The calculated pattern and its derivatives, with GSAS-II's peak shapes and windows that hold still during a fit.

GSAS-II cuts each peak where the width of the moment says, so that its sum of squares jumps by up to 1e-4 from
step to step and its least squares stick. Here windows are laid once for a pass. Excluded points are not in the
arrays at all: they cannot enter a figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from axg_background import Background
from axg_factors import structure_factors
from axg_flight import Burst, reaches
from axg_lines import Lines, Structure, lines_of, structure_of
from axg_model import Model, set_parameters
from axg_names import Column
from axg_shape import AXIAL_STEP, Copies, axial_of, node_counts, nodes_of
from axr_wire import Refused

__all__ = ["FULL", "NARROW", "Computed", "Engine"]

FULL = 1.0
"""Share of GSAS-II's windows (50 and 75 widths from the peak)."""
NARROW = 0.25
"""The same where only a direction is wanted: 2 % of a Lorentzian's area lies outside, the cost is a third."""
_LORENTZ = 3
"""Place of the width among the curves of a line."""
RISE = 1e-5
"""Relative rise of F^2 of the difference that gives the intensity's response."""


@dataclass(frozen=True)
class Computed:
    """A calculated pattern.

    Args:
        values: what it was calculated at, by our names.
        background: shape (n,).
        parts: Bragg contribution of each phase, shape (phases, n).
        jacobian: derivatives by the columns that were asked for, shape (columns, n).
        lines, f2: each phase's lines and squared structure factors.
    """

    values: dict[str, float]
    background: np.ndarray
    parts: np.ndarray
    jacobian: np.ndarray
    lines: tuple[Lines, ...]
    f2: tuple[np.ndarray, ...]

    @property
    def y(self) -> np.ndarray:
        """Background plus all phases, shape (n,)."""
        total = self.background.copy()
        for part in self.parts:
            total = total + part
        return total


class Engine:
    """Computes patterns of one model; windows are laid at the first call after :meth:`lay`.

    Args:
        model: GSAS-II's dictionaries.
        share: of GSAS-II's windows.
    """

    def __init__(self, model: Model, share: float = FULL) -> None:
        self.model = model
        self.x = np.ascontiguousarray(model.x)
        self.structures = tuple(structure_of(model, index) for index in range(len(model.state.phases)))
        self._share = share
        self._windows: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._matched: tuple[np.ndarray, ...] | None = None
        self.lit: np.ndarray | None = None
        """Which reflections had an intensity in the last profile match; the next one is near."""
        self._f2: dict[int, tuple[tuple[float, ...], np.ndarray]] = {}
        self.background = Background(model.state, self.x)

    def lay(self) -> None:
        """Forget the windows: the next pattern lays them anew."""
        self._windows = {}

    def compute(self, values: dict[str, float], columns: tuple[Column, ...] = ()) -> Computed:
        """Return the pattern at given values, with derivatives by some columns.

        Raises:
            Refused: a cell is no cell, or the pattern is not finite.
        """
        set_parameters(self.model, values)
        curve = self.background.compute(values)
        background = curve.y
        jacobian = np.zeros((len(columns), self.x.size))
        for number, column in enumerate(columns):
            for key, weight in column.moves:
                if key.startswith("background."):
                    jacobian[number] += weight * curve.slopes[key]
        done = [self._phase(index, values, columns, jacobian) for index in range(len(self.structures))]
        parts = np.stack([item[0] for item in done])
        if not (np.all(np.isfinite(parts)) and np.all(np.isfinite(background))):
            raise Refused("diverged", "pattern_not_finite", "The calculated pattern has values that are not finite.")
        return Computed(dict(values), background, parts, jacobian, tuple(i[1] for i in done), tuple(i[2] for i in done))

    def _phase(
        self, index: int, values: dict[str, float], columns: tuple[Column, ...], jacobian: np.ndarray
    ) -> tuple[np.ndarray, Lines, np.ndarray]:
        """Add a phase's derivatives to the Jacobian, and return its pattern, lines and F^2."""
        fixed = self.structures[index]
        name = self.model.state.phases[index].name
        mine = [k for k, column in enumerate(columns) if column.concerns(name)]
        atomic = any(key.startswith(f"phase.{name}.atom.") for k in mine for key, _ in columns[k].moves)
        f2, slopes = self._squared(index, values, derivatives=atomic)
        lines = lines_of(self.model, fixed, values, f2)
        chain = self._chain(fixed, lines, values, f2, slopes, [columns[k] for k in mine])
        block = np.zeros((len(mine), self.x.size))
        part = self._draw(fixed, lines, values, f2, chain, block)
        jacobian[mine] += block
        return part, lines, f2

    def _squared(
        self, index: int, values: dict[str, float], *, derivatives: bool
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return F^2 and its derivatives; taken from a profile match, or from the last call with the same atoms."""
        if self.model.state.mode == "lebail":
            return self._intensities(index), {}
        prefix = f"phase.{self.model.state.phases[index].name}."
        moving = (".cell.", ".atom.")
        key = tuple(value for name, value in values.items() if name.startswith(prefix) and _has(name, moving))
        known = self._f2.get(index)
        if known is not None and known[0] == key and not derivatives:
            return known[1], {}
        empty = np.ones(len(self.structures[index].hkl))
        d = lines_of(self.model, self.structures[index], values, empty).d
        f2, slopes = structure_factors(self.model, index, d, derivatives=derivatives)
        self._f2[index] = (key, f2)
        return f2, slopes

    def match(self, intensities: tuple[np.ndarray, ...] | None) -> None:
        """Set the F^2 of a profile match, by phase; None for all alike, where only positions and shapes matter."""
        if intensities is None:
            intensities = tuple(np.ones(len(structure.hkl)) for structure in self.structures)
        self._matched = intensities

    def _intensities(self, index: int) -> np.ndarray:
        """Return the F^2 of a profile match: those that were set, or the state's."""
        if self._matched is not None:
            return self._matched[index]
        given = self.model.state.intensities
        if not given:
            return np.ones(len(self.structures[index].hkl))
        table = {tuple(row[:3]): row[3] for row in given[index]}
        return np.array([table.get(tuple(hkl), 0.0) for hkl in self.structures[index].hkl])

    def _chain(
        self,
        fixed: Structure,
        lines: Lines,
        values: dict[str, float],
        f2: np.ndarray,
        slopes: dict[str, np.ndarray],
        columns: list[Column],
    ) -> np.ndarray:
        """Return d(what a line's curves are multiplied with)/d(column), shape (columns, k, lines, r).

        What: intensity, position, variance, width, and (S+H)/L or, over the time of flight, rise and decay.
        """
        chain = np.zeros((len(columns), 5 if lines.rise is None else 6, *lines.position.shape))
        weights = self.weights(values)
        # extinction makes the intensity grow slower than F^2
        stronger = lines_of(self.model, fixed, values, f2 * (1.0 + RISE)).factor * (1.0 + RISE)
        response = (stronger - lines.factor) / RISE
        for number, column in enumerate(columns):
            atoms = [(slopes[name], w) for key, w in column.moves if (name := self._slope_name(fixed.index, key))]
            if atoms:
                change = sum(slope * weight for slope, weight in atoms)
                chain[number, 0] = weights[:, None] * response * change
                continue
            if column.axial:
                chain[number, 4] = 2.0 * weights[:, None] * lines.factor * f2
                continue
            up, down, span = column.around(values)
            high, low = (lines_of(self.model, fixed, v, f2) for v in (up, down))
            heights = [
                w[:, None] * line.factor * f2 for w, line in ((self.weights(up), high), (self.weights(down), low))
            ]
            amplitude = weights[:, None] * lines.factor * f2
            chain[number, 0] = (heights[0] - heights[1]) / span
            chain[number, 1] = amplitude * (high.position - low.position) / span
            chain[number, 2] = amplitude * (high.variance - low.variance) / span
            chain[number, 3] = amplitude * (high.lorentz - low.lorentz) / span
            for place, (above, below) in enumerate(zip(high.exponentials, low.exponentials, strict=True), start=4):
                chain[number, place] = amplitude * (above - below) / span
        return np.where(np.isfinite(chain), chain, 0.0)

    def weights(self, values: dict[str, float]) -> np.ndarray:
        """Return the intensity of each emission line over that of the first."""
        return np.array([1.0] if self.model.state.second_line is None else [1.0, values["instrument.ka2_ratio"]])

    def _slope_name(self, index: int, key: str) -> str | None:
        """Return the name of the derivative of F^2 by one of our numbers, None where F^2 has none."""
        phase = self.model.state.phases[index]
        head = f"phase.{phase.name}.atom."
        if not key.startswith(head):
            return None
        label, _, quantity = key[len(head) :].rpartition(".")
        number = next(k for k, atom in enumerate(phase.domain["atoms"]) if atom["label"] == label)
        return f"{quantity}:{number}"

    def _draw(
        self,
        fixed: Structure,
        lines: Lines,
        values: dict[str, float],
        f2: np.ndarray,
        chain: np.ndarray,
        block: np.ndarray,
    ) -> np.ndarray:
        """Return the sum of all peaks of a phase, and add the derivatives to a block."""
        amplitude = self.weights(values)[:, None] * lines.factor * f2
        part = np.zeros(self.x.size)
        slopes = len(block) > 0
        for copy in self._copies(fixed.index, lines, values, slopes=slopes):
            line, number, window = copy.line, copy.number, copy.window
            if not slopes:
                part[window] += amplitude[line, number] * copy.plain()
                continue
            curves = copy.slopes()
            part[window] += amplitude[line, number] * curves[0]
            block[:, window] += chain[:, :, line, number] @ curves
        return part

    def intensity_changes(self, seen: Computed, index: int, changes: np.ndarray) -> np.ndarray:
        """Return what relative changes of a phase's intensities do to the pattern.

        Args:
            seen: a pattern of this engine.
            index: the phase.
            changes: relative change of each reflection's intensity, shape (k, r).

        Returns:
            Shape (k, n).
        """
        block = np.zeros((len(changes), self.x.size))
        for number, window, curve in self.curves(seen, index):
            block[:, window] += changes[:, number, None] * (seen.f2[index][number] * curve)
        return block

    def width_changes(self, seen: Computed, index: int, changes: np.ndarray) -> np.ndarray:
        """Return what changes of a phase's Lorentzian widths do to the pattern, to first order.

        Args:
            seen: a pattern of this engine.
            index: the phase.
            changes: of each reflection's width, in the unit of the lines, shape (k, r).

        Returns:
            Shape (k, n).
        """
        lines, block = seen.lines[index], np.zeros((len(changes), self.x.size))
        amplitude = self.weights(seen.values)[:, None] * lines.factor * seen.f2[index]
        for copy in self._copies(index, lines, seen.values, slopes=True):
            curve = amplitude[copy.line, copy.number] * copy.slopes()[_LORENTZ]
            block[:, copy.window] += changes[:, copy.number, None] * curve
        return block

    def curves(self, seen: Computed, index: int) -> Iterator[tuple[int, slice, np.ndarray]]:
        """Yield reflection, points and profile per unit F^2 of each line of a phase."""
        lines = seen.lines[index]
        amplitude = self.weights(seen.values)[:, None] * lines.factor
        for copy in self._copies(index, lines, seen.values, slopes=False):
            yield copy.number, copy.window, amplitude[copy.line, copy.number] * copy.plain()

    def _copies(self, index: int, lines: Lines, values: dict[str, float], *, slopes: bool) -> Iterator[Copies | Burst]:
        """Yield what each line that reaches the points is made of."""
        if lines.rise is not None:
            yield from self._bursts(index, lines)
            return
        first, last, counts = self._window(index, lines, values)
        axial = axial_of(values)
        for count in np.unique(counts[first < last]):
            which = np.nonzero((counts == count) & (first < last))
            position = lines.position[which]
            nodes = nodes_of(position, int(count), axial)
            more = nodes_of(position, int(count), axial + AXIAL_STEP) if slopes else nodes
            bent = (more.shifts - nodes.shifts) / AXIAL_STEP, (more.weights - nodes.weights) / AXIAL_STEP
            for row, (line, number) in enumerate(zip(*which, strict=True)):
                window = slice(int(first[line, number]), int(last[line, number]))
                grid = (self.x[window] - position[row]) + nodes.shifts[row][:, None]
                widths = (float(lines.variance[number]), float(lines.lorentz[number]))
                bends = (bent[0][row], bent[1][row])
                yield Copies(int(line), int(number), window, grid, widths, nodes.weights[row], bends)

    def _bursts(self, index: int, lines: Lines) -> Iterator[Burst]:
        """Yield each line over the time of flight that reaches the points."""
        assert lines.rise is not None and lines.decay is not None  # noqa: PT018
        position = lines.position[0]
        if index not in self._windows:
            short, long = reaches(lines.variance, lines.lorentz, lines.rise, lines.decay, self._share)
            first, last = np.searchsorted(self.x, position - short), np.searchsorted(self.x, position + long)
            self._windows[index] = (first, last, np.ones(position.size, dtype=np.int64))
        first, last, _ = self._windows[index]
        shapes = np.stack([lines.rise, lines.decay, lines.variance, lines.lorentz], axis=1).tolist()
        for number in np.flatnonzero(first < last):
            window = slice(int(first[number]), int(last[number]))
            yield Burst(0, int(number), window, self.x[window] - position[number], tuple(shapes[number]))

    def _window(self, index: int, lines: Lines, values: dict[str, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return first and last point and number of copies of each line, shape (lines, r) each; GSAS-II's rules."""
        if index not in self._windows:
            fwhm = np.maximum((2.355 * np.sqrt(lines.variance) + lines.lorentz) / 100.0, 1e-4)
            position = np.nan_to_num(lines.position, nan=-1.0)
            short = 50.0 * self._share * (fwhm + axial_of(values) * np.abs(np.cos(np.radians(position))))
            far = np.broadcast_to(75.0 * self._share * fwhm, position.shape)
            left, right = np.where(position > 90.0, far, short), np.where(position > 90.0, short, far)
            first, last = np.searchsorted(self.x, position - left), np.searchsorted(self.x, position + right)
            # beyond 180 degrees there is no line, and Bragg's law gave none for NaN
            last = np.where((position <= 0.0) | (position >= 179.5), first, last)
            counts = node_counts(position, np.broadcast_to(fwhm, position.shape), axial_of(values))
            self._windows[index] = (first, last, counts)
        return self._windows[index]


def _has(name: str, parts: tuple[str, ...]) -> bool:
    return any(part in name for part in parts)
