package controld

import (
	"fmt"
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// Bounds of what hosts and routers say. All of it is kept in memory, some in the store, which would
// refuse a record of a megabyte, and with it everything else, for ever.
const (
	maxText          = 256   // of an identifier, a version or an interface's name, in bytes
	maxReason        = 1024  // of a sentence
	maxRegistrations = 65536 // of one host
	maxLinks         = 1024  // of one router
	maxPlaces        = 16    // of one host: as many locators as its edge takes
)

// checkJoin says what of a host's Join is out of bounds.
func checkJoin(j *apiv1.Join) error {
	for what, text := range map[string]string{
		"boot id": j.BootId, "network namespace": j.Netns, "version": j.Version, "key": string(j.Key),
	} {
		if len(text) > maxText {
			return fmt.Errorf("%s of %d bytes: at most %d", what, len(text), maxText)
		}
	}
	if len(j.Others) >= maxPlaces {
		return fmt.Errorf("%d further uplinks: a host has at most %d places", len(j.Others), maxPlaces)
	}
	for _, o := range j.Others {
		if err := checkAttachment(o.Attachment, o.Locator); err != nil {
			return err
		}
	}
	return checkAttachment(j.Attachment, j.Locator)
}

// checkAttachment says what is out of bounds of where an uplink is, and of the locator that it asks for.
func checkAttachment(a *apiv1.Attachment, locator string) error {
	for what, text := range map[string]string{"port": a.GetPort(), "locator": locator, "link-local address": a.GetLinkLocal()} {
		if len(text) > maxText {
			return fmt.Errorf("%s of %d bytes: at most %d", what, len(text), maxText)
		}
	}
	if ll, err := netip.ParseAddr(a.GetLinkLocal()); err != nil || !ll.Is6() || !ll.IsLinkLocalUnicast() {
		return fmt.Errorf("attachment at %q: want the host's link-local address", a.GetLinkLocal())
	}
	if n := len(a.GetMac()); n != 0 && n != 6 {
		return fmt.Errorf("attachment with a MAC address of %d bytes: want 6, or none", n)
	}
	return nil
}

// checkLinks says what of a router's links is out of bounds.
func checkLinks(links []*apiv1.Neighbour) error {
	if len(links) > maxLinks {
		return fmt.Errorf("%d links: at most %d", len(links), maxLinks)
	}
	for _, l := range links {
		if max(len(l.Port), len(l.Peer), len(l.PeerPort), len(l.Via), len(l.Reason)) > maxText {
			return fmt.Errorf("a link with a text of more than %d bytes", maxText)
		}
	}
	return nil
}

// maxHostFlows is more flows than any edge has room for.
const maxHostFlows = 1 << 26

// checkLoad says what of a host's report cannot be. No weight follows from loads; drains and people look at them.
func (h *host) checkLoad(l *apiv1.Load) error {
	if c := l.GetCpu(); !(c >= 0 && c <= 1) { // NaN is neither
		return fmt.Errorf("a CPU busy to %v: want 0 to 1", c)
	}
	if l.Flows > maxHostFlows {
		return fmt.Errorf("%d flows: no host has more than %d", l.Flows, maxHostFlows)
	}
	if len(l.Triples) > maxRegistrations {
		return fmt.Errorf("%d instances: a host has at most %d", len(l.Triples), maxRegistrations)
	}
	for _, t := range l.Triples {
		if t.Flows > maxHostFlows || max(t.AcceptQueue, t.Backlog) > maxHostFlows {
			return fmt.Errorf("an instance with %d flows and %d of %d waiting: at most %d", t.Flows, t.AcceptQueue, t.Backlog, maxHostFlows)
		}
	}
	return nil
}

// shortened bounds a sentence from outside.
func shortened(s string) string { return s[:min(len(s), maxReason)] }
