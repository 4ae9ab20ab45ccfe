"""What keeps a result honest: leases on data, the footprint, the retention scan, the card."""

from holdfast.audit.card import card
from holdfast.audit.footprint import footprint, glance, reachable
from holdfast.audit.lease import Lease
from holdfast.audit.retention import Retention

__all__ = ["Lease", "Retention", "card", "footprint", "glance", "reachable"]
