"""The long form of the campaign: `python -m tests.campaign [--calls 5000] [--seed 0]`."""

import argparse
import sys

from tests.campaign.runner import run_campaign


def main() -> None:
    """Run it, print the figures and all findings, and fail if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    campaign = run_campaign(arguments.calls, seed=arguments.seed)
    for finding in campaign.findings:
        print(finding)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in campaign.counts.most_common())
    print(
        f"{sum(campaign.counts.values()):,} calls of {campaign.target_count} public calls "
        f"({campaign.slot_count} arguments) in {campaign.seconds:.0f} s: {counts}"
    )
    if campaign.findings:
        sys.exit(f"{len(campaign.findings)} findings")


if __name__ == "__main__":
    main()
