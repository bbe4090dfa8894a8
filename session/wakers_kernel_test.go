//go:build linux

package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestKernelWakers finds wakers from the kernel's functions, as they were recorded on Linux 6.18 or are in the kernel's
// sources.
func TestKernelWakers(t *testing.T) {
	const inSyscall = " do_syscall_64 entry_SYSCALL_64_after_hwframe"
	const timer = "bpf_trace_run1 try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt " +
		"__sysvec_apic_timer_interrupt sysvec_apic_timer_interrupt asm_sysvec_apic_timer_interrupt"
	const received = "bpf_trace_run1 try_to_wake_up __wake_up_sync_key sock_def_readable tcp_data_queue tcp_v4_rcv " +
		"process_backlog __napi_poll net_rx_action handle_softirqs "
	for _, c := range []struct {
		name, frames string
		pid          int
		comm, want   string // empty for a thread
	}{
		{"futex", "bpf_trace_run1 try_to_wake_up wake_up_q futex_wake do_futex __x64_sys_futex" + inSyscall, 5, "java", ""},
		{"a thread's own packet by loopback", received + "do_softirq.part.0 __local_bh_enable_ip __dev_queue_xmit " +
			"ip_finish_output2 tcp_sendmsg sock_write_iter ksys_write" + inSyscall, 5, "curl", ""},
		{"a packet of others", received + "do_softirq.part.0 __local_bh_enable_ip tcp_recvmsg ksys_read" + inSyscall, 5,
			"java", "network (softirq)"},
		{"an interrupt", received + "irq_exit_rcu common_interrupt asm_common_interrupt __dev_queue_xmit", 5, "java",
			"network (softirq)"},
		{"timer while a thread ran", timer, 5, "java", "timer (interrupt)"},
		{"timer while none ran", timer + " do_idle cpu_startup_entry", 0, "swapper/1", "timer (interrupt)"},
		{"timer on aarch64", "try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt arch_timer_handler_virt " +
			"handle_percpu_devid_irq gic_handle_irq el0t_64_irq_handler el0t_64_irq", 5, "java", "timer (interrupt)"},
		{"disk", "try_to_wake_up folio_end_read bio_endio blk_update_request virtblk_done vring_interrupt handle_irq_event " +
			"common_interrupt asm_common_interrupt", 5, "java", "disk (interrupt)"},
		{"worker", "try_to_wake_up complete process_one_work worker_thread kthread ret_from_fork_asm", 77, "kworker/1:2",
			"other (kworker)"},
		{"softirq's own thread", received + "run_ksoftirqd smpboot_thread_fn kthread ret_from_fork_asm", 16, "ksoftirqd/0",
			"network (ksoftirqd)"},
		{"idle", "try_to_wake_up swake_up_one do_idle cpu_startup_entry", 0, "swapper/1", "other (idle)"},
	} {
		var symbols strings.Builder
		names := strings.Fields(c.frames)
		sorted := slices.Sorted(slices.Values(names))
		for i, name := range sorted {
			fmt.Fprintf(&symbols, "%x T %s\n", uint64(0xffffffff81000000)+uint64(i)*0x100, name)
		}
		k, err := readKernelNames(strings.NewReader(symbols.String()))
		if err != nil {
			t.Fatal(err)
		}
		var frames []uint64
		for _, name := range names {
			frames = append(frames, 0xffffffff81000010+uint64(slices.Index(sorted, name))*0x100)
		}
		for range 2 { // the second round uses kept facts
			got := k.wakerOf(frames, c.pid, c.comm)
			if got.kernel != (c.want != "") || got.kernel && got.String() != c.want {
				t.Errorf("%s: %+v, not %q", c.name, got, c.want)
			}
		}
	}
}
