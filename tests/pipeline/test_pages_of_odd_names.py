"""Pages, files and Burrow's answers for names that a path of a URL does not carry as they are."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from odd_names import ODD_NAMES, PLAIN_NAMES, write_odd_names
from reverse_proxy import normalised_path
from shop_pages import ShopPages

from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.path_names import encode_name

_NAMES = (*ODD_NAMES, *PLAIN_NAMES)
_UNRESERVED = re.compile(r"[A-Za-z0-9._~/-]+")
#: Lists of the page, and the key of the JSON of one of their rows.
_LISTS = {"groups": "group_id", "topics": "topic", "clients": "client"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> ShopPages:
    root = str(tmp_path_factory.mktemp("odd") / "east")
    write_odd_names(root)
    return ShopPages(root)


def earlier_segment(name: str) -> str:
    """The segment of a name in links of earlier versions."""
    encoded = quote(name, safe="")
    return encoded.replace(".", "%2E") if encoded in (".", "..") else re.sub(r"\.(json|csv)$", r"%2E\1", encoded)


@pytest.mark.parametrize("kind", _LISTS)
def test_a_list_links_every_name_to_its_own_page(pages: ShopPages, kind: str) -> None:
    links = {link for link in pages.html(kind).links() if link.startswith(f"/c/east/{kind}/")}
    assert len(links) == len(_NAMES)
    found = {}
    for link in links:
        assert _UNRESERVED.fullmatch(link)
        page = pages.at(link)
        assert page.status_code == 200, link
        assert normalised_path(link) == link
        found[pages.at(f"{link}.json").json()[_LISTS[kind]]] = page.text
    assert set(found) == set(_NAMES)
    for name, text in found.items():
        heading = re.search("<h1>(.*)</h1>", text)
        assert heading is not None
        assert heading[1] == visible(name), "none of the names has markup"


@pytest.mark.parametrize("kind", _LISTS)
@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_a_name_without_special_characters_has_its_readable_path(pages: ShopPages, kind: str, name: str) -> None:
    assert f"/c/east/{kind}/{name}" in pages.html(kind).links()


@pytest.mark.parametrize("kind", _LISTS)
@pytest.mark.parametrize("name", [name for name in ODD_NAMES if name not in ("", "~a~2Fb")])
def test_links_of_earlier_versions_lead_to_the_same_page(pages: ShopPages, kind: str, name: str) -> None:
    path = f"/c/east/{kind}/{earlier_segment(name)}"
    moved = pages.at(f"{path}?span=6h&as_of=")
    target = f"/c/east/{kind}/{encode_name(name)}"
    assert (moved.status_code, moved.headers["location"]) == (308, f"{target}?span=6h&as_of=")
    # programs do not follow redirects by default
    answer = pages.at(f"{path}.json")
    assert (answer.status_code, answer.json()[_LISTS[kind]]) == (200, name)


@pytest.mark.parametrize("name", _NAMES)
def test_a_page_links_to_itself(pages: ShopPages, name: str) -> None:
    path = f"/c/east/groups/{encode_name(name)}"
    own = [link for link in pages.html(f"groups/{encode_name(name)}").links() if link.startswith(path)]
    assert f"{path}.json" in own
    for link in own:
        assert urlsplit(link).path in (path, f"{path}.json")


def test_a_proxy_that_encodes_the_tilde_gets_no_redirect(pages: ShopPages) -> None:
    assert pages.get("groups/%7Ea%7E2Fb").status_code == 200


@pytest.mark.parametrize("path", ["groups/", "topics/", "clients/"])
def test_a_path_without_a_name_is_the_list(pages: ShopPages, path: str) -> None:
    moved = pages.get(path)
    assert (moved.status_code, urlsplit(moved.headers["location"]).path) == (307, f"/c/east/{path.rstrip('/')}")


@pytest.mark.parametrize("name", _NAMES)
def test_burrow_answers_for_every_group(pages: ShopPages, name: str) -> None:
    def consumer(segment: str, end: str = "") -> Any:
        answer = pages.at(f"/v3/kafka/east/consumer/{segment}{end}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    for segment in {encode_name(name), *([] if name == "~a~2Fb" else [earlier_segment(name)])}:
        for end in ("/lag", "/status"):
            assert consumer(segment, end)["status"]["group"] == name
    for segment in {encode_name(name), *([] if name in ("", "~a~2Fb") else [earlier_segment(name)])}:
        assert list(consumer(segment)["topics"]) == [name]
        topic = pages.at(f"/v3/kafka/east/topic/{segment}/consumers")
        assert (topic.status_code, topic.json()["consumers"]) == (200, [name])


def test_a_code_of_another_name_is_the_other_name(pages: ShopPages) -> None:
    """The one ambiguity of links of earlier versions: those of a group whose name is the code of another one."""
    for path, name in (("~a~2Fb", "a/b"), (encode_name("~a~2Fb"), "~a~2Fb")):
        assert pages.json(f"groups/{path}")["group_id"] == name
        assert pages.at(f"/v3/kafka/east/consumer/{path}/lag").json()["status"]["group"] == name


def test_a_cluster_with_the_name_of_a_folder(tmp_path: Path) -> None:
    """A folder without a name of its own on the command line names its cluster."""
    cluster = "data 2026.json"
    root = str(tmp_path / cluster)
    write_odd_names(root)
    of_folder = ShopPages(root, tables=root)
    segment = encode_name(cluster)
    assert segment == "~data~202026~2Ejson"
    assert of_folder.at("/").headers["location"] == f"/c/{segment}/"
    for path in ("", "index.json", "groups", "groups.csv", "groups/~empty", "sql?q=SELECT+1"):
        assert of_folder.at(f"/c/{segment}/{path}").status_code == (403 if path.startswith("sql") else 200), path
    moved = of_folder.at("/c/data%202026.json/groups/a%2Fb")
    assert (moved.status_code, moved.headers["location"]) == (308, f"/c/{segment}/groups/~a~2Fb")
    assert of_folder.at(f"/v3/kafka/{segment}/consumer/~empty/lag").json()["status"]["cluster"] == cluster
