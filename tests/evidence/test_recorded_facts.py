"""Facts that were taken back are gone from every reading of a session."""

from asap.evidence.fact import Claim, StatedFact, recorded_facts
from asap.plans import Plan

DIED = StatedFact(claim=Claim.OUT_OF_MEMORY, plan=Plan.parse("data=8"), words="it died")
SLOW = StatedFact(claim=Claim.STEP_TIME, plan=Plan.parse("data=8"), value=2.0, words="2 s")


def said(fact: StatedFact) -> dict:
    return {"event": "evidence", "evidence": fact.model_dump(mode="json")}


def taken_back(fact: StatedFact) -> dict:
    return {"event": "retraction", "fact": fact.model_dump(mode="json")}


def test_what_was_taken_back_is_not_on_record_and_a_later_measurement_takes_the_place_of_an_earlier_one():
    assert recorded_facts([said(DIED), said(SLOW), taken_back(DIED)]) == [SLOW]
    assert recorded_facts([said(DIED), taken_back(DIED), said(DIED)]) == [DIED]
    later = SLOW.model_copy(update={"value": 3.0, "words": "3 s"})
    assert recorded_facts([said(SLOW), {"event": "reply"}, said(later)]) == [later]


def test_facts_of_former_sessions_say_who_found_them():
    former = {"claim": "ran out of memory", "plan": None, "words": "w", "compiled": True}
    (fact,) = recorded_facts([{"event": "evidence", "evidence": former}])
    assert fact.origin == "compiler"
