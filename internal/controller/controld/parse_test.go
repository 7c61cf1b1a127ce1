package controld

import (
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

func parseLocator(s string) sid.Locator { return sid.LocatorOf(netip.MustParsePrefix(s).Addr()) }
