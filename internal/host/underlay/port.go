package underlay

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// PortPrefix begins the names of all interfaces that are tunnels.
const PortPrefix = "sct"

// A Port is the Ethernet interface at one end of a tunnel: a VXLAN device that knows one other end, or the TAP device
// of a process that does the same.
type Port struct {
	Name          string     `json:"name"`
	Number        uint32     `json:"number"` // of the tunnel, as VXLAN's network identifier
	Local, Remote netip.Addr // of the outer packets
	UDP           uint16     `json:"udp"` // destination port of the outer packets, and where they are taken
	MTU           int        `json:"mtu"`
	Whole         bool       `json:"whole"` // outer packets of IPv4 are not cut on their way: for finding out what fits
	Note          string     `json:"note"`  // for the next daemon, and for people who run ip link
}

// Make creates the interface, set down. With into, an open network namespace, it appears there, while its outer
// packets stay in the namespace of the calling thread.
func (p Port) Make(into int) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	p.describe(req, true, into)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("make the tunnel %s to %v: %w", p.Name, p.Remote, err)
	}
	return nil
}

// Turn leads the interface to other addresses, without a moment of being down.
func (p Port) Turn() error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	p.describe(req, false, -1)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("turn the tunnel %s to %v: %w", p.Name, p.Remote, err)
	}
	return nil
}

// describe writes the interface into a request. The port and its options cannot be changed later.
func (p Port) describe(req *nl.NetlinkRequest, fresh bool, into int) {
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(p.Name)))
	if fresh {
		req.AddData(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(p.MTU))))
	}
	if into >= 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(into))))
	}
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("vxlan"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_VXLAN_ID, nl.Uint32Attr(p.Number))
	local, remote := nl.IFLA_VXLAN_LOCAL6, nl.IFLA_VXLAN_GROUP6
	if p.Remote.Is4() {
		local, remote = nl.IFLA_VXLAN_LOCAL, nl.IFLA_VXLAN_GROUP
	}
	data.AddRtAttr(local, p.Local.AsSlice())
	data.AddRtAttr(remote, p.Remote.AsSlice())
	if fresh {
		data.AddRtAttr(nl.IFLA_VXLAN_LEARNING, []byte{0})
		data.AddRtAttr(nl.IFLA_VXLAN_PORT, []byte{byte(p.UDP >> 8), byte(p.UDP)})
		data.AddRtAttr(nl.IFLA_VXLAN_UDP_ZERO_CSUM6_RX, []byte{1})
		whole := byte(0)
		if p.Whole {
			whole = 1
		}
		data.AddRtAttr(unix.IFLA_VXLAN_DF, []byte{whole})
	}
	req.AddData(info)
}

// ownAddress has the kernel make a link-local address, whatever it does elsewhere, and use it at once.
var ownAddress = map[string]string{"disable_ipv6": "0", "addr_gen_mode": "0", "accept_dad": "0", "accept_ra": "0"}

// Start sets the interface up. Its link-local address serves at once: nobody but the two ends is on the link.
func (p Port) Start() error {
	note := p.Note + numberNote + strconv.FormatUint(uint64(p.Number), 10)
	if !p.Whole {
		note += cutNote // the kernel's answer to a list does not say it
	}
	link, err := netlink.LinkByName(p.Name)
	if err == nil {
		for key, value := range ownAddress {
			os.WriteFile("/proc/sys/net/ipv6/conf/"+p.Name+"/"+key, []byte(value), 0) //nolint:errcheck // it is found out when the far end does not answer
		}
		err = errors.Join(netlink.LinkSetMTU(link, p.MTU), netlink.LinkSetAlias(link, note), netlink.LinkSetUp(link))
	}
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("set up the tunnel %s: another program of this machine has UDP port %d, which VXLAN needs at both ends (`ss -ulnp` names it); a tunnel of kind wireguard takes any port", p.Name, p.UDP)
	case err != nil:
		return fmt.Errorf("set up the tunnel %s: %w", p.Name, err)
	}
	return nil
}

// SetMTU changes what the interface carries.
func SetMTU(name string, mtu int) error {
	link, err := netlink.LinkByName(name)
	if err == nil && link.Attrs().MTU != mtu {
		err = netlink.LinkSetMTU(link, mtu)
	}
	if err != nil {
		return fmt.Errorf("set the MTU of %s to %d: %w", name, mtu, err)
	}
	return nil
}

// Ports are all tunnels of the namespace, also those that an earlier process has made.
func Ports() (list []Port, err error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the tunnels: %w", err)
	}
	for _, l := range links {
		a := l.Attrs()
		if !strings.HasPrefix(a.Name, PortPrefix) || !strings.HasPrefix(a.Alias, notePrefix) {
			continue
		}
		p := Port{Name: a.Name, MTU: a.MTU, Note: strings.TrimSuffix(a.Alias, cutNote), Whole: !strings.HasSuffix(a.Alias, cutNote)}
		switch l := l.(type) {
		case *netlink.Vxlan:
			p.Number, p.UDP = uint32(l.VxlanId), uint16(l.Port)
			p.Local, _ = netip.AddrFromSlice(l.SrcAddr)
			p.Remote, _ = netip.AddrFromSlice(l.Group)
			p.Local, p.Remote = p.Local.Unmap(), p.Remote.Unmap()
			p.Note, _ = splitNumber(p.Note)
		case *netlink.Tuntap:
			p.Note, p.Number = splitNumber(p.Note)
		default:
			continue
		}
		list = append(list, p)
	}
	return list, nil
}

// There reports whether an interface is.
func There(name string) bool {
	_, err := netlink.LinkByName(name)
	return err == nil
}

// Remove takes an interface away; one that is not there is no matter.
func Remove(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove the tunnel %s: %w", name, err)
	}
	return nil
}

// LinkLocal is the address of an interface on its link, not valid while it has none.
func LinkLocal(name string) netip.Addr {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return netip.Addr{}
	}
	all, _ := netlink.AddrList(link, netlink.FAMILY_V6)
	for _, a := range all {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && ip.IsLinkLocalUnicast() {
			return ip
		}
	}
	return netip.Addr{}
}

// linkLocalTime is how long the kernel may take to give an interface that is up its address.
const linkLocalTime = 500 * time.Millisecond

// AwaitLinkLocal is LinkLocal once there is one; not valid where there is none in time.
func AwaitLinkLocal(name string) netip.Addr {
	if ll := LinkLocal(name); ll.IsValid() {
		return ll
	}
	news, done := make(chan netlink.AddrUpdate, 16), make(chan struct{})
	if err := netlink.AddrSubscribe(news, done); err != nil {
		return LinkLocal(name)
	}
	defer func() {
		close(done)
		go func() { // lets go of who sends
			for range news {
			}
		}()
	}()
	limit := time.After(linkLocalTime)
	for {
		if ll := LinkLocal(name); ll.IsValid() { // it may have come before we listened
			return ll
		}
		select {
		case _, ok := <-news:
			if !ok {
				return LinkLocal(name)
			}
		case <-limit:
			return netip.Addr{}
		}
	}
}

// notePrefix begins the notes on our interfaces.
const notePrefix = "scaffold tunnel"

// numberNote precedes the number of a tunnel.
const numberNote = " number="

// splitNumber takes the number off a note.
func splitNumber(s string) (note string, number uint32) {
	note, text, _ := strings.Cut(s, numberNote)
	n, _ := strconv.ParseUint(text, 10, 32) // none: a tunnel without a number is nobody's, and made anew
	return note, uint32(n)
}

// cutNote marks an interface whose outer packets may be cut.
const cutNote = " cut"

// Note is what an interface says of its tunnel: whose it is, of which of his uplinks, and of which kind.
func Note(host, uplink string, kind Kind) string {
	return fmt.Sprintf("%s host=%s uplink=%s kind=%s", notePrefix, host, uplink, kind)
}

// ParseNote reads a Note.
func ParseNote(s string) (host, uplink string, kind Kind, ok bool) {
	rest, ok := strings.CutPrefix(s, notePrefix+" ")
	if !ok {
		return "", "", "", false
	}
	for word := range strings.FieldsSeq(rest) {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "host":
			host = value
		case "uplink":
			uplink = value
		case "kind":
			kind = Kind(value)
		}
	}
	return host, uplink, kind, host != "" && kind.known()
}
