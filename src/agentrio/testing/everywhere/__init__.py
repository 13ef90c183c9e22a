"""cancel-everywhere: run a scenario again and again, and end it at another scheduler step each time.

However it is ended, and wherever, one law must hold: an accepted run has one ending, and it is the last event; the
conversation it leaves is one that every provider takes; nothing is left running or open; and the next prompt works.
"""

from agentrio.testing.everywhere.law import check_events, check_history
from agentrio.testing.everywhere.report import CancelFailed, Failure, Report, Tally
from agentrio.testing.everywhere.scenario import PROBE, WAYS, Scenario, Way, read_all, rehearsed
from agentrio.testing.everywhere.stage import Stage
from agentrio.testing.everywhere.sweep import cancel_everywhere

__all__ = [
    "PROBE",
    "WAYS",
    "CancelFailed",
    "Failure",
    "Report",
    "Scenario",
    "Stage",
    "Tally",
    "Way",
    "cancel_everywhere",
    "check_events",
    "check_history",
    "read_all",
    "rehearsed",
]
