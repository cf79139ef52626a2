"""The loop itself: propose, judge, write down, evaluate, write down."""

import time
from collections.abc import Callable

from asap.core.provenance import Provenance
from asap.optimize.codes import Code
from asap.optimize.feedback import feedback
from asap.optimize.outcome import Outcome, Suggestion, Try
from asap.optimize.protocols import Evaluator, Proposer
from asap.optimize.session import Session
from asap.optimize.stopping import Stopped, StoppingRule, Worth

Watch = Callable[[Session, Suggestion | None, Worth | None], None]
"""Called after each change: the session, and what is evaluated next with what it is worth."""

MOST_LOST = 3
"""Times that a configuration is evaluated again after it was lost."""


def optimize(
    session: Session,
    proposer: Proposer,
    evaluator: Evaluator,
    rule: StoppingRule,
    watch: Watch = lambda session, suggestion, worth: None,
) -> Stopped:
    """Evaluate what is proposed until nothing more is worth it. A try that a kill cut off is finished first.

    A keyboard interrupt ends the loop; the evaluator has then stopped what it started.
    """
    stopped = None
    while stopped is None:
        running = session.unfinished
        if running is None:
            if stopped := rule.over(session.tries):
                break
            suggestion = proposer.propose(session.tries)
            if suggestion is None:
                statement = "Every configuration that is worth a try has been evaluated."
                stopped = Stopped(reason="nothing_left", statement=statement)
                break
            if stopped := rule.judge(session.tries, suggestion):
                break
            running = session.begin(suggestion)
            watch(session, suggestion, rule.worth(session.tries[:-1], suggestion))
        stopped = _evaluate(session, running, evaluator, rule)
        watch(session, None, None)
    session.stop(stopped)
    return stopped


def _evaluate(session: Session, running: Try, evaluator: Evaluator, rule: StoppingRule) -> Stopped | None:
    began, interrupted = time.monotonic(), None
    try:
        outcome = evaluator.evaluate(running.configuration, session.place(running.number))
    except KeyboardInterrupt:
        outcome = Outcome(
            status="lost", provenance=Provenance.MEASURED, seconds=time.monotonic() - began,
            feedback=(feedback(Code.INTERRUPTED),),
        )  # fmt: skip
        interrupted = Stopped(reason="interrupted", statement="Interrupted.")
    session.end(running.number, outcome, rule.machine.cost(outcome.seconds))
    return interrupted
