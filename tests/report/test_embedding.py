import pytest

from jostle.base.errors import UsageError
from jostle.report import Page, recover, write
from jostle.report.html import embedded

AWKWARD = {"name": "</script><!-- & \u2028 \"'", "numbers": [1, 0.1, None, True], "nested": {"é": ["模"]}}


def test_what_goes_in_comes_out(tmp_path):
    write(Page("Title", "", [], data=AWKWARD), tmp_path / "page.html")
    assert recover(tmp_path / "page.html") == AWKWARD


def test_the_first_block_counts_whatever_the_text_says(tmp_path):
    fake = '<script type="application/json" id="jostle-data">{"fake":1}</script>'
    write(Page(fake, fake, [], data={"real": fake}), tmp_path / "page.html")
    assert recover(tmp_path / "page.html") == {"real": fake}


def test_numbers_json_cannot_hold_become_null(tmp_path):
    write(Page("Title", "", [], data={"a": [float("nan")], "b": (float("inf"), 1.5)}), tmp_path / "page.html")
    assert recover(tmp_path / "page.html") == {"a": [None], "b": [None, 1.5]}


def test_no_text_can_leave_the_block():
    assert not set("<>&\u2028") & set(embedded(AWKWARD))


def test_things_json_cannot_hold_are_refused():
    with pytest.raises(UsageError, match="cannot become JSON"):
        embedded({"a": object()})


def test_other_files_hold_no_data(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<p>hello</p>", encoding="utf-8")
    with pytest.raises(UsageError, match="holds no data"):
        recover(path)
    path.write_text('<script type="application/json" id="jostle-data">{"a":</script>', encoding="utf-8")
    with pytest.raises(UsageError, match="damaged"):
        recover(path)
    with pytest.raises(UsageError, match="does not exist"):
        recover(tmp_path / "none.html")
