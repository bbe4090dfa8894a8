//go:build linux

package recorder

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/jvmevents"
	"goprof/cmd/goprof/product"
	"goprof/cmd/goprof/terminal"
	"goprof/output"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/session"
)

// Options say what is recorded and where it goes. They are the same for all JVMs of a run.
type Options struct {
	Files    product.Files // New sets Tell
	Parts    []Part        // at least one; the first one leads
	Duration time.Duration // 0: until ctx is done
	Loop     time.Duration // a new file begins after this time; 0: never
	Keep     int           // number of a loop's files, older ones are deleted; 0: all are kept
	RawNames bool
	// JVMEvents adds the JVM's own counters. It requires JFR files.
	JVMEvents bool
	Quiet     bool // no progress, no account at the end
	Verbose   bool // an account with all details
	// ExplainEngine shows why an engine was chosen.
	ExplainEngine bool
	Show          func(file string) // called with each complete file; may be nil
}

// JVM is a JVM to record. If goprof is already attached, it has a session, which the recorder closes.
type JVM struct {
	PID     int
	Session *session.Session
}

// Recorder records one JVM into its own files.
type Recorder struct {
	part           // the leading part
	beside []*part // the other parts
	out    *product.Outputs
	ended  chan struct{}
	talk   io.Writer
	counts *jvmevents.Counts // nil without JVMEvents
	result result            // of the last file

	// For a loop.
	made    [][]*outfile.Made // files that are not deleted yet, the oldest first
	loopErr error
}

// All records all JVMs side by side until ctx is done, the time is over, or they have ended. At each signal it writes
// what it has. Of several errors, it returns the first and shows the others.
func All(ctx context.Context, stderr io.Writer, o *Options, jvms []JVM, now <-chan os.Signal) error {
	talk := terminal.NewStatusLine(stderr)
	var recorders []*Recorder
	defer func() {
		for _, r := range recorders {
			r.Close()
		}
	}()
	warned := exit.Doubts{}
	for _, j := range jvms {
		r, err := New(talk, o, j)
		if err != nil {
			return err
		}
		recorders = append(recorders, r)
		warned.Warn(talk, r.session.Doubts())
	}
	noMoreSignals := writeOnSignal(talk, recorders, now)
	noMoreProgress := showProgress(talk, o, recorders)
	var all sync.WaitGroup
	for _, r := range recorders {
		all.Go(func() { r.result = r.record(ctx) })
	}
	all.Wait()
	noMoreSignals()
	noMoreProgress()
	var first error
	for _, r := range recorders {
		if len(recorders) > 1 && !o.Quiet {
			io.WriteString(talk, output.AccountLine("Process", fmt.Sprint(r.pid)))
		}
		switch err := r.tell(&r.result); {
		case err == nil:
		case first == nil:
			first = err
		default:
			exit.Tell(talk, err)
		}
	}
	return first
}

// New makes a recorder. It shows notes on talk. It opens the files first, so that a name that cannot be written does
// not cost a recording.
func New(talk io.Writer, o *Options, jvm JVM) (*Recorder, error) {
	r := &Recorder{ended: make(chan struct{}), talk: talk}
	o.Files.Tell = func(note string) {
		if !o.Quiet {
			fmt.Fprintf(talk, "goprof: %s\n", output.Printable(note))
		}
	}
	for i, want := range o.Parts {
		p := part{o: o, want: want, pid: jvm.PID, visits: make(chan session.Visit)}
		if i == 0 {
			p.session, r.part = jvm.Session, p
		} else {
			r.beside = append(r.beside, &p)
		}
	}
	var err error
	if r.out, err = o.Files.Reserve(jvm.PID); err != nil {
		err = exit.CannotWrite(err)
	}
	for _, p := range r.parts() {
		if err == nil {
			err = p.open(talk)
		}
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Record records until ctx is done, the time is over, or the JVM has ended. It writes the files, and an account.
func (r *Recorder) Record(ctx context.Context) error {
	r.result = r.record(ctx)
	return r.tell(&r.result)
}

// Samples returns the number of samples in the last file.
func (r *Recorder) Samples() int64 { return r.result.summary.AllSamples() }

// Close detaches from the JVM.
func (r *Recorder) Close() {
	for _, p := range r.parts() {
		p.close()
	}
}

// parts returns all parts, the leading one first.
func (r *Recorder) parts() []*part { return append([]*part{&r.part}, r.beside...) }

type result struct {
	profile *profile.Profile
	summary profile.Summary
	at      profile.Instant // the end
	used    time.Duration   // CPU time of the whole process during the recording
	err     error
}

func (r *result) recorded() *product.Recorded {
	return &product.Recorded{Profile: r.profile, Summary: &r.summary, At: r.at}
}

func (r *Recorder) record(ctx context.Context) result {
	defer close(r.ended)
	if r.o.RawNames {
		for _, p := range r.parts() {
			p.session.RawNames()
		}
	}
	if r.o.JVMEvents {
		var err error
		if r.counts, err = jvmevents.Open(r.session); err != nil {
			return result{err: err}
		}
		if r.counts == nil {
			fmt.Fprintln(r.talk,
				"goprof: --jvm-events: this JVM counts nothing (-XX:-UsePerfData), so the file has no such events")
		}
		defer r.counts.Close()
	}
	if r.o.Loop > 0 {
		return r.loop(ctx)
	}
	return r.once(ctx, r.o.Duration)
}

// once records one file.
func (r *Recorder) once(ctx context.Context, length time.Duration) result {
	ctx, stop := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, r.out.EndSoon)()
	if length > 0 {
		defer time.AfterFunc(length, r.out.EndSoon).Stop()
	}
	defer stop()
	before := r.session.CPUTime()
	sink := r.out.Start(r.session.Facts(), stop)
	stopCounting := r.counts.Begin(ctx, product.JFROf(r.out.Product))
	p, sum, err := r.recordParts(ctx, length, sink, stop)
	stopCounting()
	used := sum.Times.Process
	if used == 0 { // wall-clock modes do not measure CPU time, and the summary lacks excluded threads
		used = max(r.session.CPUTime()-before, 0)
	}
	return result{p, sum, r.session.Now(), used, err}
}

// visit makes the recording of a part call f between two samples, and waits for f. It returns false if the recording
// has ended.
func (r *Recorder) visit(p *part, f session.Visit) bool {
	done := make(chan struct{})
	select {
	case p.visits <- func(p *profile.Profile, s *profile.Summary) {
		defer close(done)
		f(p, s)
	}:
		select {
		case <-done:
			return true
		case <-r.ended: // it ended during f, because the process's memory does not answer
			return false
		}
	case <-r.ended:
		return false
	}
}

// tell writes the files, and reports them.
func (r *Recorder) tell(res *result) error {
	empty := res.summary.AllSamples() == 0
	name, err := finish(r.out, res, true)
	if err != nil {
		return err
	}
	if !empty && !r.o.Quiet {
		r.tellAccount(&res.summary)
		tellWritten(r.talk, name, r.o.Files.As, res.summary.Looks != nil)
	}
	if !empty && r.o.Loop > 0 {
		r.keepNewest(r.out)
	}
	switch {
	case r.loopErr != nil:
		return r.loopErr
	case res.err != nil:
		return exit.CannotLook(r.pid, res.err)
	case !empty:
		if r.o.Show != nil {
			r.o.Show(name)
		}
		return nil
	}
	if !r.o.Quiet {
		r.tellAccount(&res.summary)
	}
	if len(r.made) > 0 { // only the last file of the loop is empty
		return nil
	}
	return r.noSamples(res)
}

// finish writes files for the last time. A recording without samples gets no file of stacks: an empty file is useless,
// and could replace a full one. If the user asked for an account, it is written, because it says what became of the
// looks. In a loop that is the account of the last file.
func finish(out *product.Outputs, res *result, last bool) (name string, err error) {
	switch {
	case res.summary.AllSamples() > 0:
		name, err = out.Finish(res.recorded())
	case last:
		err = out.LeaveOut(res.recorded())
	default:
		err = out.LeaveOut(nil)
	}
	return name, exit.CannotWrite(err)
}

// tellAccount shows the account of a recording. If the files contain no names, the account has none either, because
// other people may read logs.
func (r *Recorder) tellAccount(sum *profile.Summary) {
	sum = r.out.Shown(sum)
	output.SummaryText(r.talk, sum)
	if r.o.Verbose {
		output.SummaryDetails(r.talk, sum)
	}
}

// tellWritten reports the place of the recording, and how to open it.
func tellWritten(talk io.Writer, name string, as format.Format, wall bool) {
	if name == outfile.Stdout {
		return
	}
	text := output.Printable(name)
	if next := nextStep(name, as, wall); next != "" {
		text += "   next: " + output.Printable(next)
	}
	io.WriteString(talk, output.AccountLine("Written", text))
}

// nextStep returns the command or the program that shows a recording best.
func nextStep(name string, as format.Format, wall bool) string {
	if name[0] == '-' {
		name = "./" + name
	}
	switch {
	case as.Viewer() != "":
		return "open it in " + as.Viewer()
	case !as.Read():
		return ""
	case as == format.JFR && !wall:
		return exit.CommandLine([]string{"goprof", "heat", name})
	case wall:
		return exit.CommandLine([]string{"goprof", "report", name})
	}
	return exit.CommandLine([]string{"goprof", "flame", name})
}
