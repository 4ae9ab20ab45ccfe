"""What keeps a result honest: leases on data, the footprint, the retention scan, the card."""

from holdfast.audit.card import card
from holdfast.audit.footprint import Walked, footprint, glance, reachable
from holdfast.audit.generators import generators
from holdfast.audit.lease import Lease
from holdfast.audit.retention import Retention
from holdfast.audit.shown import Shown, shown

__all__ = ["Lease", "Retention", "Shown", "Walked", "card", "footprint", "generators", "glance", "reachable", "shown"]
