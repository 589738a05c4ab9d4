"""The short form of the campaign: some hundred wrong arguments, in a process of their own."""

from tests.campaign.runner import run_campaign


def test_no_wrong_argument_crashes_hangs_or_passes_silently():
    """Each call is refused with a message, or reported by a warning or a frozen world."""
    campaign = run_campaign(400, seed=1, call_time=600.0)  # some compile a kernel first
    assert campaign.findings == []
    assert sum(campaign.counts.values()) == 400
    assert campaign.counts["refused"] > 300
