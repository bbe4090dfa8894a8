package autopsy

import (
	"fmt"
	"strings"

	"goprof/profile"
	"goprof/session/postmortem"
	"goprof/triage/hserr"
)

// reportOf returns what HotSpot would have written into its crash file, or nil if nothing ended the process.
func reportOf(d *profile.Dump, f *postmortem.Facts) *hserr.Report {
	s := d.Core.Signal
	if s == nil || len(d.Threads) == 0 {
		return nil
	}
	died := &d.Threads[0]
	r := &hserr.Report{PID: d.PID, VM: f.Version, Arch: archNames[f.CPU], Whole: d.Core.Cut == 0, Stack: f.Stack,
		Thread: threadText(died)}
	if task, ok := strings.CutPrefix(died.State, "compiling "); ok {
		r.Task = withColons(task)
	} else {
		r.State = died.State
	}
	if d.Core.Cause != nil {
		s = d.Core.Cause
	}
	r.Signal, r.PC, r.Code, r.CodeAt = s.Name, s.PC, s.Code, s.PC
	r.Addr, r.HasAddr = s.Addr, s.HasAddr
	r.SigCode, _, _ = strings.Cut(s.Why, ":")
	if code := sentCodes[s.Why]; code != "" {
		r.SigCode, r.SentBy = code, s.Sender
	}
	for i := max(s.Frame, 0); i < len(died.Stack.Frames); i++ {
		if i == s.Frame {
			r.SP = died.Stack.Frames[i].SP
		}
		if frame, ok := frameOf(&died.Stack.Frames[i]); ok {
			r.Frames = append(r.Frames, frame)
		}
	}
	if len(r.Frames) > 0 {
		r.Frame = r.Frames[0]
	}
	if d.Core.Cause == nil && s.Name == "SIGABRT" && s.Sender == d.PID {
		r.SigCode, r.SentBy = "", 0
		aborted(r)
	}
	return r
}

// archNames maps our names of CPUs to HotSpot's.
var archNames = map[string]string{"amd64": "amd64", "arm64": "aarch64"}

// sentCodes maps the way in which a signal was sent, in package postmortem's words, to HotSpot's code.
var sentCodes = map[string]string{postmortem.SentByKill: "SI_USER", postmortem.SentByTgkill: "SI_TKILL",
	postmortem.SentByQueue: "SI_QUEUE"}

// aborted finds out why a process called abort without a signal. The JVM calls abort when it gives up
// (utilities/debug.cpp: each reason has its own function). The C library and native code call it, too.
func aborted(r *hserr.Report) {
	for i := range r.Frames {
		name := r.Frames[i].Text
		switch {
		case strings.Contains(name, "report_java_out_of_memory"):
			r.Message = "OutOfMemory encountered, and the JVM was told to crash then"
		case strings.Contains(name, "report_vm_out_of_memory"):
			r.NoMemory = true
		case strings.Contains(name, "report_vm_error"), strings.Contains(name, "report_fatal"),
			strings.Contains(name, "report_should_not"), strings.Contains(name, "report_unimplemented"):
			r.Internal = "The JVM gave up in " + name
		default:
			continue
		}
		if i+1 < len(r.Frames) {
			r.Frame = r.Frames[i+1] // the frame that found the fault
		}
		return
	}
	// The code that called abort is below the C library's frames.
	for _, f := range r.Frames {
		if !strings.HasPrefix(f.Text, "[libc") {
			r.Frame = f
			break
		}
	}
}

func threadText(t *profile.ThreadDump) string {
	if t.Java {
		return fmt.Sprintf("JavaThread %q", t.Name)
	}
	return fmt.Sprintf("%q, none of Java's", t.Name)
}

// withColons returns a method in the form that the JVM's compilers print: a.B::c.
func withColons(task string) string {
	if at := strings.LastIndexByte(task, '.'); at > 0 {
		return task[:at] + "::" + task[at+1:]
	}
	return task
}

// frameOf converts a frame to the form of a crash file. It returns false for gaps and notes.
func frameOf(f *profile.Frame) (hserr.Frame, bool) {
	if f.Func == nil {
		return hserr.Frame{}, false
	}
	name := f.Func.Name
	switch f.Kind {
	case profile.Native:
		kind := byte('C')
		if f.Func.Module == "libjvm.so" {
			kind = 'V'
		}
		return hserr.Frame{Kind: kind, Text: fmt.Sprintf("[%s]  %s", f.Func.Module, name)}, true
	case profile.Interpreted:
		return hserr.Frame{Kind: 'j', Text: name}, true
	case profile.C1, profile.C2, profile.Inlined, profile.NativeMethod:
		return hserr.Frame{Kind: 'J', Text: name}, true
	case profile.Stub:
		return hserr.Frame{Kind: 'v', Text: name}, true
	}
	return hserr.Frame{}, false
}
