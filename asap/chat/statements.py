"""Whether a sentence reports: it asks nothing, wishes nothing and depends on nothing.

Only the closed classes of words are read, which are the same in every sentence: question words, modal verbs,
conjunctions of a condition, verbs of wishing and supposing. What they leave in doubt counts as no report.
"""

import re

_SENTENCE = re.compile(r"(?<=[.!?;\n])\s+")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_ASKS = {
    "what", "why", "how", "when", "where", "which", "who", "whether", "does", "do", "did", "is", "are", "was", "were",
    "can", "could", "would", "will", "should", "has", "have",
    "warum", "wie", "wann", "wo", "ob", "quel", "quelle", "pourquoi", "comment", "qué", "por",
}  # fmt: skip
"""Words that ask where a sentence begins with them."""
_SUPPOSES = {
    "if", "unless", "would", "could", "should", "might", "may", "maybe", "perhaps", "probably", "suppose", "supposed",
    "supposing", "assume", "assuming", "imagine", "imagining", "hypothetically", "pretend", "wish", "wishes", "hope",
    "hoping", "hopefully", "want", "wanted", "need", "expect", "expected", "predict", "predicted", "think", "believe",
    "guess", "bet", "imho", "goal", "target", "ideally", "let's", "lets", "until", "once", "rumour", "rumor",
    "wenn", "falls", "würde", "könnte", "hoffe", "wünsche", "vielleicht", "si", "serait", "espère", "peut-être",
    "ojalá", "quizás", "sería", "whether", "i'd", "we'd", "it'd", "they'd", "allegedly", "shall", "in case", "were",
    "will", "won't", "gonna", "going", "please", "system", "assistant", "record", "note",
}  # fmt: skip
"""Words that wish or suppose wherever they stand; orders to the record are none of the engineer's reports either."""


def is_statement(sentence: str) -> bool:
    """Whether a sentence reports what is so or what happened."""
    words = [word.lower() for word in _WORD.findall(sentence.replace("’", "'"))]
    if not words or "?" in sentence or "？" in sentence:
        return False
    return words[0] not in _ASKS and not _SUPPOSES.intersection(words)


def sentence_of(quote: str, message: str) -> str:
    """The sentence of a message in which a quote stands, or all of it where the quote spans several."""
    flat = " ".join(quote.split())
    sentences = [" ".join(one.split()) for one in _SENTENCE.split(message)]
    return next((one for one in sentences if flat in one), message)
