"""The benchmark of first views succeeds at a toy size. It has a browser of its own, so it is alone in its file."""

import pytest

from benchmarks import bench_first_views

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_first_views(capsys: pytest.CaptureFixture[str]) -> None:
    bench_first_views.main(["--groups", "2", "--partitions", "8", "--samples", "3"])
    printed = capsys.readouterr().out
    assert all(f"\n| {row} |" in printed for row in ("overview", "groups", "group", "group-00"))
