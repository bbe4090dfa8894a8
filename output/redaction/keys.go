package redaction

// keysOfOurs are the keys of goprof's JSON.
const keysOfOurs = `
	account_of address age_ns allocated allocations amount anon_huge_bytes anonymous_bytes apart arenas asleep at
	at_least at_rest attempted bci below_a_sample_ns bound_ns buffers build_id busy by by_debugger bytes
	bytes_error bytes_per_second cache_bytes calls capacity_bytes carrier carrier_truncated cause certainty
	chosen_threads claim class classes code collected collected_meanwhile collecting collections_not_known
	collector committed_bytes completed connections contents control_group copied_bytes core count
	counted_twice_bytes cpu_ns cpu_sum_ns cpu_time cures cut_off daemon deadlocks died direct does doubts
	drawn_from_share drawn_pieces draws dropped dumps duration_ns effective_samples engine error events evidence
	exact executor executors exit_code exited_ns failed field file files filler findings followed_ns fp frame
	frames free_bytes freed frees from from_bytes frozen full full_in_ns goprof groups growth guessed half
	heap_committed heap_max heap_used held_over_bound hindered hits holders holds host hottest how id idle
	idle_threads in_arenas_bytes in_step interval interval_ns invalid io java java_id java_threads jvm jvm_threads
	kernel kind known largest_arrays late_ns leaf_guessed leaf_guessed_most leaf_likely leaks leans left_bytes
	left_out length length_ns lengths lent level limit_bytes limit_in_ns limit_ns line links loader longest_gap_ns
	longest_ns looked_through_bytes looks lost lost_by made_up main_class making malloc mapped_bytes mapped_count
	max_bytes max_ns memory met_ns missed missed_ns missing mode module most moved moves moving name names newer_only next
	no_stack nonblocking none not_counted_bytes not_sampled_ns not_stopped notes number objects objects_error
	objects_looked_at objects_per_second of_bytes old old_collections old_swept_ago_ns omitted operation
	operations other others over_ns overflow own_cpu_ns owner owner_virtual p page_tables_bytes part partial_frees parts
	path pauses pc peer pended_ns pending percent pid pieces pools pools_error priority process_ns quality queued
	rate_hz rate_lowered_hz rate_reached_hz read readings recording redacted remedy repeated reserved_bytes
	resident resident_bytes rest_share room roots rows rss_anon_bytes rss_bytes rss_file_bytes rss_shmem_bytes
	running safepoints sampled_ns samples searched_share seen seen_bytes seen_ns self self_share sender severity
	share share_at_most share_error short short_ns short_sleeps shown signal silent_threads size skipped_ticks sp
	stack start state states still stood stopped sums swap_bytes swapped_bytes switches system taken target text
	thinned thread threads tid tids time time_ns timed times to to_bytes too_new took_ns total total_ns
	total_share tries truncated truncated_by unconfirmed unended unfreed unit unknown unmet_bytes unmet_classes
	unopened unproven unread unreadable unseen_objects unstopped untracked unwatched_ns uptime_ns used used_bytes
	version virtual virtual_threads vm waiting waits waits_for wakers weight where whole why young
	RUNNABLE BLOCKED WAITING TIMED_WAITING NEW TERMINATED PARKED TIMED_PARKED SLEEPING`
