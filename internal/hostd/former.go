package hostd

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

// A former is a locator that the host had.
type former struct {
	Locator     sid.Locator `json:"locator"`
	Uplink      string      `json:"uplink"`
	Certificate []byte      `json:"certificate,omitempty"`
	Left        time.Time   `json:"left"`
}

// leave keeps a place's locator accepted for the grace time. Where there are too many the oldest goes.
func (d *daemon) leave(p *place) {
	d.former = append(d.former, former{Locator: p.Locator, Uplink: p.Uplink, Certificate: p.Certificate, Left: time.Now()})
	d.makeRoom()
	d.graceFrom(time.Now())
}

// makeRoom drops the oldest locators until all fit the edge, with room for one more.
func (d *daemon) makeRoom() {
	for len(d.former) > 0 && len(d.places)+len(d.former) >= maxLocators {
		d.log.Info("too many former locators; the oldest is given up", "locator", d.former[0].Locator)
		d.edge.AcceptLocator(d.former[0].Locator, false)
		d.former = d.former[1:]
	}
}

// regain takes the locators that the host has again off the list.
func (d *daemon) regain() {
	d.former = slices.DeleteFunc(d.former, func(f former) bool { return d.has(f.Locator) })
}

// has reports whether the locator is one of the host's now.
func (d *daemon) has(l sid.Locator) bool {
	return slices.ContainsFunc(d.places, func(p place) bool { return p.Locator == l })
}

// graceFrom looks again when the grace time of what was left at that time is over.
func (d *daemon) graceFrom(left time.Time) {
	time.AfterFunc(time.Until(left.Add(oldLocatorGrace)), func() { d.post(d.endGrace) })
}

// endGrace drops the locators whose time is over. One that a peer still knows a flow by stays longer.
func (d *daemon) endGrace() {
	if d.edge == nil {
		return
	}
	var again bool
	d.former = slices.DeleteFunc(d.former, func(f former) bool {
		age := time.Since(f.Left)
		if age < oldLocatorGrace {
			return false
		}
		if age < oldLocatorLimit && d.sessions.holds(f.Locator) {
			again = true
			return false
		}
		d.edge.AcceptLocator(f.Locator, false)
		return true
	})
	if again {
		d.graceFrom(time.Now())
	}
	d.tellTrust()
	d.unsaved = true
}
