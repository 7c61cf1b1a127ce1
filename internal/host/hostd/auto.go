package hostd

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/host/tunnels"
	"scaffold.dev/scaffold/internal/host/underlay"
)

// AutoUplink in the place of uplinks leaves it to the daemon: every interface of Ethernet may lead to a router, and
// while none does there is a tunnel, if the controller is known.
const AutoUplink = "auto"

// findUplinks puts what is there in the place of "auto". Interfaces that come later wait for the next start.
func (c *Config) findUplinks() error {
	if len(c.Uplinks) != 1 || c.Uplinks[0] != AutoUplink {
		return nil
	}
	names, err := cables()
	if err != nil {
		return err
	}
	if len(c.Controllers) > 0 {
		name := tunnels.NameOf(0)
		names, c.tunnels, c.auto = append(names, name), map[string][]underlay.Kind{name: underlay.Kinds}, true
	}
	if len(names) == 0 {
		return errors.New("uplink auto: no interface of Ethernet is here to look for a router on, and no controller is named to ask for a tunnel (--controller http://HOST:PORT)")
	}
	c.Uplinks = names
	return nil
}

// cables are the interfaces that may lead to a router: Ethernet, their own masters, and not of tunnels.
func cables() (names []string, err error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("uplink auto: list the interfaces: %w", err)
	}
	for _, l := range links {
		a := l.Attrs()
		ether := a.EncapType == "ether" && a.Flags&net.FlagLoopback == 0 && l.Type() != "dummy"
		if ether && a.Name != underlay.OwnUplink && a.Name != underlay.OwnPort && a.MasterIndex == 0 && !strings.HasPrefix(a.Name, underlay.PortPrefix) {
			names = append(names, a.Name)
		}
	}
	return names, nil
}
