//go:build linux

package session

import (
	"cmp"
	"slices"
	"strings"
)

// This file finds out from the kernel's functions what has woken a thread: the running thread, or the kernel itself. An
// interrupt uses the stack of the interrupted thread, which is not the waker.

type kernelWaker struct {
	kernel  bool   // the kernel woke it; otherwise the running thread did
	cause   string // "timer", "network", "disk" or "other"
	context string // "interrupt", "softirq", or the name of a kernel thread
}

func (k kernelWaker) String() string { return k.cause + " (" + k.context + ")" }

// causes are the reasons of wake-ups by the kernel. The function that is nearest to the wake-up decides.
var causes = []struct {
	cause    string
	prefixes []string
}{
	// kernel/time/hrtimer.c, kernel/time/timer.c, fs/timerfd.c
	{"timer", strings.Fields("hrtimer_wakeup process_timeout __hrtimer_run_queues call_timer_fn timerfd_tmrproc " +
		"posix_timer_fn")},
	// net/core/dev.c, net/ipv4/tcp_ipv4.c, net/ipv4/udp.c
	{"network", strings.Fields("net_rx_action __netif_receive_skb netif_receive_skb napi_ tcp_v4_rcv tcp_v6_rcv " +
		"udp_rcv __udp4_lib_rcv")},
	// block/bio.c, block/blk-mq.c, mm/filemap.c
	{"disk", strings.Fields("bio_endio blk_ __blk_ scsi_ nvme_ virtblk_ folio_end_ end_page_ end_buffer_ " +
		"iomap_finish_ jbd2_")},
}

// interrupts are functions with which the kernel enters an interrupt: arch/x86/include/asm/idtentry.h and
// arch/x86/kernel/irq.c, with the names before Linux 5.8; arch/arm64/kernel/entry.S and entry-common.c.
var interrupts = strings.Fields(`asm_sysvec_ sysvec_ asm_common_interrupt common_interrupt apic_timer_interrupt
	smp_apic_timer_interrupt do_IRQ ret_from_intr hrtimer_interrupt handle_irq_event __handle_irq_event
	el1h_64_irq el0t_64_irq el1_irq el0_irq el1_interrupt el0_interrupt gic_handle_irq`)

type kernelFacts struct {
	cause                             string
	interrupt, softirq, sends, thread bool
}

// factsOfKernel returns what the name of a kernel function shows about a wake-up.
func factsOfKernel(name string) (f kernelFacts) {
	for _, c := range causes {
		if hasPrefix(name, c.prefixes) {
			f.cause = c.cause
		}
	}
	f.interrupt = hasPrefix(name, interrupts)
	switch name {
	case "handle_softirqs", "__do_softirq", "__softirqentry_text_start", "do_softirq": // kernel/softirq.c
		f.softirq = true
	case "__dev_queue_xmit", "ip_finish_output2", "ip6_finish_output2": // net/core/dev.c, net/ipv4/ip_output.c
		f.sends = true
	case "kthread": // kernel/kthread.c
		f.thread = true
	}
	return f
}

// maxKernelFacts bounds the addresses whose facts are kept. Programs that the kernel compiles come and go.
const maxKernelFacts = 1 << 14

// wakerOf returns what woke a thread. frames are the kernel's functions, innermost first. pid and comm are those of the
// process and the thread that ran or was interrupted.
func (k *kernelNames) wakerOf(frames []uint64, pid int, comm string) kernelWaker {
	w := kernelWaker{cause: "other"}
	var all kernelFacts
	for _, addr := range frames { // a return address is in the same function as its call
		f, known := k.facts[addr]
		if !known {
			if k.facts == nil || len(k.facts) >= maxKernelFacts {
				k.facts = map[uint64]kernelFacts{}
			}
			f = factsOfKernel(k.at(addr - 1).Name)
			k.facts[addr] = f
		}
		all.cause = cmp.Or(all.cause, f.cause)
		// A thread that sends by loopback receives in its own softirq: the thread is the waker.
		all.sends = all.sends || f.sends && all.softirq && !all.interrupt
		all.interrupt, all.softirq = all.interrupt || f.interrupt, all.softirq || f.softirq
		all.thread = all.thread || f.thread
	}
	switch {
	case all.interrupt && all.softirq:
		w.context = "softirq"
	case all.interrupt:
		w.context = "interrupt"
	case all.thread:
		w.context, _, _ = strings.Cut(comm, "/") // kworker/1:2
	case all.softirq && !all.sends:
		w.context = "softirq"
	case pid == 0:
		w.context = "idle"
	}
	if all.cause != "" {
		w.cause = all.cause
	}
	w.kernel = w.context != ""
	return w
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
