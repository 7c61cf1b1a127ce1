package divert

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// rulePriority is that of our rules: before those of others that tell by marks, after the table of local addresses.
const rulePriority = 95

// A network is what the namespace needs beside programs: by a rule for each port and family what they mark is local.
//
// The rule names the port, so that the kernel's look at the source of a packet (rp_filter, with src_valid_mark) does not
// meet it: it would find every source to be this machine.
type network struct {
	cfg   Config
	saved *ebpf.Map
	ns    *os.File
}

func openNetwork(cfg Config, saved *ebpf.Map) (*network, error) {
	ns, err := nsenter.Here()
	if err != nil {
		return nil, err
	}
	return &network{cfg, saved, ns}, nil
}

// inside calls f in the agent's namespace, from whatever thread.
func (n *network) inside(f func() error) error { return nsenter.Visit(n.ns, f) }

func (n *network) set() error {
	if err := n.sweepRules(); err != nil {
		return err
	}
	for _, family := range families() {
		if err := n.setFamily(family); err != nil {
			return err
		}
	}
	return n.setSysctls()
}

// families are those that the kernel has.
func families() []int {
	if _, err := os.Stat("/proc/sys/net/ipv6"); err != nil {
		return []int{netlink.FAMILY_V4}
	}
	return []int{netlink.FAMILY_V4, netlink.FAMILY_V6}
}

func (n *network) setFamily(family int) error {
	if err := netlink.RouteReplace(n.route(family)); err != nil {
		return fmt.Errorf("route in table %d, in which every address is local: %w", n.cfg.Table, err)
	}
	for _, port := range n.cfg.Ports {
		r, err := n.rule(family, port)
		if err != nil {
			return err
		}
		if err := netlink.RuleAdd(r); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("rule for mark %#x at %s: %w", n.cfg.Mark, r.IifName, err)
		}
	}
	return nil
}

func (n *network) route(family int) *netlink.Route {
	everything := &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
	if family == netlink.FAMILY_V6 {
		everything = &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
	}
	lo, _ := net.InterfaceByName("lo") // hooksOf tells where there is none
	r := &netlink.Route{Family: family, Dst: everything, Table: n.cfg.Table, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST}
	if lo != nil {
		r.LinkIndex = lo.Index
	}
	return r
}

func (n *network) rule(family, port int) (*netlink.Rule, error) {
	i, err := net.InterfaceByIndex(port)
	if err != nil {
		return nil, fmt.Errorf("port %d: %w", port, err)
	}
	r := netlink.NewRule()
	r.Family, r.Priority, r.Table, r.Mark, r.IifName = family, rulePriority, n.cfg.Table, n.cfg.Mark, i.Name
	return r, nil
}

// sweepRules removes our rules, an agent's that was killed among them, perhaps of other ports.
func (n *network) sweepRules() error {
	var errs []error
	for _, family := range families() {
		all, err := netlink.RuleList(family)
		if err != nil {
			return fmt.Errorf("list the rules: %w", err)
		}
		for _, r := range all {
			if r.Priority == rulePriority && r.Table == n.cfg.Table {
				r.Family = family
				errs = append(errs, netlink.RuleDel(&r))
			}
		}
	}
	return errors.Join(errs...)
}

func (n *network) sweepRoutes() error {
	var errs []error
	for _, family := range families() {
		if err := netlink.RouteDel(n.route(family)); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("route of table %d: %w", n.cfg.Table, err))
		}
	}
	return errors.Join(errs...)
}

// Of agents before: these numbers are those of a host's daemon, too (internal/host/routing), whose table has no route for every
// address and none that is local, and whose rules have other priorities. Agents have had numbers of their own since then.
const (
	formerMark  = 0x5cb0
	formerTable = 23728
)

// sweepFormer removes what an agent of a version before has left that was killed, and nothing that only looks like a part of it.
// What cannot be removed, or somebody removes meanwhile, does no harm, for nothing marks packets for it any more: an agent that
// did not start for its sake would.
func (n *network) sweepFormer() {
	for _, family := range families() {
		rules, _ := netlink.RuleList(family)
		for _, r := range rules {
			if r.Priority == rulePriority && r.Table == formerTable && r.Mark == formerMark && r.IifName != "" {
				r.Family = family
				_ = netlink.RuleDel(&r)
			}
		}
		routes, _ := netlink.RouteListFiltered(family, &netlink.Route{Table: formerTable}, netlink.RT_FILTER_TABLE)
		for _, r := range routes {
			if r.Type == unix.RTN_LOCAL && everything(r.Dst) && r.LinkIndex == n.route(family).LinkIndex {
				_ = netlink.RouteDel(&r)
			}
		}
	}
}

func everything(dst *net.IPNet) bool {
	if dst == nil {
		return true
	}
	ones, _ := dst.Mask.Size()
	return ones == 0
}

// restore undoes set, and lets go.
func (n *network) restore() error {
	err := n.inside(func() error { return errors.Join(n.sweepRules(), n.sweepRoutes(), n.restoreSysctls()) })
	return errors.Join(err, n.ns.Close())
}

// A sysctl of the namespace that an agent needs otherwise. Its place in the list is its number among those that are saved.
type sysctl struct{ name, value, better string } // better is left as it is

var sysctls = []sysctl{
	// What an error of ICMP says of a path's MTU may go past us, to who has the address.
	{"net/ipv4/tcp_mtu_probing", "1", "2"},
	// A client may use its port again before our socket to the server has forgotten the connection before.
	{"net/ipv4/tcp_tw_reuse", "1", ""},
	// The kernel looks for a socket of each segment before it knows whether that is for this machine, and drops what it forwards where
	// there is one (ip_forward, ip6_forward: skb->sk): a connection that passes would stand still while a socket of ours waits for late
	// segments of the one before between the same ports. It is for both families.
	{"net/ipv4/tcp_early_demux", "0", ""},
}

// stops are the versions of IP, 4 and 6, of which nothing passes this machine: that is for its administrator to decide.
func (n *network) stops() (list []uint32, err error) {
	err = n.inside(func() error {
		for _, f := range []struct {
			version uint32
			sysctl  string
		}{{4, "net/ipv4/ip_forward"}, {6, "net/ipv6/conf/all/forwarding"}} {
			switch is, err := readSysctl(f.sysctl); {
			case errors.Is(err, os.ErrNotExist): // a kernel without IPv6
			case err != nil:
				return err
			case is == "0":
				list = append(list, f.version)
			}
		}
		return nil
	})
	return list, err
}

func (n *network) setSysctls() error {
	for i, s := range sysctls {
		if err := n.setSysctl(uint32(i), s); err != nil {
			return err
		}
	}
	return nil
}

// setSysctl writes down what was before it changes anything. What a killed agent wrote down is older, and stays.
func (n *network) setSysctl(i uint32, s sysctl) error {
	is, err := readSysctl(s.name)
	if err != nil {
		return err
	}
	number, err := strconv.ParseUint(is, 10, 32)
	if err != nil {
		return fmt.Errorf("sysctl %s: %w", s.name, err)
	}
	var before uint64
	if err := n.saved.Lookup(i, &before); err != nil {
		return fmt.Errorf("what sysctl %s was before: %w", s.name, err)
	}
	if before == 0 {
		if err := n.saved.Put(i, number+1); err != nil {
			return fmt.Errorf("write down what sysctl %s was: %w", s.name, err)
		}
	}
	if is == s.value || is == s.better {
		return nil
	}
	return writeSysctl(s.name, s.value)
}

// restoreSysctls leaves alone what somebody else has changed meanwhile.
func (n *network) restoreSysctls() error {
	var errs []error
	for i, s := range slices.Backward(sysctls) {
		var before uint64
		if err := n.saved.Lookup(uint32(i), &before); err != nil || before == 0 {
			continue
		}
		if is, err := readSysctl(s.name); err == nil && is == s.value {
			errs = append(errs, writeSysctl(s.name, strconv.FormatUint(before-1, 10)))
		}
	}
	return errors.Join(errs...)
}

func readSysctl(name string) (string, error) {
	b, err := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(b)), err
}

func writeSysctl(name, value string) error {
	return os.WriteFile("/proc/sys/"+name, []byte(value), 0)
}
