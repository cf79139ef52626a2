"""What a verdict of the compiler says of memory, as evidence."""

from asap.compiler.verification import Verification
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact


def compiled_evidence(found: Verification) -> list[StatedFact]:
    """What a verdict of the compiler says of memory; nothing where it gave none."""
    if found.fits is None:
        return []
    claim = Claim.FITS if found.fits else Claim.OUT_OF_MEMORY
    return [StatedFact(claim=claim, plan=found.plan, words=found.verdict, origin="compiler")]
