"""Whether what runs now can be kept: what does not fit cannot, however slow the rest is."""

from asap.chat.conversation import Conversation
from asap.evidence.claims import MEASURED_CLAIMS, Claim
from asap.proposals.situation import TOO_TIGHT, Situation, situation_of
from asap.proposals.trials import most_promising, trials_of


def situation_now(conversation: Conversation) -> Situation:
    """The situation of the run with what was stated of it."""
    study, ranked = conversation.study, conversation.revised.ranked
    best = next((candidate.prediction for candidate in conversation.proposals), None)
    return situation_of(study, ranked.incumbent, best, ranked.considered, most_promising(trials_of(study)))


def too_tight_now(conversation: Conversation) -> Situation | None:
    """The situation, if what runs now is predicted to need too much HBM and no figure says that it ran."""
    now = conversation.study.plan
    ran = any(fact.plan == now and fact.claim in {*MEASURED_CLAIMS, Claim.FITS} for fact in conversation.evidence)
    found = situation_now(conversation)
    return found if found.name in TOO_TIGHT and not ran else None
