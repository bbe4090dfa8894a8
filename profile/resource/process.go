package resource

// Process is what goprof itself knows about a JVM, live or recorded. All packages that send profiles take the names
// from Process, so servers list a process under the same names, whichever package sent the profile.
type Process struct {
	Service                         string // profile.ProgramName of the main class or jar
	PID                             int
	Version, Owner, Container, Host string // Version of the JVM: "17.0.15+6"
}

// Attributes returns the known facts under the names of OpenTelemetry's conventions.
func (p *Process) Attributes() (a Attributes) {
	a.Set(ServiceName, p.Service)
	if p.PID > 0 {
		a.SetInt(ProcessPID, int64(p.PID))
	}
	a.Set(ProcessOwner, p.Owner)
	if p.Version != "" {
		a.Set(RuntimeName, "OpenJDK Runtime Environment")
		a.Set(RuntimeVersion, p.Version)
	}
	a.Set(ContainerID, p.Container)
	a.Set(HostName, p.Host)
	return a
}
