"""The loop: propose, judge, write down, evaluate, write down; and the two sides of it."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from asap.core.feedback import Feedback
from asap.core.units import Provenance
from asap.optimize.outcome import Code, Configuration, Outcome, Suggestion, Try, feedback
from asap.optimize.session import Session
from asap.optimize.stopping import Stopped, StoppingRule, Worth


class Evaluator(Protocol):
    """Turns a configuration into an outcome: the model, the compiler, a run."""

    def evaluate(self, configuration: Configuration, place: Path, seconds: float = math.inf) -> Outcome:
        """What comes of a configuration.

        Args:
            configuration: its text.
            place: a folder of this try alone. Called with it again, after a kill, an evaluator continues what it began
                there: what was paid for is never paid for twice.
            seconds: what is left of the budget; an evaluation that needs more is stopped, and is lost. Infinite: no
                limit.
        """
        ...


@runtime_checkable
class SeveralAtOnce(Protocol):
    """An evaluator that takes several configurations at once, and needs no folder to go on after a kill."""

    @property
    def at_once(self) -> int:
        """How many."""
        ...

    def evaluate_all(self, configurations: Sequence[Configuration], seconds: float = math.inf) -> list[Outcome]:
        """What comes of each, in their order, with so many seconds left for all of them."""
        ...


@runtime_checkable
class InParallel(Evaluator, Protocol):
    """An evaluator whose tries may run at once, each on its own."""

    @property
    def parallel(self) -> int:
        """How many."""
        ...

    def interrupt(self) -> None:
        """Stop the tries under way, which are lost."""
        ...


class Proposer(Protocol):
    """Learns from tries and proposes the next."""

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """The next configuration, given all tries with their outcomes and feedback; ``None``: nothing is left to try.
        An empty one ends the session as well, and says why.

        Tries that are under way have no outcome. A configuration may be proposed again, to measure it better.
        """
        ...


class Engine(Proposer, Protocol):
    """A proposer that another one, a language model, can argue with."""

    def best(self, tries: Sequence[Try], count: int) -> list[Suggestion]:
        """The most promising that were not tried, best first."""
        ...

    def read(self, text: str) -> Configuration:
        """A configuration that somebody wrote, in its one form; raises :class:`NotUsableError`."""
        ...

    def expected(self, configuration: Configuration, tries: Sequence[Try]) -> Suggestion:
        """What is expected of a configuration that was read; an empty expectation where it cannot be predicted."""
        ...

    @property
    def language(self) -> Mapping[str, Any]:
        """How a configuration is written, where that is more than the line of a plan."""
        ...


class NotUsableError(Exception):
    """A configuration that cannot be tried: why, with typed feedback where there is some."""

    def __init__(self, why: str, feedback: Sequence[Feedback] = ()):
        super().__init__(why)
        self.feedback = tuple(feedback)


Making = Callable[[Session, Engine], Proposer]
"""Makes the proposer of a session, given the engine's own."""


def engine_alone(session: Session, engine: Engine) -> Proposer:
    """The engine proposes by itself."""
    del session
    return engine


Watch = Callable[[Session, Suggestion | None, Worth | None], None]
"""Called after each change: the session, and what is evaluated next with what it is worth."""
Repaired = Callable[[Outcome, Configuration, Sequence[Try]], Outcome]
"""Adds repairs to the feedback of an outcome, given all tries."""


def optimize(
    session: Session,
    proposer: Proposer,
    evaluator: Evaluator | SeveralAtOnce,
    rule: StoppingRule,
    watch: Watch = lambda session, suggestion, worth: None,
    repaired: Repaired = lambda outcome, configuration, tries: outcome,
) -> Stopped:
    """Evaluate what is proposed until nothing more is worth it. Tries that a kill cut off are finished first.

    Outcomes are kept as ``repaired`` returns them, which may add repairs to their feedback. A keyboard interrupt ends
    the loop; the evaluator has then stopped what it started.
    """
    if isinstance(evaluator, InParallel) and evaluator.parallel > 1:
        stopped = _in_parallel(session, proposer, evaluator, rule, watch, repaired)
        session.stop(stopped)
        return stopped
    at_once = evaluator.at_once if isinstance(evaluator, SeveralAtOnce) else 1
    stopped = None
    while stopped is None:
        why_not = None
        while len(session.unfinished) < at_once and why_not is None:
            why_not = _begin(session, proposer, rule, watch)
        running = session.unfinished
        stopped = _evaluate(session, running, evaluator, rule, repaired) if running else why_not
        watch(session, None, None)
    session.stop(stopped)
    return stopped


def _in_parallel(
    session: Session, proposer: Proposer, evaluator: InParallel, rule: StoppingRule, watch: Watch, repaired: Repaired
) -> Stopped:
    """As many under way as may be; of each that ends is learnt before the next begins."""
    running: dict[Future[Outcome], Try] = {}
    with ThreadPoolExecutor(evaluator.parallel) as pool:

        def start(each: Try) -> None:
            left = rule.seconds_left(session.tries) / evaluator.parallel
            running[pool.submit(evaluator.evaluate, each.configuration, session.place(each.number), left)] = each

        def end(future: Future[Outcome]) -> None:
            _end(session, running.pop(future), future.result(), rule, repaired)
            watch(session, None, None)

        try:
            for each in session.unfinished:
                start(each)
            while True:
                why_not = None
                while len(running) < evaluator.parallel and why_not is None:
                    why_not = _begin(session, proposer, rule, watch)
                    if why_not is None:
                        start(session.tries[-1])
                if why_not is not None and not running:
                    return why_not
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    end(future)
        except KeyboardInterrupt:
            evaluator.interrupt()
            for future in wait(running).done:
                end(future)
            return _interrupted(session)
        finally:
            evaluator.interrupt()


def _begin(session: Session, proposer: Proposer, rule: StoppingRule, watch: Watch) -> Stopped | None:
    """Write down the next try, unless there is a reason not to."""
    if stopped := rule.over(session.tries):
        return stopped
    suggestion = proposer.propose(session.tries)
    if suggestion is None or not suggestion.configuration:
        statement = suggestion.why if suggestion else "Every configuration that is worth a try has been evaluated."
        return Stopped(reason="nothing_left", statement=statement)
    if stopped := rule.judge(session.tries, suggestion):
        return stopped
    session.begin(suggestion)
    watch(session, suggestion, rule.worth(session.tries[:-1], suggestion))
    return None


def _evaluate(
    session: Session, running: Sequence[Try], evaluator: Evaluator | SeveralAtOnce, rule: StoppingRule,
    repaired: Repaired,
) -> Stopped | None:  # fmt: skip
    began, interrupted = time.monotonic(), None
    left = rule.seconds_left(session.tries)
    try:
        if isinstance(evaluator, SeveralAtOnce):
            outcomes = evaluator.evaluate_all([each.configuration for each in running], left)
        else:
            outcomes = [evaluator.evaluate(each.configuration, session.place(each.number), left) for each in running]
    except KeyboardInterrupt:
        lost = Outcome(
            status="lost", provenance=Provenance.MEASURED, seconds=(time.monotonic() - began) / len(running),
            feedback=(feedback(Code.INTERRUPTED),),
        )  # fmt: skip
        outcomes = [lost] * len(running)
        interrupted = _interrupted(session)
    for each, outcome in zip(running, outcomes, strict=True):
        _end(session, each, outcome, rule, repaired)
    return interrupted


def _end(session: Session, each: Try, outcome: Outcome, rule: StoppingRule, repaired: Repaired) -> None:
    outcome = repaired(outcome, each.configuration, session.tries)
    session.end(each.number, outcome, rule.machine.cost(outcome.seconds))


def _interrupted(session: Session) -> Stopped:
    statement = f"Interrupted: `asap optimize resume {session.name}` goes on."
    return Stopped(reason="interrupted", statement=statement)
