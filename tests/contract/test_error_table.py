"""The error table of the contract and the one in the code are the same."""

from __future__ import annotations

from execd.errors import CODES
from tests.support.contract import CONTRACT

HEAD = "| code | status | retryable | executed | meaning |"


def _table() -> dict[str, tuple[str, str, str, str]]:
    lines = CONTRACT["info"]["description"].splitlines()
    rows = {}
    for line in lines[lines.index(HEAD) + 2 :]:
        if not line.startswith("|"):
            break
        code, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        assert code.strip("`") not in rows
        status, retryable, executed, meaning = cells
        rows[code.strip("`")] = (status, retryable, executed, meaning)
    return rows


def test_the_contract_explains_exactly_the_codes_that_there_are() -> None:
    expected = {
        code: (
            str(error.status),
            "yes" if error.retryable else "no",
            error.executed,
            " ".join((error.__doc__ or "").split()),
        )
        for code, error in CODES.items()
    }
    assert _table() == expected


def test_the_schema_of_an_error_allows_exactly_these_codes() -> None:
    allowed = CONTRACT["components"]["schemas"]["ErrorCode"]["enum"]
    assert len(allowed) == len(set(allowed))
    assert set(allowed) == set(CODES)


def test_a_code_is_named_where_it_can_be_sent() -> None:
    responses = CONTRACT["components"]["responses"].values()
    named = {code for code in CODES for response in responses if f"`{code}`" in response["description"]}
    assert named == set(CODES) - {"SERVICE_UNAVAILABLE"}  # the base of the others with 503


def test_only_refusals_of_unstarted_work_may_be_tried_again() -> None:
    for error in CODES.values():
        if error.status in (429, 503):
            assert (error.retryable, error.executed) == (True, "not_executed")
            assert error.retry_after is not None
