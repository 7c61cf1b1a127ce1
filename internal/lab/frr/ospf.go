package frr

import (
	"cmp"
	"fmt"
	"strings"
)

func (o OSPF) filled() OSPF {
	o.Hello = cmp.Or(o.Hello, DefaultOSPF.Hello)
	o.Dead = cmp.Or(o.Dead, DefaultOSPF.Dead*o.Hello)
	o.SPF.Delay = cmp.Or(o.SPF.Delay, DefaultOSPF.SPF.Delay)
	o.SPF.Hold = cmp.Or(o.SPF.Hold, DefaultOSPF.SPF.Hold)
	o.SPF.Max = cmp.Or(o.SPF.Max, DefaultOSPF.SPF.Max)
	return o
}

func (o OSPF) check() error {
	switch {
	case o.Hello < 1 || o.Hello > 65535:
		return fmt.Errorf("OSPF says hello every %d s, want 1 to 65535", o.Hello)
	case o.Dead <= o.Hello || o.Dead > 65535:
		return fmt.Errorf("OSPF takes a neighbour for dead after %d s, want more than the %d s between hellos and at most 65535", o.Dead, o.Hello)
	case o.SPF.Delay < 0 || o.SPF.Hold < o.SPF.Delay || o.SPF.Max < o.SPF.Hold || o.SPF.Max > 600000:
		return fmt.Errorf("OSPF computes after %d, %d, %d ms: want delay <= hold <= max <= 600000", o.SPF.Delay, o.SPF.Hold, o.SPF.Max)
	case o.NoIPv4 && o.NoIPv6:
		return fmt.Errorf("OSPF neither for IPv4 nor for IPv6: leave it out")
	}
	return nil
}

// The least time between two versions of a link's state that are taken in, in milliseconds. FRR's default, 1 s,
// would make the second of two failures wait.
const minArrival = 10

func (c Config) ospf6() string {
	o, b := c.OSPF.filled(), &strings.Builder{}
	fmt.Fprintf(b, "hostname %s\n", c.Name)
	for _, p := range c.Ports {
		fmt.Fprintf(b, "interface %s\n ipv6 ospf6 area 0.0.0.0\n ipv6 ospf6 cost %d\n", p.Name, cmp.Or(p.Cost, DefaultCost))
		if p.Passive {
			b.WriteString(" ipv6 ospf6 passive\n")
		} else {
			fmt.Fprintf(b, " ipv6 ospf6 network point-to-point\n ipv6 ospf6 hello-interval %d\n ipv6 ospf6 dead-interval %d\n", o.Hello, o.Dead)
		}
		b.WriteString("exit\n")
	}
	fmt.Fprintf(b, "router ospf6\n ospf6 router-id %v\n timers throttle spf %d %d %d\n timers lsa min-arrival %d\n maximum-paths %d\n%sexit\n",
		c.id(), o.SPF.Delay, o.SPF.Hold, o.SPF.Max, minArrival, maxPaths, c.redistribute())
	return b.String()
}

func (c Config) ospf4() string {
	o, b := c.OSPF.filled(), &strings.Builder{}
	fmt.Fprintf(b, "hostname %s\n", c.Name)
	for _, p := range c.Ports {
		fmt.Fprintf(b, "interface %s\n ip ospf area 0.0.0.0\n ip ospf cost %d\n", p.Name, cmp.Or(p.Cost, DefaultCost))
		if p.Passive {
			b.WriteString(" ip ospf passive\n")
		} else {
			fmt.Fprintf(b, " ip ospf network point-to-point\n ip ospf hello-interval %d\n ip ospf dead-interval %d\n", o.Hello, o.Dead)
		}
		b.WriteString("exit\n")
	}
	fmt.Fprintf(b, "router ospf\n ospf router-id %v\n timers throttle spf %d %d %d\n timers throttle lsa all 0\n timers lsa min-arrival %d\n maximum-paths %d\n%sexit\n",
		c.id(), o.SPF.Delay, o.SPF.Hold, o.SPF.Max, minArrival, maxPaths, c.redistribute())
	return b.String()
}
