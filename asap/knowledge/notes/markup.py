"""Inline markup to linear text: liquid, HTML, footnotes, links and maths, as scaling books and wikis write them.

Every pattern is bounded: a hostile document costs time in proportion to its length, not to its square.
"""

import html
import re

_COMMENT = re.compile(r"<!--.{0,2000}?-->", re.S)
_CAPTION = re.compile(r"{%-?\s*include\b[^%]{0,2000}?caption=\"((?:\\.|[^\"\\]){0,4000})\"[^%]{0,2000}?%}", re.S)
_DETAILS = re.compile(r"{%-?\s*details\s+([^\n]{0,500}?)\s*-?%}")
_LIQUID = re.compile(r"{%.{0,1000}?%}|{{.{0,300}?}}", re.S)
_FOOTNOTE = re.compile(r"<d-footnote>(.{0,2000}?)</d-footnote>", re.S)
_CITE = re.compile(r"<d-cite\b[^<>]{0,200}>(?:</d-cite>)?")
_MARKDOWN_FOOTNOTE = re.compile(r"\[\^[^\]\s]{1,100}\]:?")
_SUBSCRIPT = re.compile(r"<(sub|sup)>([^<]{0,200})</\1>")
_TAG = re.compile(
    r"</?(?:a|abbr|b|blockquote|br|center|code|details|div|em|figure|figcaption|font|h[1-6]|hr|i|iframe|img|it|kbd|li"
    r"|ol|p|pre|s|script|section|small|span|strong|style|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul|video)"
    r"(?:\s[^<>]{0,1000})?/?>",
    re.I,
)
_IMAGE = re.compile(r"!\[([^\]]{0,500})\]\([^)]{0,1000}\)")
_LINK = re.compile(r"\[([^\]]{1,500})\](?:\([^)\s]{0,1000}(?:\s\"[^\"]{0,200}\")?\)|{[^}]{0,200}})")
_ROLE = re.compile(r"{[a-z:+-]{1,40}}`([^`<]{0,300}?)\s*(?:<[^`>]{0,300}>)?`")
_LABEL = re.compile(r"^\([\w .-]{1,200}\)=\s*$", re.M)
_ATTRIBUTES = re.compile(r"{:[^}]{0,300}}|{#[\w-]{1,200}}")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|_{1,3})(?=\S)(.{1,200}?)(?<=\S)\1(?![\w*])", re.S)
_MATHS = re.compile(
    r"\$\$(.{1,3000}?)\$\$|\$(?!\s)([^$\n]{1,500}?)(?<!\s)\$(?!\d)|\\\[(.{1,1500}?)\\\]|\\\((.{1,500}?)\\\)", re.S
)

_STYLE = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathcal|mathit|operatorname|boldsymbol|bf|rm)\b\*?")
_FRACTION = re.compile(r"\\[dt]?frac\s*{([^{}]*)}\s*{([^{}]*)}")
_ROOT = re.compile(r"\\sqrt\s*{([^{}]*)}")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*{[^}]*}")
_SPACING = re.compile(r"\\(?:left|right|big|Big|bigg|Bigg|quad|qquad|displaystyle|limits|nonumber)\b|\\[,;:! ]|&|\\\\")
_SYMBOLS = {
    r"\cdot": "·", r"\times": "×", r"\leq": "≤", r"\le": "≤", r"\geq": "≥", r"\ge": "≥", r"\neq": "≠",
    r"\approx": "≈", r"\rightarrow": "→", r"\to": "→", r"\Rightarrow": "⇒", r"\implies": "⇒", r"\infty": "∞",
    r"\in": "in", r"\ll": "<<", r"\gg": ">>", r"\lt": "<", r"\gt": ">", r"\lvert": "|", r"\rvert": "|",
    r"\lceil": "ceil(", r"\rceil": ")", r"\lfloor": "floor(", r"\rfloor": ")", r"\ldots": "…", r"\dots": "…",
    r"\cdots": "…", r"\pm": "±", r"\sim": "~", r"\%": "%", r"\_": "_", r"\$": "$", r"\{": "{", r"\}": "}",
}  # fmt: skip
_COMMAND = re.compile(r"\\([A-Za-z]+|[%_${}])")


def plain_markup(text: str) -> str:
    """Markdown with liquid, HTML and LaTeX as text that can be read, searched and quoted."""
    text = _COMMENT.sub(" ", text)
    text = _CAPTION.sub(lambda found: found[1].replace('\\"', '"'), text)
    text = _DETAILS.sub(r"\1", text)
    text = _LIQUID.sub(" ", text)
    text = _CITE.sub("", text)
    text = _FOOTNOTE.sub(r" (\1)", text)
    text = _MATHS.sub(lambda found: linear_maths(next(group for group in found.groups() if group)), text)
    text = _SUBSCRIPT.sub(lambda found: ("_" if found[1] == "sub" else "^") + found[2], text)
    text = _ROLE.sub(r"\1", _LABEL.sub("", _ATTRIBUTES.sub("", text)))
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", text))
    text = _MARKDOWN_FOOTNOTE.sub("", _TAG.sub(" ", text))
    text = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    return html.unescape(text.replace("`", ""))


def linear_maths(latex: str) -> str:
    r"""LaTeX as linear text: ``\frac{B}{X} > \frac{C}{W_\text{ici}}`` becomes ``(B) / (X) > (C) / (W_ici)``."""
    text = _SPACING.sub(" ", _ENVIRONMENT.sub(" ", latex))
    text = _STYLE.sub("", text)
    for _ in range(4):
        text = re.sub(r"([_^])\s*{([^{}]*)}", lambda found: found[1] + _grouped(found[2]), text)
        text = _ROOT.sub(r"sqrt(\1)", _FRACTION.sub(r"(\1) / (\2)", text))
        text = re.sub(r"(?<![A-Za-z]){([^{}]*)}", r"\1", text)
    text = _COMMAND.sub(lambda found: _SYMBOLS.get(found[0], found[1]), text)
    return " ".join(re.sub(r"\((\w+)\)", r"\1", text).split())


def _grouped(script: str) -> str:
    content = script.strip()
    return content if re.fullmatch(r"\\?\w+", content) else f"({content})"
