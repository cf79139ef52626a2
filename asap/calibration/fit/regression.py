"""Fitting the constants: a robust regression in logarithms, shrunk towards one value for all.

Each constant is exp(start + offset + effects of its groups), and of a share so are the odds. Offsets and effects have
normal priors, so that a group with little data stays near the value for all. Sources get an offset of their own during
the fit, which is dropped afterwards: rows of one source err together (a mixed model; Gelman & Hill 2007, chapter 12).
Residuals are weighted by Huber's function; scipy solves the least squares (trust region reflective).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap.prediction.step_model.constants import MEASURED, MEASURED_LINKS, PRIORS, SHARES, Constants, Prior
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.inputs import StepInputs
from asap.prediction.step_model.step import predict_step
from asap.prediction.uncertainty.calibration import DIMENSIONS, Constant

Vector = NDArray[np.float64]

NOISE = 0.08  # residual, in e-folds, at which Huber's weights begin to matter; judgement: constants
SOURCE_SPREAD = 0.07  # prior of a source's own offset, in e-folds; judgement: constants
SOURCE_POWER = 0.4  # n rows of a source weigh as n ** 0.4 independent ones; judgement: constants
HUBER = 1.5  # deviations up to which a residual counts by its square; judgement: constants
DIFFERENCE = 1e-6  # of a logarithm, for derivatives
REFERENCES = {"precision": frozenset({"bf16"}), "vendor": frozenset({"google", "nvidia"})}
"""Groups that have no effect of their own: most runs are theirs, and the value for all is."""
TOLERANCE = 1e-6  # relative change of the loss at which the fit stops


@dataclass(frozen=True)
class RegressionTerm:
    """One number of the fit: an offset of a constant, an effect of a group on it, or a source's own offset."""

    constant: str | None
    dimension: str | None
    group: str | None
    spread: float
    rows: Vector

    @property
    def is_measured(self) -> bool:
        """Whether it is known from measurements of its own (:mod:`asap.calibration.fit.link_rates`)."""
        links = self.constant == "link_efficiency" and (self.dimension is None or self.group in MEASURED_LINKS)
        return links or self.constant in MEASURED


class Regression:
    """The development runs as arrays, and what is fitted to them."""

    def __init__(
        self, inputs: StepInputs, groups: Sequence[Groups], sources: Sequence[str], step_times: Sequence[float]
    ):
        self.inputs, self.groups, self.sources = inputs, groups, np.array(sources)
        self.target = np.log(np.array(step_times))
        self.terms = [*self._effects(), *self._sources()]
        self.spreads = np.array([term.spread for term in self.terms])

    def fit(self, use: NDArray[np.bool_], start: Vector | None = None) -> Vector:
        """The terms that fit the rows in ``use`` best, shape (terms,); those that were measured stay as they start."""
        from scipy.optimize import least_squares

        weights = self._weights(use)
        first = np.zeros(len(self.terms)) if start is None else start
        free = np.array([not term.is_measured for term in self.terms])

        def whole(found: Vector) -> Vector:
            theta = first.copy()
            theta[free] = found
            return theta

        def residuals(found: Vector) -> Vector:
            return np.concatenate([self._residuals(whole(found)), found / self.spreads[free]])

        def loss(squares: Vector) -> Vector:
            """Value and derivatives of the loss: weighted Huber over the runs, squares over the priors."""
            runs = len(weights)
            rho = np.stack([squares, np.ones_like(squares), np.zeros_like(squares)])
            rho[:, :runs] = weights * _huber(squares[:runs])
            return rho

        def derivatives(found: Vector) -> Vector:
            return np.concatenate([self._derivatives(whole(found))[:, free], np.diag(1 / self.spreads[free])])

        found = least_squares(
            residuals,
            first[free],
            jac=derivatives,  # pyright: ignore[reportArgumentType] (likewise)
            loss=loss,  # pyright: ignore[reportArgumentType] (scipy is not typed: the default is a name)
            x_scale=self.spreads[free],
            ftol=TOLERANCE,
        )
        return whole(found.x)

    def predict(self, theta: Vector) -> Vector:
        """Logarithm of the step time of each row, without the sources' own offsets."""
        return _predicted(self.inputs, self._logarithms(theta))

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
            value = float(_value(name, _start(name, prior) + offset))
            found[name] = Constant(value=float(f"{value:.4g}"), share=name in SHARES, effects=effects)
        return found

    def terms_of(self, constants: Mapping[str, Constant]) -> Vector:
        """The terms of constants as data, the sources' own offsets at zero: the inverse of :meth:`constants`."""
        found = []
        for term in self.terms:
            constant = constants.get(term.constant or "")
            if constant is None or term.constant is None:
                found.append(0.0)
            elif term.dimension is None:
                found.append(_logarithm(term.constant, constant.value) - _start(term.constant, PRIORS[term.constant]))
            else:
                found.append(float(np.log(constant.effects.get(term.dimension, {}).get(str(term.group), 1.0))))
        return np.array(found)

    def _effects(self) -> list[RegressionTerm]:
        everywhere = np.ones(len(self.groups))
        terms = []
        for name, prior in PRIORS.items():
            unit = 1 / (1 - prior.start) if name in SHARES else 1.0
            terms.append(RegressionTerm(name, None, None, unit * prior.spread, everywhere))
            for dimension in DIMENSIONS:
                spread = getattr(prior, dimension)
                labels = [getattr(group, dimension) for group in self.groups]
                reference = REFERENCES.get(dimension, frozenset())
                for label in sorted({label for label in labels if label} - reference) if spread else ():
                    terms.append(
                        RegressionTerm(
                            name, dimension, label, unit * spread, np.array([x == label for x in labels], float)
                        )
                    )
        return terms

    def _sources(self) -> list[RegressionTerm]:
        names = sorted(set(self.sources.tolist()))
        return [RegressionTerm(None, None, name, SOURCE_SPREAD, (self.sources == name).astype(float)) for name in names]

    def _weights(self, use: NDArray[np.bool_]) -> Vector:
        counts = Counter(self.sources[use].tolist())
        return np.array([counts[s] ** (SOURCE_POWER - 1) if u else 0.0 for s, u in zip(self.sources, use, strict=True)])

    def _logarithms(self, theta: Vector) -> dict[str, Vector]:
        """Of each constant and row: its logarithm, or that of its odds."""
        logs = {name: np.full(len(self.target), _start(name, prior)) for name, prior in PRIORS.items()}
        for term, value in zip(self.terms, theta, strict=True):
            if term.constant is not None and value:
                logs[term.constant] = logs[term.constant] + value * term.rows
        return logs

    def _derivatives(self, theta: Vector) -> Vector:
        """Of the residuals, shape (rows, terms): one difference for each constant serves all of its terms."""
        logs = self._logarithms(theta)
        now = _predicted(self.inputs, logs)
        slopes = {
            name: (_predicted(self.inputs, logs | {name: value + DIFFERENCE}) - now) / DIFFERENCE
            for name, value in logs.items()
        }
        columns = [term.rows * (slopes[term.constant] if term.constant else 1.0) for term in self.terms]
        return np.stack(columns, axis=1) / NOISE

    def _residuals(self, theta: Vector) -> Vector:
        own = sum(value * term.rows for term, value in zip(self.terms, theta, strict=True) if term.constant is None)
        return (self.predict(theta) + own - self.target) / NOISE


def _predicted(inputs: StepInputs, logarithms: Mapping[str, Vector]) -> Vector:
    constants = Constants(**{name: _value(name, value) for name, value in logarithms.items()})
    return np.log(predict_step(inputs, constants).total)


def _start(name: str, prior: Prior) -> float:
    """Logarithm of the start. The spread of a share is that of its value near the start."""
    return _logarithm(name, prior.start)


def _logarithm(name: str, value: float) -> float:
    """Of a constant, or of its odds where it is a share."""
    return float(np.log(value / (1 - value) if name in SHARES else value))


def _value(name: str, logarithm: Vector | float) -> Vector:
    size = np.exp(logarithm)
    return size / (1 + size) if name in SHARES else np.asarray(size)


def _huber(squares: Vector) -> Vector:
    """Huber's loss and its first and second derivatives with respect to the squared residual, shape (3, runs)."""
    outside = np.maximum(squares, HUBER**2)
    root = HUBER / np.sqrt(outside)
    return np.where(
        squares <= HUBER**2,
        np.stack([squares, np.ones_like(squares), np.zeros_like(squares)]),
        np.stack([2 * HUBER * np.sqrt(outside) - HUBER**2, root, -root / (2 * outside)]),
    )
