"""Fitting the constants: a robust regression in logarithms, shrunk towards one value for all.

Each constant is exp(start + offset + effects of its groups). Offsets and effects have normal priors, so that a group
with little data stays near the value for all. Sources get an offset of their own during the fit, which is dropped
afterwards: rows of one source err together (a mixed model; Gelman & Hill 2007, chapter 12). Residuals are weighted by
Huber's function and solved by Levenberg-Marquardt.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap.prediction.calibration import DIMENSIONS, Constant
from asap.prediction.case import Case
from asap.prediction.classes import Groups
from asap.prediction.constants import PRIORS, Constants
from asap.prediction.step import step

Vector = NDArray[np.float64]

NOISE = 0.08  # scale of a residual, in e-folds, at which Huber's weights begin to matter
SOURCE_SPREAD = 0.07  # prior of a source's own offset
SOURCE_POWER = 0.4  # n rows of a source weigh as n ** 0.4 independent ones
HUBER = 1.5
STEP = 1e-4


@dataclass(frozen=True)
class Term:
    """One number of the fit: an offset of a constant, an effect of a group on it, or a source's own offset."""

    constant: str | None
    dimension: str | None
    group: str | None
    spread: float
    rows: Vector


class Regression:
    """The development runs as one case of arrays, and what is fitted to them."""

    def __init__(self, case: Case, groups: Sequence[Groups], sources: Sequence[str], step_times: Sequence[float]):
        self.case, self.groups, self.sources = case, groups, np.array(sources)
        self.target = np.log(np.array(step_times))
        self.terms = [*self._effects(), *self._sources()]
        self.spreads = np.array([term.spread for term in self.terms])

    def fit(self, use: NDArray[np.bool_], start: Vector | None = None, rounds: int = 60) -> Vector:
        """The terms that fit the rows in ``use`` best."""
        weights = self._weights(use)
        theta = np.zeros(len(self.terms)) if start is None else start.copy()
        damping, loss, calm = 1e-2, self._loss(theta, weights), 0
        for _ in range(rounds):
            curvature, slope = self._normal_equations(theta, weights)
            moved = None
            for _ in range(12):
                damped = curvature + damping * np.diag(np.diag(curvature))
                moved = theta - np.linalg.solve(damped, slope)
                if (new := self._loss(moved, weights)) < loss:
                    break
                damping *= 4
            else:
                break
            calm = calm + 1 if loss - new < 2e-5 * loss else 0
            theta, loss, damping = moved, new, max(damping / 8, 1e-6)
            if calm == 2:
                break
        return theta

    def predict(self, theta: Vector) -> Vector:
        """Logarithm of the step time of each row, without the sources' own offsets."""
        return np.log(step(self.case, self._constants(theta)).total)

    def constants(self, theta: Vector) -> dict[str, Constant]:
        """The terms as data."""
        found: dict[str, Constant] = {}
        for name, prior in PRIORS.items():
            effects: dict[str, dict[str, float]] = {}
            offset = 0.0
            for term, value in zip(self.terms, theta, strict=True):
                if term.constant == name and term.dimension is None:
                    offset = value
                elif term.constant == name and term.dimension and abs(value) > 5e-4:
                    effects.setdefault(term.dimension, {})[str(term.group)] = float(f"{np.exp(value):.4g}")
            found[name] = Constant(value=float(f"{prior.start * np.exp(offset):.4g}"), effects=effects)
        return found

    def _effects(self) -> list[Term]:
        everywhere = np.ones(len(self.groups))
        terms = []
        for name, prior in PRIORS.items():
            terms.append(Term(name, None, None, prior.spread, everywhere))
            for dimension in DIMENSIONS:
                spread = getattr(prior, dimension)
                labels = [getattr(group, dimension) for group in self.groups]
                reference = {"bf16"} if dimension == "precision" else set()
                for label in sorted({label for label in labels if label} - reference) if spread else ():
                    terms.append(Term(name, dimension, label, spread, np.array([x == label for x in labels], float)))
        return terms

    def _sources(self) -> list[Term]:
        names = sorted(set(self.sources.tolist()))
        return [Term(None, None, name, SOURCE_SPREAD, (self.sources == name).astype(float)) for name in names]

    def _weights(self, use: NDArray[np.bool_]) -> Vector:
        counts = Counter(self.sources[use].tolist())
        return np.array([counts[s] ** (SOURCE_POWER - 1) if u else 0.0 for s, u in zip(self.sources, use, strict=True)])

    def _constants(self, theta: Vector) -> Constants:
        logs = {name: np.full(len(self.target), np.log(prior.start)) for name, prior in PRIORS.items()}
        for term, value in zip(self.terms, theta, strict=True):
            if term.constant is not None and value:
                logs[term.constant] = logs[term.constant] + value * term.rows
        return Constants(**{name: np.exp(value) for name, value in logs.items()})

    def _residuals(self, theta: Vector) -> Vector:
        own = sum(value * term.rows for term, value in zip(self.terms, theta, strict=True) if term.constant is None)
        return (self.predict(theta) + own - self.target) / NOISE

    def _loss(self, theta: Vector, weights: Vector) -> float:
        size = np.abs(self._residuals(theta))
        huber = np.where(size < HUBER, size**2 / 2, HUBER * size - HUBER**2 / 2)
        return float((weights * huber).sum() + ((theta / self.spreads) ** 2).sum() / 2)

    def _normal_equations(self, theta: Vector, weights: Vector) -> tuple[Vector, Vector]:
        residuals = self._residuals(theta)
        weights = weights * np.minimum(1.0, HUBER / np.maximum(np.abs(residuals), 1e-9))
        jacobian = np.empty((len(residuals), len(theta)))
        for column, term in enumerate(self.terms):
            if term.constant is None:
                jacobian[:, column] = term.rows / NOISE
            elif not np.any(weights * term.rows):
                jacobian[:, column] = 0.0
            else:
                moved = theta.copy()
                moved[column] += STEP
                jacobian[:, column] = (self._residuals(moved) - residuals) / STEP
        curvature = jacobian.T @ (weights[:, None] * jacobian) + np.diag(self.spreads**-2)
        return curvature, jacobian.T @ (weights * residuals) + theta / self.spreads**2
