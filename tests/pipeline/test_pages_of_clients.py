"""The list of clients and the page of one client: members, stays and lag are those of SQL."""

import re

from shop_pages import ShopPages

from pipelines.dashboard.security.viewer import LOCAL_VIEWER, Viewer


def test_the_list_has_the_members_of_sql(shop: ShopPages) -> None:
    rows = {row["client_id"]: row for row in shop.json("clients")["rows"]}
    expected = shop.sql(
        "SELECT client_id, count(*) AS members, count(DISTINCT client_host) AS hosts, count(DISTINCT group_id) AS groups "
        "FROM members GROUP BY client_id"
    )
    assert {name: (row["members"], row["hosts"], row["groups"]) for name, row in rows.items()} == {
        row["client_id"]: (row["members"], row["hosts"], row["groups"]) for row in expected
    }
    lags = shop.sql(
        "SELECT client_id, count(*) AS partitions, sum(lag) AS lag, max(lag_seconds) AS lag_seconds FROM lag "
        "WHERE client_id IS NOT NULL GROUP BY client_id"
    )
    for row in lags:
        found = rows[row["client_id"]]
        assert (found["partitions"], found["lag"], found["lag_seconds"]) == (row["partitions"], row["lag"], row["lag_seconds"])
    assert (rows["fraud-5"]["partitions"], rows["fraud-5"]["lag"]) == (0, None), "a member without partitions"
    assert (rows["mirror"]["members"], rows["mirror"]["hosts"], rows["mirror"]["partitions"]) == (2, 2, 10)


def test_order_and_search_of_the_list(shop: ShopPages) -> None:
    def clients(query: str) -> list[str]:
        return [row["client_id"] for row in shop.json(f"clients?{query}")["rows"]]

    assert clients("")[0] == "ledger", "the oldest unread record first"
    assert clients("sort=partitions")[0] == "mirror"
    assert clients("q=10.0.8.5") == ["fraud-1", "fraud-2", "fraud-3", "fraud-4", "fraud-5"]
    page = shop.html("clients?q=kcat")
    assert "look for exactly this name in the history" in page.text
    assert "/c/east/clients/kcat" in page.links()
    past = shop.json("clients?as_of=2026-03-02T08:00:00Z")["rows"]
    assert "billing-1" in {row["client_id"] for row in past}
    assert "billing-2" not in {row["client_id"] for row in past}, "it joined at 08:20"
    assert {row["lag"] for row in past} == {None}


def test_a_client_has_the_stays_of_sql(shop: ShopPages) -> None:
    model = shop.json("clients/mirror?span=7d")
    columns = ("group_id", "topic", "client_host", "since", "until")
    expected = shop.sql("SELECT * FROM consumption_edges WHERE client_id = 'mirror'")
    assert sorted(str([row[name] for name in columns]) for row in model["stays"]) == sorted(
        str([row["group_id"], row["topic"], row["client_host"], *(iso(row[name]) for name in ("since", "until"))])
        for row in expected
    )
    assert len(model["members"]) == 2
    assert (model["partitions"][0]["topic"], model["partitions"][0]["partition"]) == ("orders", 3)
    assert model["figures"]["partitions"] == model["partitions_found"] == 10
    # the restart at 11:15 ended the stays of the host 10.0.7.42 in both topics
    assert sorted(row["topic"] for row in model["stays"] if row["until"]) == ["orders", "payments"]


def iso(at: object) -> object:
    return None if at is None else str(at).replace(" ", "T").replace("+00:00", "Z")


def test_a_host_is_found_with_and_without_its_slash(shop: ShopPages) -> None:
    for name in ("10.0.7.43", "%2F10.0.7.43"):
        model = shop.json(f"clients/{name}")
        assert [row["group_instance_id"] for row in model["members"]] == ["mirror-b"]
        assert {row["topic"] for row in model["stays"]} == {"orders", "payments"}


def test_a_client_that_left_has_its_page(shop: ShopPages) -> None:
    model = shop.json("clients/kcat?span=6h")
    assert (model["members"], [(row["group_id"], row["topic"]) for row in model["stays"]]) == ([], [("tmp-debug", "orders")])
    page = shop.html("clients/kcat")
    assert "No member at this time has this client id or host" in page.text
    assert shop.json("clients/kcat?span=1h")["stays"] == []
    assert "The client owned no partition in the last 1h" in shop.html("clients/kcat?span=1h").text
    assert shop.get("clients/nobody").status_code == 404


def test_the_page_of_a_client_in_words(shop: ShopPages) -> None:
    page = shop.html("clients/billing-2")
    page.expect_accessible_charts()
    assert "1 member in 1 group · /10.0.4.12" in page.text
    assert (
        "WARN billing 69,750 of 75,210 records of lag are on orders-3, one of 6 partitions, "
        "the first of them since 13:30 UTC; billing-2 on 10.0.4.12 owns it." in page.text
    )
    assert "orders 3–4" in page.text


def test_a_viewer_sees_the_groups_of_its_role_only(shop: ShopPages) -> None:
    shop.viewer = Viewer("team", re.compile("mirror"))
    try:
        assert [row["client_id"] for row in shop.json("clients")["rows"]] == ["mirror"]
        assert shop.get("clients/billing-1").status_code == 404
        assert shop.get("clients/kcat").status_code == 404
    finally:
        shop.viewer = LOCAL_VIEWER
