package places

import (
	"fmt"
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// maxText bounds identifiers, versions and interfaces' names, in bytes: records are kept in memory and in the store, which
// would refuse one of a megabyte, and with it everything else, for ever.
const maxText = 256

// CheckJoin says what of a host's Join is out of bounds.
func CheckJoin(j *apiv1.Join) error {
	for what, text := range map[string]string{
		"boot id": j.BootId, "network namespace": j.Netns, "version": j.Version, "key": string(j.Key),
	} {
		if len(text) > maxText {
			return fmt.Errorf("%s of %d bytes: at most %d", what, len(text), maxText)
		}
	}
	if len(j.Others) >= Most {
		return fmt.Errorf("%d further uplinks: a host has at most %d places", len(j.Others), Most)
	}
	for _, o := range j.Others {
		if err := check(o.Attachment, o.Locator); err != nil {
			return err
		}
	}
	return check(j.Attachment, j.Locator)
}

// check says what is out of bounds of where an uplink is, and of the locator that it asks for.
func check(a *apiv1.Attachment, locator string) error {
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
