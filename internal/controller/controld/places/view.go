package places

import (
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// An Attachment is where a host is, and how it is there.
type Attachment struct {
	store.Place
	Host    string
	State   plan.HostState
	Doubted bool // only a restored backup says so
}

func (at *attachment) shown() Attachment {
	return Attachment{Place: at.Place, Host: at.host.Name, State: at.state, Doubted: at.host.Doubted}
}

// At is who is at a locator now.
func (x *Places) At(l sid.Locator) (Attachment, bool) {
	at := x.all[l]
	if at == nil {
		return Attachment{}, false
	}
	return at.shown(), true
}

// Of are those of a host that is here, the preferred one first.
func (x *Places) Of(h *Host) (list []Attachment) {
	for _, at := range x.at(h) {
		list = append(list, at.shown())
	}
	return list
}

// Each calls f for all of them.
func (x *Places) Each(f func(Attachment)) {
	for _, at := range x.all {
		f(at.shown())
	}
}
