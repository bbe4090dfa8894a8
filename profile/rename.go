package profile

// Renamed returns a copy of the profile with other functions. Functions that become equal are one frame when the
// profile is written.
func (p *Profile) Renamed(name func(*Func) *Func) *Profile {
	c := p.Copy()
	list := make([]*Func, len(c.funcs.list))
	for i, fn := range c.funcs.list {
		list[i] = name(fn)
	}
	c.funcs.list = list
	return c
}
