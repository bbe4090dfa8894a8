package triage

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"goprof/profile"
)

var (
	inSend = []string{"java.lang.Object.wait0", "java.lang.Object.wait",
		"org.apache.kafka.common.utils.SystemTime.waitObject",
		"org.apache.kafka.clients.producer.KafkaProducer.send", "shop.Cart.pay"}
	inLibrary = []string{"java.lang.Object.wait0", "java.lang.Object.wait",
		"org.apache.kafka.common.utils.SystemTime.waitObject",
		"org.apache.kafka.clients.producer.internals.Sender.run"}
	inHandler = []string{"java.lang.Thread.sleep", "shop.Handler.handle", "io.netty.channel.nio.NioEventLoop.run"}
)

// TestClientsOfOthers: what is said of pools that wait inside client libraries, which read from connections by threads
// of their own, and of event loops.
func TestClientsOfOthers(t *testing.T) {
	other := netip.MustParseAddrPort("10.0.0.8:443")
	for name, c := range map[string]struct {
		change func(*patient)
		id     profile.FindingID
		claim  string
	}{
		"one peer": {func(p *patient) {
			p.waitInTask(2, 6, inSend...)
			p.Dumps[2].Opened = map[netip.AddrPort]int{remote: 2}
		}, profile.WaitingRemote, "5 of 5 threads pool-1-thread-* wait for an answer to org.apache.kafka.clients.producer." +
			"KafkaProducer.send in shop.Cart.pay, for 98 % of their time. 2 of 2 connections that the process has opened " +
			"lead to 10.0.0.7:5432."},
		"a connection for each": {func(p *patient) {
			p.waitInTask(2, 6, inSend...)
			p.Dumps[2].Opened = map[netip.AddrPort]int{other: 1, remote: 5}
		}, profile.WaitingRemote, "5 of 5 threads pool-1-thread-* wait for an answer to org.apache.kafka.clients.producer." +
			"KafkaProducer.send in shop.Cart.pay, for 98 % of their time. 5 of 6 connections that the process has opened " +
			"lead to 10.0.0.7:5432."},
		"one of two peers": {func(p *patient) {
			p.waitInTask(2, 6, inSend...)
			p.Dumps[2].Opened = map[netip.AddrPort]int{other: 1, remote: 2}
		}, profile.WaitingRemote, "5 of 5 threads pool-1-thread-* wait for an answer to org.apache.kafka.clients.producer." +
			"KafkaProducer.send in shop.Cart.pay, for 98 % of their time."},
		"no peer": {func(p *patient) {
			p.waitInTask(2, 6, inSend...)
			p.Dumps[2].Opened = map[netip.AddrPort]int{}
		}, profile.WaitingRemote, "5 of 5 threads pool-1-thread-* wait for an answer to org.apache.kafka.clients.producer." +
			"KafkaProducer.send in shop.Cart.pay, for 98 % of their time. The process has no connection that it has opened."},
		"one of five asks nothing": {func(p *patient) { p.waitInTask(2, 5, inSend...) }, "", ""},
		"threads of a library":     {func(p *patient) { p.waitInTask(2, 6, inLibrary...) }, "", ""},
		"a blocked event loop": {func(p *patient) { p.waitInTask(3, 3, inHandler...) }, profile.PoolStuck,
			"The event loop \"pool-1-thread-3\" tid=3 is blocked for 98 % of its time: it sleeps or waits for a notification " +
				"in shop.Handler.handle."},
		"an event loop that waits for events": {func(p *patient) {
			p.waitInTask(3, 3, "sun.nio.ch.EPoll.wait", "sun.nio.ch.SelectorImpl.select",
				"io.netty.channel.nio.NioEventLoop.run")
		}, "", ""},
		"virtual threads, and quick answers": {func(p *patient) {
			p.virtualWait(300, virtually(inRead)...)
			p.Dumps[2].Opened = map[netip.AddrPort]int{remote: 300}
			for id := range p.Earlier.Was {
				p.Earlier.Was[id] = 7
			}
		}, "", ""},
	} {
		p := healthy()
		c.change(p)
		got := Judge(p.Evidence)
		if c.id == "" && len(got.Findings) == 0 {
			continue
		}
		if !slices.Equal(ids(got), []profile.FindingID{c.id}) || !strings.HasPrefix(got.Findings[0].Claim, c.claim) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
