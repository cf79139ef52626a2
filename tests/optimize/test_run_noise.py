"""Noise between runs: it is learnt, what is claimed of the winner comes true, and the ± holds it."""

import math
import random
from statistics import fmean, median

import numpy as np
import pytest

from asap.core.units import Provenance
from asap.evidence.step_belief import Prior
from asap.optimize.outcome import Outcome, Try
from asap.optimize.proposers.model_guided import ModelGuided
from asap.optimize.report import best_measured
from asap.optimize.results import best_of, noise_of, repeat, shrunk
from asap.prediction.uncertainty.calibration import load_calibration

KERNEL = load_calibration().full.residual_kernel
CONFIGURATIONS, BUDGET, WITHIN = 24, 12, 0.003


def ran(number, configuration, seconds, error=WITHIN):
    outcome = Outcome(
        status="done", step_time_s=seconds, standard_error_s=error * seconds or None, steps=20,
        provenance=Provenance.MEASURED,
    )  # fmt: skip
    return Try(number=number, configuration=configuration, why="", outcome=outcome)


def machine(seed):
    """What the model says of each configuration, and what is true: residuals are shared as in published runs."""
    chance = np.random.default_rng(seed)
    places = np.sort(chance.uniform(0, 6, CONFIGURATIONS))
    apart = np.abs(places[:, None] - places[None])
    log_time = chance.uniform(0.0, 0.6, CONFIGURATIONS)
    prior = Prior(
        configurations=tuple(map(str, range(CONFIGURATIONS))), log_time=log_time, log_fill=None,
        effort=np.zeros(CONFIGURATIONS), apart=lambda place: apart[place][None],
    )  # fmt: skip
    covariance = np.stack([KERNEL.shared(apart[place][None, None])[0] for place in range(CONFIGURATIONS)])
    covariance = (covariance + covariance.T) / 2 + np.eye(CONFIGURATIONS) * (KERNEL.own**2 + 1e-9)
    residual = chance.multivariate_normal(np.zeros(CONFIGURATIONS), covariance, check_valid="ignore")
    return prior, np.exp(log_time + residual)


def session(seed, noise):
    """Claimed and true saving of a session, and whether the interval holds the true one."""
    prior, truth = machine(seed)
    chance, first = random.Random(seed), str(int(np.argsort(truth)[CONFIGURATIONS * 3 // 4]))
    proposer, tries = ModelGuided(prior, KERNEL, first=first), list[Try]()
    while len(tries) < BUDGET:
        suggestion = None if tries else first
        if suggestion is None:
            proposed = proposer.propose(tries)
            if proposed is None or (proposed.saving is not None and proposed.saving < 0.002):
                break
            suggestion = proposed.configuration
        seconds = truth[int(suggestion)] * math.exp(chance.gauss(0, math.hypot(noise, WITHIN)))
        tries.append(ran(len(tries) + 1, suggestion, seconds))
    best = best_measured(tries, proposer.believed(tries), (), first, lambda configuration: "")
    true = 1 - truth[int(best.configuration)] / truth[int(first)]
    low, high = (best.saves_low, best.saves_high) if best.saves_low is not None else (0.0, 0.0)
    possible = 1 - truth.min() / truth[int(first)]
    return best.saves or 0.0, true, low <= true <= (high or 0.0), possible, ((high or 0.0) - low) / 2


def sessions(noise, seeds):
    """Over sessions: claimed less true saving, share whose interval holds the true one, true and possible saving, and
    the median half-width."""
    claimed, true, inside, possible, half = zip(*(session(seed, noise) for seed in seeds), strict=True)
    return fmean(claimed) - fmean(true), fmean(inside), fmean(true), fmean(possible), median(half)


@pytest.mark.slow
def test_what_is_claimed_comes_true_whatever_the_noise():
    for noise in (0.0, 0.05, 0.1, 0.2):
        over, inside, true, possible, half = sessions(noise, range(60))
        assert abs(over) <= 0.03
        assert true > 0.8 * possible
        assert inside >= 0.85
        assert half < 0.75 * noise + 0.02


@pytest.mark.slow
def test_where_no_model_knows_the_settings_the_interval_of_the_best_holds_the_truth():
    def saved(seed):
        chance = np.random.default_rng(seed)
        truth = np.exp(0.25 * chance.standard_normal(12))
        others, tries = iter(range(1, 12)), list[Try]()
        while len(tries) < 20:
            again = repeat(tries, "0", lambda: shrunk(tries)[0].configuration) if tries else ("0", "")
            configuration = again[0] if again else str(next(others, 0))
            noise = np.exp(0.2 * chance.standard_normal())
            tries.append(ran(len(tries) + 1, configuration, truth[int(configuration)] * noise))
        best = best_measured(tries, shrunk(tries), (), "0", lambda configuration: "")
        true = 1 - truth[int(best.configuration)] / truth[0]
        return best.saves, true, (best.saves_low or 0) <= true <= (best.saves_high or 0)

    claimed, true, inside = zip(*map(saved, range(60)), strict=True)
    assert abs(fmean(claimed) - fmean(true)) <= 0.03
    assert 0.85 <= fmean(inside) <= 0.97


def test_runs_that_differ_are_repeated_and_tell_by_how_much():
    prior, truth = machine(1)
    proposer = ModelGuided(prior, KERNEL, first="3")
    tries = [ran(1, "3", truth[3])]
    under_way = [Try(number=0, configuration="3", why=""), ran(1, "5", truth[5])]
    assert [proposer.propose(each).why[:5] for each in (tries, under_way)] == ["again", "again"]
    assert proposer.propose(under_way).configuration == proposer.propose(tries).configuration == "3"
    tries.append(ran(2, "3", 1.3 * truth[3]))
    noise = noise_of(tries)
    assert noise.matters
    assert noise.deviation == pytest.approx(math.log(1.3) / math.sqrt(2), rel=0.2)
    assert best_of(tries).log_error > 10 * WITHIN


def test_a_pair_that_agrees_makes_the_interval_narrow_and_one_that_agrees_by_luck_is_measured_again():
    prior, truth = machine(1)
    proposer = ModelGuided(prior, KERNEL, first="3")
    agree, by_luck = ([ran(1, "3", truth[3]), ran(2, "3", times * truth[3])] for times in (1.002, 1.01))
    assert proposer.propose(agree).configuration != "3"
    assert proposer.propose(by_luck).configuration == "3"
    assert noise_of(agree).half * noise_of(agree).deviation < 5 * WITHIN


def test_where_nothing_varies_nothing_is_repeated():
    prior, truth = machine(1)
    tries = [ran(1, "3", truth[3], error=0.0)]
    proposer = ModelGuided(prior, KERNEL, first="3")
    assert proposer.propose(tries).configuration != "3"
    assert noise_of(tries).deviation == 0
    assert proposer.believed(tries)[0].step_time_s == truth[3]


def test_the_winner_is_confirmed_and_drawn_towards_what_is_expected():
    prior, truth = machine(2)
    tries = [ran(1, "3", truth[3]), ran(2, "3", 1.2 * truth[3]), ran(3, "3", 0.9 * truth[3])]
    tries.append(ran(4, "5", 0.3 * truth[3]))
    proposer = ModelGuided(prior, KERNEL, first="3")
    confirmed = proposer.propose(tries)
    assert (confirmed.configuration, "confirms" in confirmed.why) == ("5", True)
    assert proposer.believed(tries)[0].step_time_s > 0.3 * truth[3]
