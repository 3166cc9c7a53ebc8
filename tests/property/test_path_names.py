"""Names in paths of URLs, as browsers and proxies change them on the way."""

import re
from urllib.parse import quote, urljoin

from hypothesis import example, given
from hypothesis import strategies as st
from reverse_proxy import normalised_path

from pipelines.dashboard.path_names import FILES, NameConvertor, decode_name, encode_name

#: RFC 3986: characters that no client and no proxy has a reason to encode or to interpret.
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]+")
#: Pieces that browsers, proxies, the routes of the server, or the encoding itself treat in a way of their own.
_PIECES = (
    *("", ".", "..", "/", "//", "\\", "%", "%2F", "%252F", "%2E", "?", "#", ";", " ", "+", ".json", ".csv"),
    *("~", "~2F", "~7E", "~empty", "index", "status", "lag"),
    *("\0", "\n", "\r", "\x7f", "\x85", "\ufffd", "\u202e", "\ufeff", "\ud800", "ö", "数据", "\U0001f980"),
)
names = st.one_of(st.text(), st.lists(st.sampled_from(_PIECES) | st.text("aZ0-_", min_size=1), max_size=6).map("".join))


def through_a_browser(path: str) -> str:
    """The path that a browser requests: the WHATWG URL standard also takes `%2E` in segments for a dot."""
    parts = [re.sub("%2e", ".", each, flags=re.IGNORECASE) if _is_dots(each) else each for each in path.split("/")]
    return urljoin("http://host/", "/".join(parts)).removeprefix("http://host")


def _is_dots(segment: str) -> bool:
    return re.sub("%2e", ".", segment, flags=re.IGNORECASE) in (".", "..")


@given(names)
@example("")
@example(".")
@example("..")
@example("report.json")
@example("~a~2Fb")
def test_a_name_arrives_through_browsers_and_proxies(name: str) -> None:
    segment = encode_name(name)
    assert _UNRESERVED.fullmatch(segment)
    assert segment not in (".", "..")
    assert not segment.endswith(FILES)
    assert decode_name(segment) == name
    path = f"/c/east/groups/{segment}.json"
    arrived = normalised_path(normalised_path(through_a_browser(path)))
    assert arrived == path
    # some clients encode the tilde, as earlier standards did
    assert NameConvertor().convert(segment.replace("~", "%7E")) == name


@given(names, names)
def test_two_names_never_share_a_segment(one: str, other: str) -> None:
    assert (encode_name(one) == encode_name(other)) == (one == other)


@given(st.from_regex(r"[A-Za-z0-9._-][A-Za-z0-9._~-]*", fullmatch=True))
def test_a_name_that_is_safe_in_a_path_is_its_own_segment(name: str) -> None:
    is_special = name in (".", "..") or name.endswith(FILES)
    assert (encode_name(name) == name) == (not is_special)


@given(names)
@example("a~2Fb")
@example("~")
@example("~2F")
@example("~~2f")
@example("~~ED~A0")
def test_links_of_earlier_versions_lead_to_their_names(name: str) -> None:
    """All but those to a name that is the code of another one."""
    segment = quote(name, safe="", errors="surrogatepass")
    is_code = encode_name(decode_name(name)) == name and decode_name(name) != name
    has_surrogates = bool(re.search("[\ud800-\udfff]", name))
    if segment and not is_code and not has_surrogates:
        assert NameConvertor().convert(segment) == name


@given(st.text(st.sampled_from("~0123456789ABCDEFabcdef-_.%emptyg")))
def test_every_segment_has_a_name(segment: str) -> None:
    name = decode_name(segment)
    assert segment in (name, encode_name(name))
