"""Recognition of SQL statements that only read.

DataFusion runs one statement at a time, including statements that write files or tables, and cannot classify a statement without
running it. So the text decides, and must be read as DataFusion reads it: text that only a full SQL parser could distinguish from
a keyword is rejected.
"""

import re

#: First keywords of reading statements. A view or subquery cannot contain any other statement.
READING = ("SELECT", "WITH", "VALUES", "EXPLAIN", "DESCRIBE")

#: Keywords of other statements; quoted, they are names. EXPLAIN ANALYZE runs the statement.
_DOING = frozenset({"INTO", "INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "CREATE", "DROP", "ALTER", "ANALYZE", "EXECUTE"})

#: Strings, quoted names and comments, which contain no keywords.
_NO_KEYWORDS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)

#: Rest of an unterminated quote or comment, or of one that only some dialects have.
_LEFT_OVER = re.compile(r"[$`'\"]|/\*|\*/")

#: What may be written before a string without a space.
_PREFIX = re.compile(r"[\w&]*")


def is_reading(sql: str) -> bool:
    """True if `sql` only reads."""
    pieces = list(_NO_KEYWORDS.finditer(sql))
    if any(_is_ambiguous(sql, piece) for piece in pieces):
        return False
    rest = _NO_KEYWORDS.sub(" ", sql)
    words = re.findall(r"\w+", rest.upper())
    return bool(words) and words[0] in READING and not _DOING.intersection(words) and not _LEFT_OVER.search(rest)


def _is_ambiguous(sql: str, piece: re.Match[str]) -> bool:
    """True if DataFusion may see another end of the string or comment."""
    text = piece[0]
    if text.startswith("'"):
        # E'…' and U&'…' have escapes; X'…' has none
        # backwards: a search for the end of the text takes quadratic time where a name of 32 KiB is before the string
        before = _PREFIX.match(sql[: piece.start()][::-1])
        return before is not None and before[0].upper() not in ("", "X")
    if text.startswith("/*"):
        return "/*" in text[2:]
    return text.startswith("--") and bool(re.search(r"[^\S\n\t ]", text.removesuffix("\r")))
