package agent

import (
	"errors"
	"fmt"
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/sid"
)

// Place reads where the controller puts the router.
func Place(j *apiv1.RouterJoined) (space sid.Space, own sid.Locator, err error) {
	var errs [4]error
	space.Services, errs[0] = netip.ParsePrefix(j.GetSpace().GetServices())
	space.AS, errs[1] = netip.ParsePrefix(j.GetSpace().GetAs())
	space.Identities, errs[2] = netip.ParsePrefix(j.GetSpace().GetIdentities())
	own, errs[3] = parseLocator(j.Locator)
	if err := errors.Join(errs[:]...); err != nil {
		return space, 0, err
	}
	if !space.Owns(own) {
		return space, 0, fmt.Errorf("locator %v is not in %v", own, space.AS)
	}
	return space, own, space.Validate()
}

// parseLocator reads a prefix of 64 bits, or any address in it.
func parseLocator(s string) (sid.Locator, error) {
	if p, err := netip.ParsePrefix(s); err == nil && p.Bits() == sid.LocatorBits {
		return sid.LocatorOf(p.Addr()), nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() {
		return 0, fmt.Errorf("locator %q: want an IPv6 prefix of 64 bits", s)
	}
	return sid.LocatorOf(a), nil
}

// Limits turns the times of the controller into numbers of probes that are sent every so many milliseconds.
func Limits(j *apiv1.RouterJoined, everyMs uint32) (l liveness.Limits) {
	l.Suspect = max(1, j.SuspectAfter)
	l.Gone = max(l.Suspect+1, j.GoneAfterMs/max(1, everyMs))
	return l
}
