"""The helper that ties prose to numbers."""

import numpy as np
import pytest
import torch

from worked_examples.claims import claim


@pytest.fixture(params=["reader", "build"])
def mode(request, monkeypatch):
    if request.param == "build":
        monkeypatch.setenv("WORKED_EXAMPLES_STRICT", "1")
    else:
        monkeypatch.delenv("WORKED_EXAMPLES_STRICT", raising=False)
    return request.param


HOLDS = [
    (1.756, 1.7564),
    (1.756, 1.7555),  # half a unit of the last place still rounds to it
    ("0.3200", 0.32),
    (["0.3200", 0.13], np.array([0.32004, 0.12996])),
    ("67,108,864", 8192**2),
    (3, np.int64(3)),
    (0, 1e-15),
    ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]])),
    (np.inf, np.inf),
    ("-0.5", -0.5),
    (1e-05, 0.00001),
    ("-inf", -np.inf),
    (10**30, 10**30),  # a count that no int64 holds
]
DIFFERS = [
    (1.756, 1.201, "The book printed 1.756, yours is 1.201."),
    ("0.3200", 0.3201, "The book printed 0.3200, yours is 0.3201."),
    (0.32, np.float32(0.5), "The book printed 0.32, yours is 0.50."),
    ([0.5, 0.25], [0.5, 0.3], "The book printed (0.50, 0.25), yours is (0.50, 0.30)."),
    ([1, 2, 3], [1, 2], "The book printed (1, 2, 3), yours is (1, 2)."),
    ([1] * 9, [2] * 9, "The book printed (1, 1, 1, 1, 1, 1, 1, 1, ...), yours is"),
    (1.0, np.nan, "yours is nan."),
    (1.0, np.inf, "yours is inf."),
    (1.5, "text", "yours is text."),
    (2, None, "yours is None."),
    (np.inf, 5.0, "The book printed inf, yours is 5."),
    (np.inf, -np.inf, "The book printed inf, yours is -inf."),
    ([np.inf, 1.0], [np.inf, 2.0], "yours is (inf, 2.0)."),
    (2, 10**30, "yours is 1e+30."),
    (1.5, 1e300, "yours is 1e+300."),
    (1.5, 10**400, "yours is 10000"),
    (1.5, [[1], [2, 3]], "yours is [[1], [2, 3]]."),
    ("1e-9", 1e-8, "The book printed 1e-09, yours is 1e-08."),
    (1.5, torch.tensor(2.5, requires_grad=True), "yours is 2.5."),
]


@pytest.mark.parametrize(("printed", "computed"), HOLDS)
def test_a_claim_that_holds_is_silent(printed, computed, mode, capsys):
    assert claim(printed, computed) is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("printed", "computed", "line"), DIFFERS)
def test_a_claim_that_fails_stops_the_build_and_not_the_reader(
    printed, computed, line, mode, capsys
):
    if mode == "build":
        with pytest.raises(AssertionError) as caught:
            claim(printed, computed)
        assert line in str(caught.value)
    else:
        claim(printed, computed)
        assert line in capsys.readouterr().out


def test_decimals_can_be_given(mode, capsys):
    claim(0, 1e-10, decimals=9)
    claim(0.5, 0.54, decimals=1)
    assert capsys.readouterr().out == ""
