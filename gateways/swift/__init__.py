"""OpenStack Swift: proxy and storage hosts."""
