package places

import (
	"slices"
	"time"

	"scaffold.dev/scaffold/sid"
)

const (
	// oldLocatorGrace is how long packets to a locator that the host had are still taken: those on their
	// way when it changed.
	oldLocatorGrace = 60 * time.Second
	// oldLocatorLimit is how long they are taken where a flow's peer still knows no other: the network
	// gives the locator to nobody else for that long, docs/architecture.md.
	oldLocatorLimit = 14 * time.Minute
	// maxLocators is how many the edge accepts at a time, MAX_LOCATORS of abi.h.
	maxLocators = 16
)

// A Former is a locator that the host had.
type Former struct {
	Locator     sid.Locator `json:"locator"`
	Uplink      string      `json:"uplink"`
	Certificate []byte      `json:"certificate,omitempty"`
	Left        time.Time   `json:"left"`
}

// leave keeps a place's locator accepted for the grace time. Where there are too many the oldest goes.
func (p *Places) leave(old *Place) {
	p.former = append(p.former, Former{Locator: old.Locator, Uplink: old.Uplink, Certificate: old.Certificate, Left: time.Now()})
	p.makeRoom()
	p.graceFrom(time.Now())
}

// makeRoom drops the oldest locators until all fit the edge, with room for one more.
func (p *Places) makeRoom() {
	for len(p.former) > 0 && len(p.list)+len(p.former) >= maxLocators {
		p.Log.Info("too many former locators; the oldest is given up", "locator", p.former[0].Locator)
		p.edge.AcceptLocator(p.former[0].Locator, false) //nolint:errcheck // it is given up whatever the edge says
		p.former = p.former[1:]
	}
}

// regain takes the locators that the host has again off the list.
func (p *Places) regain() {
	p.former = slices.DeleteFunc(p.former, func(f Former) bool { return p.Has(f.Locator) })
}

// graceFrom looks again when the grace time of what was left at that time is over.
func (p *Places) graceFrom(left time.Time) {
	time.AfterFunc(time.Until(left.Add(oldLocatorGrace)), func() { p.Post(p.endGrace) })
}

// endGrace drops the locators whose time is over. One that a peer still knows a flow by stays longer.
func (p *Places) endGrace() {
	if p.edge == nil {
		return
	}
	var again bool
	p.former = slices.DeleteFunc(p.former, func(f Former) bool {
		age := time.Since(f.Left)
		if age < oldLocatorGrace {
			return false
		}
		if age < oldLocatorLimit && p.Flows.Holds(f.Locator) {
			again = true
			return false
		}
		p.edge.AcceptLocator(f.Locator, false) //nolint:errcheck // as above
		return true
	})
	if again {
		p.graceFrom(time.Now())
	}
	p.TellTrust()
	p.unsaved = true
}
