"""README.md lists every case of Kafka's test classes, and the tests that it names exist."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE / "README.md").read_text()
CLASSES = {
    "GroupMetadataManagerTest": "group_metadata_manager",
    "CoordinatorLoaderImplTest": "coordinator_loader",
    "OffsetMetadataManagerTest": "offset_metadata_manager",
    "GroupCoordinatorShardTest": "group_coordinator_shard",
    "GroupCoordinatorTest": "group_coordinator",
    "GroupMetadataTest": "group_metadata",
    "ClassicGroupTest": "classic_group",
    "0.10.2 GroupMetadataManagerTest": "group_metadata_manager_0_10_2",
    "TransactionCoordinatorTest": "transaction_coordinator",
    "TransactionStateManagerTest": "transaction_state_manager",
    "TransactionMetadataTest": "transaction_metadata",
    "TransactionMarkerChannelManagerTest": "transaction_marker_channel_manager",
    "TransactionMarkerRequestCompletionHandlerTest": "transaction_marker_request_completion_handler",
    "TransactionLogTest": "transaction_log",
    "TransactionCoordinatorRecordSerdeTest": "transaction_coordinator_record_serde",
    "ProducerIdManagerTest": "producer_id_manager",
    "ProducerStateManagerTest": "producer_state_manager",
    "TransactionIndexTest": "transaction_index",
    "UnifiedLogTest": "unified_log_transactions",
    "FetchSessionTest": "fetch_session",
}
ROW = re.compile(r"^\| ((?:[tT]est|static|should|update)\w+) \| (.+) \|$", re.MULTILINE)
NAMED = re.compile(r"`((?:(?:coordinator|transactions)/)?test_\w+\.py)::(test_\w+)(?:\[(\w+)])?`")


def section(class_name: str) -> dict[str, str]:
    """Cases of one class with the page's entry for them."""
    _, _, rest = PAGE.partition(f"## {class_name} ")
    return dict(ROW.findall(rest.partition("\n## ")[0]))


@pytest.mark.parametrize("class_name", CLASSES)
def test_every_case_is_listed_with_a_test_or_a_reason(class_name: str) -> None:
    cases = (HERE / "cases" / f"{CLASSES[class_name]}.txt").read_text().split()
    rows = section(class_name)
    assert list(rows) == cases
    assert [case for case, where in rows.items() if not (NAMED.fullmatch(where) or where.startswith("not here: "))] == []


@pytest.mark.parametrize("class_name", CLASSES)
def test_named_tests_exist(class_name: str) -> None:
    missing = []
    for case, where in section(class_name).items():
        if (named := NAMED.fullmatch(where)) is None:
            continue
        file_name, function_name, parameter = named.groups()
        source = (HERE / file_name).read_text()
        found = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
        docstring = ast.get_docstring(found[function_name]) if function_name in found else None
        if docstring is None and not (function_name in found and parameter == case):
            missing.append(where)
        elif parameter is None and case not in re.findall(r"\w+", docstring or ""):
            missing.append(f"{where} does not name {case}")
    assert missing == []


def test_the_page_counts_what_it_lists() -> None:
    for class_name in CLASSES:
        rows = section(class_name)
        tested = sum(1 for where in rows.values() if NAMED.fullmatch(where))
        assert (
            f"{len(rows)} cases, {tested} of them tested here." in PAGE.partition(f"## {class_name} ")[2].partition("| case")[0]
        )
