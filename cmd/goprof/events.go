//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/profile"
	"goprof/sampler/events"
	"goprof/sampler/guard"
	"goprof/session"
)

const eventsHelp = `events lists what "goprof record --event" can take samples of in one JVM.
If an event is not available, the list says why, and what mends that. events looks for the functions
and asks the kernel. It sets and changes nothing.

--event also takes these, which are not listed:
  libc:write                     any function of a native library that the process has loaded
  libjvm:ObjectMonitor::enter    the same with a C++ name, without parameters
  usdt:hotspot:gc__begin         a marker that a library has for probes; --usdt lists these
  sched:sched_switch             a tracepoint, if tracefs is mounted
  r1a2                           a raw number of the CPU's own counters

A Java method cannot be named: compiled Java lies in anonymous memory, where the kernel sets no
probe.`

const eventsExample = `  goprof events 1234                    what is available in process 1234
  goprof events petclinic --json        the same for machines
  goprof events 1234 --usdt             the markers of its libraries
  goprof record 1234 -d 30s --event alloc -o alloc.html`

func newEvents() *cobra.Command {
	var jvm oneJVM
	var asJSON, markers bool
	cmd := &cobra.Command{
		Use:     "events {PID | NAME | --pid PID | --ns-pid PID [NAME]}",
		Short:   "List what record --event can take samples of in a JVM",
		Long:    eventsHelp,
		Example: eventsExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := jvm.find(cmd, args)
			if err != nil {
				return err
			}
			return listEvents(cmd.OutOrStdout(), pid, asJSON, markers)
		},
	}
	jvm.addFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&markers, "usdt", false, "the markers that its libraries have for probes (USDT), one by one")
	return cmd
}

type listedEvent struct {
	Name      string         `json:"name"`
	Help      string         `json:"help"`
	Unit      profile.Weight `json:"unit"`
	Every     uint64         `json:"every"`
	Available bool           `json:"available"`
	Why       string         `json:"why,omitempty"`
	Remedy    string         `json:"remedy,omitempty"`
	Note      string         `json:"note,omitempty"`
}

func listEvents(to io.Writer, pid int, asJSON, markers bool) error {
	goFirst()
	guard.Enter(guard.ToProbe)
	s, err := session.Attach(pid)
	if err != nil {
		return exit.CannotLook(pid, err)
	}
	defer s.Close()
	if markers {
		list, err := listMarkers(s)
		if err != nil {
			return exit.CannotLook(pid, err)
		}
		return showEvents(to, list, asJSON)
	}
	var list []listedEvent
	for _, e := range s.Events() {
		l := listedEvent{Name: e.Preset.Name, Help: e.Preset.Help, Unit: e.Preset.Unit, Every: max(e.Preset.Every, 1),
			Available: e.Err == nil, Note: e.Note}
		var bad *session.EventError
		if errors.As(e.Err, &bad) {
			exit.Host().ExplainEvent(pid, bad)
			l.Why, l.Remedy = output.Printable(bad.Why), output.Printable(bad.Remedy)
		} else if e.Err != nil {
			l.Why = output.Printable(e.Err.Error())
		}
		list = append(list, l)
	}
	list = append(list, listWaits(s, pid)...)
	if !asJSON {
		list = append(list, listTracepoints())
	}
	if all, err := s.MarkerEvents(); !asJSON && err == nil && len(all) > 0 {
		list = append(list, listedEvent{Name: all[0].Name + " ...", Available: true,
			Help: fmt.Sprintf("%d markers that its libraries have for probes: --usdt lists them", len(all))})
	}
	return showEvents(to, list, asJSON)
}

func listTracepoints() listedEvent {
	l := listedEvent{Name: "group:tracepoint", Available: true,
		Help: "the kernel comes by a tracepoint, for example sched:sched_switch"}
	if bad := session.TracepointsError(); bad != nil {
		l.Available, l.Why, l.Remedy = false, bad.Why, bad.Remedy
	}
	return l
}

func listMarkers(s *session.Session) (list []listedEvent, err error) {
	markers, err := s.MarkerEvents()
	mayProbe := events.TryProbes()
	whyNot := ""
	if mayProbe != nil {
		whyNot = output.Printable(exit.Host().Explain(s.Process.PID(), mayProbe).Why)
	}
	for _, m := range markers {
		l := listedEvent{Name: m.Name, Every: 1, Available: !m.Guarded && mayProbe == nil}
		switch {
		case m.Guarded:
			l.Why = session.WhyGuarded
		case mayProbe != nil:
			l.Why = whyNot
		}
		list = append(list, l)
	}
	return list, err
}

func showEvents(to io.Writer, list []listedEvent, asJSON bool) error {
	if asJSON {
		return exit.CannotWrite(output.WriteJSON(to, list))
	}
	return exit.CannotWrite(writeEvents(to, list))
}

func writeEvents(to io.Writer, list []listedEvent) (err error) {
	say := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(to, format, args...)
		}
	}
	for _, e := range list {
		mark := "yes"
		if !e.Available {
			mark = "no"
		}
		say("%s\n", strings.TrimRight(fmt.Sprintf("%-17s %-4s %s", e.Name, mark, e.Help), " "))
		switch {
		case !e.Available:
			say("%-22s %s\n", "", e.Why)
			if e.Remedy != "" {
				say("%-22s try: %s\n", "", e.Remedy)
			}
		case e.Note != "":
			say("%-22s %s\n", "", e.Note)
		}
	}
	return err
}
