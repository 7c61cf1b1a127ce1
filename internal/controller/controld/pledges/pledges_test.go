package pledges

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/controller/store"
)

// A clock is set by the test.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func empty() (*clock, *Pledges) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	return c, New(c.now)
}

func TestALocatorIsKeptForItsHostAsLongAsACertificateCounts(t *testing.T) {
	c, p := empty()
	_, valid := p.Give(7, "s1", 24*time.Hour)
	if valid != NewcomerFor || p.Holder(7) != "s1" || p.Left(7, "s2") != 0 {
		t.Fatalf("valid for %v, held by %q", valid, p.Holder(7))
	}
	c.at = c.at.Add(valid + api.JoinSkew)
	if p.Holder(7) != "s1" || p.Left(7, "s1") == 0 {
		t.Error("it is given away while a clock that is late takes the certificate")
	}
	c.at = c.at.Add(2 * time.Second)
	if p.Holder(7) != "" || p.Left(7, "s1") != 0 {
		t.Error("it is kept for ever")
	}
}

func TestWhoStaysGetsLongerCertificates(t *testing.T) {
	c, p := empty()
	p.Give(7, "s1", 24*time.Hour)
	c.at = c.at.Add(5 * time.Hour)
	if !p.Due(7) {
		t.Error("a certificate that has ended is not due")
	}
	if _, valid := p.Give(7, "s1", 24*time.Hour); valid != 5*time.Hour || p.Due(7) {
		t.Errorf("valid for %v, due: %v", valid, p.Due(7))
	}
	if _, valid := p.Give(7, "s2", 24*time.Hour); valid != NewcomerFor {
		t.Errorf("another host's is valid for %v", valid)
	}
}

func TestAForgottenHostsNameHoldsNothing(t *testing.T) {
	_, p := empty()
	p.Give(7, "s1", time.Hour)
	if changed := p.Rename("s1", "s1 (forgotten)"); len(changed) != 1 || p.Holder(7) != "s1 (forgotten)" {
		t.Errorf("%v changed, held by %q", changed, p.Holder(7))
	}
}

func TestWhatWasPledgedIsReadAndAVersionBeforeIsHonouredOnce(t *testing.T) {
	_, p := empty()
	state := store.State{Hosts: []store.Host{{Name: "s1", Place: store.Place{Locator: 7}}}}
	changed := p.Restore(state, time.Hour)
	if len(changed) != 2 || changed[1].Locator != 0 || p.Holder(7) != "s1" {
		t.Fatalf("to be saved are %v, held by %q", changed, p.Holder(7))
	}
	state.Pledges = changed[1:]
	if _, p = empty(); len(p.Restore(state, time.Hour)) != 0 || p.Holder(7) != "" {
		t.Error("they are honoured again")
	}
	if _, p = empty(); len(p.Restore(store.State{Hosts: state.Hosts}, 0)) != 0 || len(p.All()) != 0 {
		t.Error("an open network has pledged something")
	}
}
