package oftables

import (
	"errors"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestOpenVSwitchAnswersForItsRouter: a host's kernel that has no answer any more drops the router, and everything that
// goes by it. Nobody is connected with the switch.
func TestOpenVSwitchAnswersForItsRouter(t *testing.T) {
	for name, o := range kinds {
		if !o.Extensions {
			continue
		}
		t.Run(name, func(t *testing.T) {
			sw, host := nstest.New(t, "switch"), nstest.New(t, "host")
			ovs := sw.NewOVS(t)
			socket := ovs.Bridge(t, "s1", protocols[o.Version])
			nstest.Veth(t, sw, "p1", host, "up")
			sw.Sysctl(t, "net/ipv6/conf/p1/disable_ipv6", "1")
			ovs.Vsctl(t, "add-port", "s1", "p1", "--", "set", "interface", "p1", "ofport_request=1")
			r, tables := dial(t, ovs, socket), demo(o)
			r.tell(t, tables.Drain())
			r.holds(t, tables)
			r.Close()

			router := LinkLocal(routerMAC).String()
			known := func() error {
				out := host.Run(t, "ip", "-6", "neigh", "show", router, "dev", "up")
				if out == "" { // the host had no address yet to ask from; nobody answers the ping: the router's own stack is away
					host.Try("ping", "-6", "-c", "1", "-W", "1", router+"%up")
				}
				if !strings.Contains(out, "lladdr "+routerMAC.String()) || !strings.Contains(out, "router REACHABLE") {
					return errors.New("the host has " + out)
				}
				return nil
			}
			nstest.Wait(t, "asked by everybody's address", known)
			host.Run(t, "ip", "-6", "neigh", "change", router, "lladdr", routerMAC.String(), "dev", "up", "nud", "probe")
			nstest.Wait(t, "asked by the router's address, as the kernel does what it knows", known)
		})
	}
}
