"""Kernel settings: those that are published with a result, and those of a study."""

from __future__ import annotations

from typing import Final

RECORDED: Final = (
    "kernel.osrelease",
    "net.core.somaxconn",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_tw_reuse",
    "vm.dirty_ratio",
    "vm.dirty_background_ratio",
    "vm.swappiness",
)
"""Settings that must be published with a result for a fair comparison."""

STUDY_2014: Final[dict[str, str]] = {
    "net.ipv4.tcp_timestamps": "0",
    "net.ipv4.tcp_sack": "0",
    "net.ipv4.tcp_low_latency": "1",
    "net.core.netdev_max_backlog": "250000",
    "net.core.rmem_max": "16777216",
    "net.core.wmem_max": "16777216",
    "net.core.rmem_default": "16777216",
    "net.core.wmem_default": "16777216",
    "net.core.optmem_max": "16777216",
    "net.ipv4.tcp_rmem": "4096 87380 16777216",
    "net.ipv4.tcp_wmem": "4096 65536 16777216",
    "net.ipv4.tcp_tw_reuse": "1",
}
"""What the study of 2014 set on all its nodes.

Linux has no tcp_tw_recycle since 4.12; the study's MTU of 9000 is set by `network`.
"""
