//go:build linux

package main

import (
	"fmt"

	"goprof/agent"
	"goprof/agent/config"
	"goprof/agent/identity"
	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/outlets"
	"goprof/output"
)

// openOthers begins to sample processes other than JVMs. It returns nil if the configuration does not want them.
func openOthers(c *config.Config, a *agent.Agent, h *agent.ThisHost, out *outlets.Outlets) (*agent.Others, error) {
	if !c.WholeHost {
		return nil, nil
	}
	others, err := agent.OpenOthers(agent.OthersOptions{Settings: c.Settings, Version: version(), CPUs: h.CPUs(),
		Enrich: identity.Enrich, Offer: out.Offer})
	if err != nil {
		cause := h.Explain(0, err)
		cause.Remedy = "goprof doctor; without --whole-host the agent records JVMs"
		return nil, exit.OfCause("cannot sample the other processes of this host", cause, err)
	}
	a.SampleOthers(others)
	return others, nil
}

// othersDeeds returns the message about them at the agent's end.
func othersDeeds(o *agent.Others) string {
	samples, lost := o.Counts()
	return fmt.Sprintf("other processes: %s samples; %s records of the kernel's were lost", output.Grouped(samples),
		output.Grouped(lost))
}
