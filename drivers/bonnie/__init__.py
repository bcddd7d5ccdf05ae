"""Load by bonnie++ on a file of CephFS."""

from weighbridge.drivers.bonnie.driver import BonnieCephFs

__all__ = ["BonnieCephFs"]
