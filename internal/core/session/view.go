package session

import (
	"slices"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A View is what a flow looks like to who asks.
type View struct {
	Flow
	State State
	Epoch uint32 // moves of this end
	Seen  uint32 // moves of the peer that we took
	// Transport is what the flow continued from at another instance, or here; zero where it did not.
	Transport wire.Transport
}

func (f *flow) view() View { return View{f.Flow, f.state, f.epoch, f.seen, f.transport} }

// View returns the flow under the key.
func (e *Engine) View(k Key) (View, bool) {
	f := e.flows[k]
	if f == nil {
		return View{}, false
	}
	return f.view(), true
}

// Each calls f with every flow, in no order, until it returns false. The engine must not change meanwhile.
func (e *Engine) Each(f func(View) bool) {
	for k, x := range e.flows {
		if x.Key == k && !f(x.view()) {
			return
		}
	}
}

// Len is how many flows there are.
func (e *Engine) Len() (n int) {
	e.Each(func(View) bool { n++; return true })
	return n
}

// Owner is the flow whose address, present or former, has the socketID.
func (e *Engine) Owner(s sid.SocketID) (Key, bool) {
	if f := e.bySocket[s]; f != nil {
		return f.Key, true
	}
	return Key{}, false
}

// Holds reports whether some flow stands or stood at the locator and its peer may know it there.
func (e *Engine) Holds(l sid.Locator) bool {
	for _, f := range e.flows {
		if f.Local.Locator == l || f.confirmed == l || slices.ContainsFunc(f.old, func(r retired) bool { return r.Locator == l }) {
			return true
		}
	}
	return false
}
