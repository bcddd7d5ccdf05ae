"""The first line of summary.csv, which others read by name."""

COLUMNS = (
    "run,layout,twin_of,api,driver,layer,workload,operation,object_size_bytes,sent,workers,repeats,"
    "throughput_ops_s,bandwidth_mb_s,p50_ms,p90_ms,p99_ms,p99_9_ms,max_ms,first_byte_p50_ms,first_byte_ms,"
    "first_byte_p99_ms,mean_ms,samples,errors,gateway_cpu_s_per_1000_ops,storage_cpu_s_per_1000_ops,"
    "from_disk_percent,goodput_ops_s,"
    "refused_percent,late_percent,timed_out_percent,failed_otherwise_percent,not_sent_percent,stall_s,detect_s,"
    "recover_s,rate_before_ops_s,unanswered_s,missed_s,away_p99_ms,away_max_ms,lowest_back_percent,"
    "throughput_over_repeats_low_ops_s,throughput_over_repeats_high_ops_s,p90_over_repeats_low_ms,"
    "p90_over_repeats_high_ms,p99_over_repeats_low_ms,p99_over_repeats_high_ms,max_over_repeats_low_ms,"
    "max_over_repeats_high_ms,first_byte_over_repeats_low_ms,first_byte_over_repeats_high_ms,"
    "goodput_over_repeats_low_ops_s,goodput_over_repeats_high_ops_s,stall_over_repeats_low_s,"
    "stall_over_repeats_high_s,detect_over_repeats_low_s,detect_over_repeats_high_s,recover_over_repeats_low_s,"
    "recover_over_repeats_high_s,p50_low_ms,p50_high_ms,p90_low_ms,p90_high_ms,p99_low_ms,p99_high_ms,p99_9_low_ms,"
    "p99_9_high_ms,max_low_ms,max_high_ms,saturated,limited_by,valid,steady,ranked,lower_bounds,provisional,doubts,"
    "power_cuts,notes"
)
