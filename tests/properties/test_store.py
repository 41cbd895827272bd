"""Records of any content, cut off at any byte."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from jostle.base.store import Store
from tests.properties.checked import FEW, MODEST

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.dictionaries(st.text(max_size=6), st.dictionaries(st.text(max_size=4), JSON, max_size=3), max_size=4)


def written(folder, records):
    (folder / "records.jsonl").unlink(missing_ok=True)
    store = Store(folder / "records.jsonl")
    for key, record in records.items():
        store.append(key, record)
    return store


@MODEST
@given(records=RECORDS)
def test_records_come_back_as_they_were(tmp_path_factory, records):
    folder = tmp_path_factory.getbasetemp()
    store = written(folder, records)
    again = Store(store.path)
    assert list(again) == list(store) == list(records)
    assert all(again[key] == store[key] == record for key, record in records.items())


@FEW
@given(records=RECORDS.filter(bool))
def test_a_cut_at_any_byte_loses_only_what_follows_it(tmp_path_factory, records):
    store = written(tmp_path_factory.getbasetemp(), records)
    content = store.path.read_bytes()
    ends = list(itertools.accumulate(len(line) for line in content.splitlines(keepends=True)))
    assert len(ends) == len(records)
    for cut in range(len(content) + 1):
        store.path.write_bytes(content[:cut])
        survivors = Store(store.path)
        kept = sum(end <= cut for end in ends)
        assert list(survivors) == list(records)[:kept]
        assert all(survivors[key] == records[key] for key in survivors)


@FEW
@given(records=RECORDS.filter(bool), share=st.floats(0, 1))
def test_writing_goes_on_after_a_cut(tmp_path_factory, records, share):
    store = written(tmp_path_factory.getbasetemp(), records)
    content = store.path.read_bytes()
    store.path.write_bytes(content[: int(share * len(content))])
    torn = Store(store.path)
    for key in [key for key in records if key not in torn]:
        torn.append(key, records[key])
    assert store.path.read_bytes() == content
