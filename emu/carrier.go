package emu

// A Linked program is told when a link of its router goes down or comes up, as a router's hardware notices that the
// carrier is gone.
type Linked interface {
	Program
	// LinkChanged is called when [Port.Up] of one of the router's ports may have changed.
	LinkChanged(r *Router, p *Port)
}

// tell lets the programs at both ends know of a change.
func (l *Link) tell() {
	for i, node := range l.nodes {
		r, ok := node.(*Router)
		if !ok {
			continue
		}
		r.shard.ask(func() { r.linkChanged(l.ports[i]) }) //nolint:errcheck // a network that has ended needs to know nothing
	}
}

func (r *Router) linkChanged(p *Port) {
	if program, ok := r.program.(Linked); ok && r.shard != nil && r.failure == nil {
		r.guard(func() { program.LinkChanged(r, p) })
	}
}

// guard calls a part of the program. One that panics stops its router, and no other.
func (r *Router) guard(f func()) {
	ok := false
	defer func() {
		if !ok {
			r.fail(recover())
		}
	}()
	f()
	ok = true
}

// A Keeper is a program that keeps packets, which it had set to [Taken].
type Keeper interface {
	Program
	// LetGo releases all of them: the router moves to other memory, or gets another program.
	LetGo(r *Router)
}

// letGo frees what the program keeps, which lies in the shard's memory.
func (r *Router) letGo(s *shard) {
	if program, ok := r.program.(Keeper); ok && s != nil {
		now := r.shard
		r.shard = s
		r.guard(func() { program.LetGo(r) })
		r.shard = now
	}
}
