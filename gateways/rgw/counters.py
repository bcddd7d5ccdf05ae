"""Which counters of Ceph's daemons are recorded every second: those that show a bottleneck."""

from __future__ import annotations

from weighbridge.common.counters import CounterFigure, DaemonCounters

# Each is `key=group.counter`, with groups and counters of the daemon's `perf dump`. Other releases'
# names for the same counter follow after a comma. Counters that a release or object store lacks are
# left out.

RADOSGW: tuple[str, ...] = (
    *("req=rgw.req", "failed_req=rgw.failed_req", "qlen=rgw.qlen", "qactive=rgw.qactive"),
    *("get=rgw.get,rgw_op.get_obj_ops", "get_b=rgw.get_b,rgw_op.get_obj_bytes"),
    *("put=rgw.put,rgw_op.put_obj_ops", "put_b=rgw.put_b,rgw_op.put_obj_bytes"),
    "get_initial_lat=rgw.get_initial_lat,rgw_op.get_obj_lat",
    "put_initial_lat=rgw.put_initial_lat,rgw_op.put_obj_lat",
    *("cache_hit=rgw.cache_hit", "cache_miss=rgw.cache_miss"),
    "gc_retire_object=rgw.gc_retire_object",
    *("objecter_op=objecter.op", "objecter_op_active=objecter.op_active"),
    *("objecter_op_laggy=objecter.op_laggy", "objecter_op_resend=objecter.op_resend"),
    "objecter_send_bytes=objecter.op_send_bytes",
    # Bytes and operations in flight to OSDs, and how long requests waited for the limit on them.
    "objecter_bytes=throttle-objecter_bytes.val",
    "objecter_bytes_wait=throttle-objecter_bytes.wait",
    "objecter_ops=throttle-objecter_ops.val",
    "objecter_ops_wait=throttle-objecter_ops.wait",
)
OSD: tuple[str, ...] = (
    *(
        f"{name}=osd.{name}"
        for name in (
            *("op_wip", "op", "op_in_bytes", "op_out_bytes", "op_latency", "op_process_latency"),
            *("op_r", "op_r_latency", "op_w", "op_w_latency", "op_rw", "op_rw_latency"),
            *("subop_w", "subop_w_in_bytes", "subop_w_latency", "op_before_dequeue_op_lat"),
        )
    ),
    "used_bytes=osd.stat_bytes_used",
    *(
        f"bluestore_{name}=bluestore.{name}"
        for name in ("kv_flush_lat", "kv_commit_lat", "kv_sync_lat", "read_lat")
    ),
    "bluestore_commit_lat=bluestore.commit_lat,bluestore.txc_commit_lat",
    "bluestore_throttle_lat=bluestore.throttle_lat,bluestore.txc_throttle_lat",
    "bluestore_aio_wait_lat=bluestore.state_aio_wait_lat",
    "bluestore_deferred_writes=bluestore.deferred_write_ops,bluestore.issued_deferred_writes",
    "bluestore_onode_hits=bluestore.onode_hits,bluestore.bluestore_onode_hits",
    "bluestore_onode_misses=bluestore.onode_misses,bluestore.bluestore_onode_misses",
    "bluestore_buffer_hit_bytes=bluestore.buffer_hit_bytes,bluestore.bluestore_buffer_hit_bytes",
    "bluestore_buffer_miss_bytes=bluestore.buffer_miss_bytes,bluestore.bluestore_buffer_miss_bytes",
    *(
        f"filestore_{name}=filestore.{name}"
        for name in (
            *("journal_latency", "journal_queue_bytes", "journal_full"),
            *("apply_latency", "commitcycle_latency", "op_queue_ops"),
        )
    ),
)

SHOWN_OF_RADOSGW = DaemonCounters(
    daemon="radosgw",
    figures=(
        CounterFigure(words="{} requests in work", reckon="sum", counters=("qactive",)),
        CounterFigure(
            words="first byte of a read after {} ms",
            reckon="latency",
            counters=("get_initial_lat",),
        ),
        CounterFigure(words="a write takes {} ms", reckon="latency", counters=("put_initial_lat",)),
        CounterFigure(
            words="{} % of metadata from its cache",
            reckon="hits",
            counters=("cache_hit", "cache_miss"),
        ),
    ),
    waiting="qlen",
    working="qactive",
)
SHOWN_OF_OSD = DaemonCounters(
    daemon="osd",
    figures=(
        CounterFigure(words="{} op/s", reckon="rate", counters=("op",)),
        CounterFigure(words="an operation takes {} ms", reckon="latency", counters=("op_latency",)),
        CounterFigure(words="a commit {} ms", reckon="latency", counters=("bluestore_commit_lat",)),
        CounterFigure(
            words="{} % of onodes cached",
            reckon="hits",
            counters=("bluestore_onode_hits", "bluestore_onode_misses"),
        ),
    ),
)
