package redaction

// keysOfOurs are the keys of goprof's JSON.
const keysOfOurs = `
	age_ns asleep at_rest attempted bci bound_ns by bytes carrier carrier_truncated certainty chosen_threads
	claim class collector count cpu_ns cpu_sum_ns cpu_time cures daemon deadlocks doubts dumps duration_ns
	engine error evidence exited_ns file findings frame frames goprof groups holds host hottest how id
	idle idle_threads interval_ns java java_id java_threads jvm jvm_threads kind leaf_guessed leaf_likely
	leans length_ns level line longest_gap_ns looks lost lost_by main_class max_ns mode module moved
	moves name names next not_sampled_ns notes omitted others overflow own_cpu_ns owner owner_virtual p
	pauses pc pid priority process_ns quality rate_hz rate_lowered_hz rate_reached_hz recording remedy
	repeated rows running sampled_ns samples seen self self_share severity share shown silent_threads
	skipped_ticks sp start state states still stopped system text threads tid tids time time_ns timed
	total total_ns total_share truncated truncated_by unknown unread unstopped untracked uptime_ns
	version virtual virtual_threads vm waiting waits_for weight whole why
	RUNNABLE BLOCKED WAITING TIMED_WAITING NEW TERMINATED PARKED TIMED_PARKED SLEEPING`
