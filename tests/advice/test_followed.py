"""Every instruction in a fix is followed: its problem is gone, no other one is there, and no data is lost."""

import pytest

from tests.advice.counts import COUNTS
from tests.advice.lifecycle import LIFECYCLE
from tests.advice.ownership import OWNERSHIP
from tests.advice.policies import POLICIES
from tests.advice.settings import SETTINGS
from tests.advice.trial import Advice

ADVICE = (*LIFECYCLE, *COUNTS, *SETTINGS, *OWNERSHIP, *POLICIES)


@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: advice.says)
def test_a_followed_fix_solves_its_problem_and_no_other_one_follows(advice: Advice) -> None:
    advice.check()
