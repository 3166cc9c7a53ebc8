"""Which SQL statements can do nothing but read.

DataFusion runs one statement at a time, but among its statements are some that write files or tables, and it takes them without
asking. It cannot be asked what a statement is without running it either, so the text decides, and has to be read the same way by
DataFusion: what only a full SQL parser could tell apart from a keyword is refused.
"""

import re

#: How a statement that only reads begins. A view or subquery cannot hide any other.
READING = ("SELECT", "WITH", "VALUES", "EXPLAIN", "DESCRIBE")

#: Keywords of everything else; quoted, they are names. EXPLAIN ANALYZE runs what it explains.
_DOING = frozenset({"INTO", "INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "CREATE", "DROP", "ALTER", "ANALYZE", "EXECUTE"})

#: Strings, quoted names and comments: what is in them is no keyword.
_NO_KEYWORDS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)

#: What is left of a quote or comment that does not end, or of one that only some dialects have.
_LEFT_OVER = re.compile(r"[$`'\"]|/\*|\*/")


def is_reading(sql: str) -> bool:
    """Whether `sql` can do nothing but read."""
    pieces = list(_NO_KEYWORDS.finditer(sql))
    if any(_is_ambiguous(sql, piece) for piece in pieces):
        return False
    rest = _NO_KEYWORDS.sub(" ", sql)
    words = re.findall(r"\w+", rest.upper())
    return bool(words) and words[0] in READING and not _DOING.intersection(words) and not _LEFT_OVER.search(rest)


def _is_ambiguous(sql: str, piece: re.Match[str]) -> bool:
    """Whether DataFusion may see another end of a string or comment than we do."""
    text = piece[0]
    if text.startswith("'"):
        # E'…' and U&'…' have escapes; X'…' has none
        before = re.search(r"[\w&]*$", sql[: piece.start()])
        return before is not None and before[0].upper() not in ("", "X")
    if text.startswith("/*"):
        return "/*" in text[2:]
    return text.startswith("--") and bool(re.search(r"[^\S\n\t ]", text.removesuffix("\r")))
