package greeting

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

const ipv6HeaderLen, udpHeaderLen = header.IPv6Len, header.UDPLen

// onlyMessages lets pass IPv6 packets whose next header is UDP and whose destination port is ours.
var onlyMessages = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 6},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_UDP, Jf: 3},
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: ipv6HeaderLen + 2},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: sid.Port, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: wire.MaxLen + ipv6HeaderLen + udpHeaderLen},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
}

// meet makes the first router that greets on the link a neighbour by the MAC address that its HELLO came
// from. To ask for it costs another round trip, and a second where the question comes before the router's
// kernel listens for it. Only what follows tells whether the router is one: nothing is lost if not.
func meet(ctx context.Context, index int) error {
	f, err := frames(index)
	if err != nil {
		return err
	}
	defer f.Close()
	defer context.AfterFunc(ctx, func() { f.Close() })()
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, wire.MaxLen+ipv6HeaderLen+udpHeaderLen)
	for {
		var n int
		var from unix.Sockaddr
		var failed error
		err := c.Read(func(fd uintptr) bool {
			n, from, failed = unix.Recvfrom(int(fd), buf, 0)
			return failed != unix.EAGAIN
		})
		if err != nil || failed != nil {
			return err // closed, or the interface is gone
		}
		if router, ok := helloFrom(buf[:n]); ok {
			return introduce(index, router, from)
		}
	}
}

// frames opens a socket for the interface's messages with the addresses of the link.
func frames(index int) (*os.File, error) {
	protocol := uint16(header.EtherIPv6>>8 | header.EtherIPv6&0xff<<8) // network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("open a packet socket", err)
	}
	program := unix.SockFprog{Len: uint16(len(onlyMessages)), Filter: &onlyMessages[0]}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index})
	}
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("listen for frames", err)
	}
	return os.NewFile(uintptr(fd), "frames"), nil
}

// helloFrom is the link-local address that an IPv6 packet with a HELLO came from.
func helloFrom(packet []byte) (router netip.Addr, ok bool) {
	if len(packet) < ipv6HeaderLen+udpHeaderLen {
		return router, false
	}
	m, err := wire.Parse(packet[ipv6HeaderLen+udpHeaderLen:])
	if _, hello := m.(wire.Hello); err != nil || !hello {
		return router, false
	}
	router = header.IPv6(packet).Src()
	return router, router.IsLinkLocalUnicast()
}

// introduce enters the neighbour, to be confirmed by the kernel while it is in use: the router learns this
// host's own address by that. An entry that somebody made by hand stays.
func introduce(index int, router netip.Addr, from unix.Sockaddr) error {
	ll, ok := from.(*unix.SockaddrLinklayer)
	if !ok || ll.Halen != 6 {
		return nil // a link without addresses
	}
	known, err := netlink.NeighList(index, netlink.FAMILY_V6)
	if err != nil {
		return err
	}
	n := &netlink.Neigh{LinkIndex: index, Family: netlink.FAMILY_V6, State: netlink.NUD_PROBE, IP: router.AsSlice(), HardwareAddr: net.HardwareAddr(ll.Addr[:6])}
	if slices.ContainsFunc(known, func(o netlink.Neigh) bool { return o.IP.Equal(n.IP) && o.State&netlink.NUD_PERMANENT != 0 }) {
		return nil
	}
	return netlink.NeighSet(n)
}
