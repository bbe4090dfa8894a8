//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"goprof/agent"
	"goprof/agent/config"
	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/outlets"
	"goprof/output/folderlock"
	"goprof/sampler"
)

const (
	// settleWithin limits how long an agent that takes over waits until it is attached to all busy JVMs.
	settleWithin = 5 * time.Minute
	// beginAhead is the time between the new agent's first samples and the handover, so that the first counted samples
	// are not late.
	beginAhead = 200 * time.Millisecond
	// givenWithin limits the wait for the folder after the handover, while the old agent writes its last batches.
	givenWithin = 2 * time.Minute
	giveEvery   = 50 * time.Millisecond
	// askedEvery is how often an agent checks whether another one wants to take over.
	askedEvery = time.Second
)

// handoverFolders returns the folders through which agents agree on a handover.
func handoverFolders(c *config.Config) (all []string) {
	for _, dir := range []string{c.Files.Dir, c.To.Spool} {
		if dir != "" {
			all = append(all, dir)
		}
	}
	return all
}

// errNoFolder says that the two agents have no folder in common.
func errNoFolder() error {
	return &exit.Error{Code: exit.General, What: "--take-over needs --files or --spool",
		Why: "in that folder the two agents find each other"}
}

// takeOver replaces another agent. It waits until this agent is attached to all busy JVMs, and asks the other agent to
// end. This agent counts from that moment on, and opens its outlets when the other one has closed them.
func takeOver(ctx context.Context, a *agent.Agent, c *config.Config, out *outlets.Outlets,
	say func(string)) error {
	select {
	case <-a.Settled():
	case <-time.After(settleWithin):
		say("not all JVMs could be attached to yet: for those there is a gap")
	case <-ctx.Done():
		return nil
	}
	at, ok, err := askToEnd(ctx, handoverFolders(c), say)
	if !ok {
		return err
	}
	restUntil(ctx, at.Add(-beginAhead))
	a.Begin(at)
	for end := at.Add(givenWithin); ; restUntil(ctx, time.Now().Add(giveEvery)) {
		err := out.Connect(c)
		if err == nil {
			say(fmt.Sprintf("took over at %s", at.UTC().Format("15:04:05.000")))
		}
		if err == nil || !outlets.InUse(err) || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}

// askToEnd asks the other agent to end, and returns the agreed moment. If this agent is interrupted meanwhile, askToEnd
// withdraws the request. Then ok is false, and err is nil.
func askToEnd(ctx context.Context, dirs []string, say func(string)) (at time.Time, ok bool, err error) {
	at, err = askAny(ctx, dirs)
	switch {
	case ctx.Err() != nil && err == nil:
		say("interrupted when the other agent had agreed to end: no agent records from then on")
		return at, false, nil
	case ctx.Err() != nil:
		return at, false, nil
	case err != nil:
		return at, false, &exit.Error{Code: exit.General, What: "cannot take over", Err: err,
			Remedy: "end the other agent, then start this one without --take-over"}
	}
	return at, true, nil
}

// askAny makes the request in the folder that another agent uses. The other folders may be new.
func askAny(ctx context.Context, dirs []string) (at time.Time, err error) {
	for _, dir := range dirs {
		if at, err = folderlock.Ask(ctx, dir); err == nil || ctx.Err() != nil {
			return at, err
		}
	}
	return at, err
}

// awaitSuccessor ends the agent at the moment that a successor names.
func awaitSuccessor(ctx context.Context, a *agent.Agent, c *config.Config, say func(string), end func()) {
	tick := sampler.NewPulse(askedEvery, 0)
	defer tick.Stop()
	for ; ; tick.Next(askedEvery, 0) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, dir := range handoverFolders(c) {
			if at, ok := folderlock.Asked(dir); ok {
				a.EndAt(at)
				say(fmt.Sprintf("another agent takes over at %s", at.UTC().Format("15:04:05.000")))
				restUntil(ctx, at)
				end()
				return
			}
		}
	}
}

func restUntil(ctx context.Context, at time.Time) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(at)):
	}
}
