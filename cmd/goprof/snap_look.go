//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/recorder"
	"goprof/cmd/goprof/terminal"
	"goprof/output/findings"
	"goprof/output/outfile"
	"goprof/output/snap"
	"goprof/triage"
	"goprof/triage/examine"
	"goprof/triage/vitals"
)

// triageAndRecord takes the two parts that need time, side by side. One goroutine writes their files afterwards.
func (s *snapping) triageAndRecord() {
	looked := s.begin("triage", "goprof triage: what is wrong, and the vitals of each second")
	recorded := s.begin("recording", "goprof record --event cpu,off-cpu: CPU time, and what threads waited for")
	if s.ctx.Err() != nil || s.failed != nil {
		looked.end(interruptedPart())
		recorded.end(interruptedPart())
		return
	}
	var recordErr error
	var spool *os.File
	var all sync.WaitGroup
	all.Go(func() { spool, recordErr = recorded.record() })
	evidence, notes, err := looked.examine()
	all.Wait()
	if err == nil {
		err = looked.findings(evidence, notes)
	}
	looked.end(err)
	if spool != nil {
		recorded.recording(spool)
		spool.Close()
	}
	recorded.end(recordErr)
}

// examine gathers the evidence for triage.
func (p *snapPart) examine() (*triage.Evidence, []string, error) {
	if _, err := p.stoppable(); err != nil {
		return nil, nil, err
	}
	evidence, notes, err := examine.Gather(p.ctx, p.target.pid, examine.Options{
		Duration: max(p.flags.duration, triageLeast),
		Tell:     func(text string) { p.line.Draw("triage and recording: " + text + "  (Ctrl-C keeps what there is)") }})
	switch {
	case p.ctx.Err() != nil:
		return nil, nil, interruptedPart()
	case err != nil:
		return nil, nil, exit.CannotLook(p.target.pid, err)
	}
	return evidence, notes, nil
}

// findings judges the evidence, and keeps the readings of the vitals.
func (p *snapPart) findings(e *triage.Evidence, notes []string) error {
	found := triage.Judge(e)
	found.Notes = append(found.Notes, notes...)
	if p.flags.by != nil {
		p.flags.by.Triage(&found)
	}
	p.add("triage.txt", func(w io.Writer) error { return findings.Text(w, &found) })
	p.add("triage.json", func(w io.Writer) error { return findings.JSON(w, &found) })
	var table vitals.Table
	for _, r := range e.Readings {
		table.Add(r)
	}
	p.add("vitals.csv", table.CSV)
	return foundError(fmt.Sprintf("process %d", p.target.pid), found.Findings)
}

// snapMin is the shortest wait that gets a stack. Shorter ones are only counted, because goprof must be cheap in an
// incident. Without it, a program with 10,000 waits a second cost most of a CPU.
const snapMin = "1ms"

// record records like the command record, into a file without a name. It returns nil if there is no recording.
func (p *snapPart) record() (*os.File, error) {
	f := new(recordFlags)
	cmd := f.command()
	err := cmd.ParseFlags([]string{"--event", "cpu,off-cpu", "--min", snapMin, "-o", snap.Recording, "-d",
		p.flags.duration.String()})
	if err == nil {
		err = f.check(cmd)
	}
	if err != nil {
		return nil, err
	}
	spool, err := outfile.Unnamed()
	if err != nil {
		return nil, err
	}
	f.Files.By, f.Files.Spool, f.Files.Whole = p.flags.by, spool, p.out
	samples := int64(0)
	talk := terminal.NewStatusLine(&p.notes) // its parts write messages at the same time
	r, err := recorder.New(talk, &f.Options, recorder.JVM{PID: p.target.pid})
	if err == nil {
		defer r.Close()
		if err = r.Record(p.ctx); err == nil && p.ctx.Err() != nil {
			err = interruptedPart()
		}
		samples = r.Samples()
	}
	if info, statErr := spool.Stat(); statErr != nil || info.Size() == 0 || samples == 0 {
		spool.Close()
		return nil, err
	}
	return spool, err
}

func (p *snapPart) recording(spool *os.File) {
	p.add(snap.Recording, func(w io.Writer) error {
		_, err := spool.Seek(0, io.SeekStart)
		if err == nil {
			_, err = io.Copy(w, spool)
		}
		return err
	})
	p.log("recording.txt", p.notes.Bytes())
	p.notes.Reset()
}
