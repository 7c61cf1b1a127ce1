package emubench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"scaffold.dev/scaffold/bench/place"
)

// A Chain is two hosts with routers in a row between them, of one kind or another.
type Chain struct {
	Kind    string
	Routers int
	from    *place.Place // the host that sends
	to      *place.Place // the host that receives
	engine  *Engine      // of ours
	cleanup []func()
}

// Close ends all that the chain is made of.
func (c *Chain) Close() {
	for i := len(c.cleanup) - 1; i >= 0; i-- {
		c.cleanup[i]()
	}
}

// made is the chain, or nothing where it could not be made.
func (c *Chain) made(err error) (*Chain, error) {
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// later has something done at the end, the last first.
func (c *Chain) later(f func()) { c.cleanup = append(c.cleanup, f) }

// Link i of a chain is between its nodes i and i+1, whose addresses end in 1 and 2.
const (
	left  = 1
	right = 2
)

// address is that of one end of link i.
func address(i, end int) netip.Addr {
	a := netip.MustParseAddr("fd5f::").As16()
	a[6], a[7], a[15] = byte(i>>8), byte(i), byte(end)
	return netip.AddrFrom16(a)
}

// network is the prefix of link i.
func network(i int) netip.Prefix { return netip.PrefixFrom(address(i, 0), 64) }

// target is what the sending host sends to.
func (c *Chain) target() netip.AddrPort {
	return netip.AddrPortFrom(address(c.Routers, right), loadPort)
}

// hopLimit of the hosts' packets: the default would end at the 64th router.
const hopLimit = 255

// hostTold is what ip(8) is told in one of the two hosts.
func hostTold(dev string, own, via netip.Addr) []string {
	return []string{
		"link set lo up",
		"link set " + dev + " up",
		fmt.Sprintf("addr add %v/64 dev %s nodad", own, dev),
		fmt.Sprintf("route add default via %v dev %s hoplimit %d", via, dev, hopLimit),
	}
}

// told is what ip(8) is told at node i of a chain of n routers, whose interfaces are called left and right.
func told(i, n int) []string {
	switch i {
	case 0:
		return hostTold("right", address(0, left), address(0, right))
	case n + 1:
		return hostTold("left", address(n, right), address(n, left))
	}
	all := []string{
		"link set lo up", "link set left up", "link set right up",
		fmt.Sprintf("addr add %v/64 dev left nodad", address(i-1, right)),
		fmt.Sprintf("addr add %v/64 dev right nodad", address(i, left)),
	}
	if i > 1 {
		all = append(all, fmt.Sprintf("route add %v via %v dev left", network(0), address(i-1, left)))
	}
	if i < n {
		all = append(all, fmt.Sprintf("route add %v via %v dev right", network(n), address(i, right)))
	}
	return all
}

// roomy are buffers that hold what is on its way at 10 Gbit/s and 20 ms, of both hosts.
var roomy = map[string]string{
	"ipv4/tcp_rmem":            "4096 1048576 268435456",
	"ipv4/tcp_wmem":            "4096 1048576 268435456",
	"ipv4/tcp_no_metrics_save": "1",
}

// ready makes the hosts ready and waits until packets pass.
func (c *Chain) ready(ctx context.Context) error {
	if err := errors.Join(c.from.Set(roomy), c.to.Set(roomy)); err != nil {
		return err
	}
	if err := c.meet(ctx); err != nil {
		return fmt.Errorf("%s, %d routers: %w", c.Kind, c.Routers, err)
	}
	return nil
}
