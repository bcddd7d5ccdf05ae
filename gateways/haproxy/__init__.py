"""HAProxy in front of several radosgw or Swift proxies."""
