"""Ceph RGW: mon, mgr, OSDs and radosgw."""
