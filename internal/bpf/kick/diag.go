package kick

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/ktime"
)

// eachDiag calls f with the wanted sockets of the calling thread's namespace, from sock_diag.
func eachDiag(want Set, f func(*Socket) error) error {
	now := monotonic()
	all, err := netlink.SocketDiagTCPInfo(unix.AF_INET6)
	if err != nil {
		return fmt.Errorf("kick: ask sock_diag for TCP sockets: %w", err)
	}
	for _, d := range all {
		if d.InetDiagMsg == nil || d.TCPInfo == nil || !listed(d.InetDiagMsg.State) {
			continue
		}
		t := diagTuple(d.InetDiagMsg)
		if !want.has(t) {
			continue
		}
		s := diagSocket(t, d)
		s.At = now
		if err := f(&s); err != nil {
			return err
		}
	}
	return nil
}

// listed says whether the iterator would show a socket in this state, too.
func listed(state uint8) bool {
	_, ok := stateNames[State(state)]
	return ok
}

func diagTuple(m *netlink.Socket) Tuple {
	return Tuple{
		Local: netip.AddrPortFrom(addr16(m.ID.Source), m.ID.SourcePort),
		Peer:  netip.AddrPortFrom(addr16(m.ID.Destination), m.ID.DestinationPort),
	}
}

func addr16(ip net.IP) netip.Addr {
	var b [16]byte
	copy(b[:], ip.To16())
	return netip.AddrFrom16(b)
}

// Numbers of sock_diag and of tcp_info.
const (
	diagRetransmit  = 1
	diagProbe       = 4
	infoTimestamps  = 1
	infoSACK        = 2
	infoWindowScale = 4
)

// diagSocket counts sequence numbers from zero in both directions: only their differences are known.
func diagSocket(t Tuple, d *netlink.InetDiagTCPInfoResp) Socket {
	m, i := d.InetDiagMsg, d.TCPInfo
	micros := func(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }
	return Socket{
		Tuple: t, Cookie: uint64(m.ID.Cookie[0]) | uint64(m.ID.Cookie[1])<<32, State: State(m.State),
		SndNxt: m.WQueue - min(m.WQueue, i.Notsent_bytes), Written: m.WQueue, SndWnd: i.Snd_wnd,
		RcvNxt:   m.RQueue,
		SndShift: i.Snd_wscale, RcvShift: i.Rcv_wscale,
		WindowScale: i.Options&infoWindowScale != 0, SACK: i.Options&infoSACK != 0, Timestamps: i.Options&infoTimestamps != 0,
		MSS: i.Snd_mss, AdvMSS: i.Advmss,
		Timer: diagTimer(m.Timer), Due: time.Duration(m.Expires) * time.Millisecond,
		Backoff: i.Backoff, Retransmits: i.Retransmits, Probes: i.Probes,
		RTO: micros(i.Rto), SRTT: micros(i.Rtt), RTTVar: micros(i.Rttvar),
		Cwnd: i.Snd_cwnd, PacketsOut: i.Unacked, RetransOut: i.Retrans, TotalRetrans: i.Total_retrans,
		BytesAcked: i.Bytes_acked, BytesReceived: i.Bytes_received, Congestion: i.Ca_state,
	}
}

func diagTimer(n uint8) Timer {
	switch n {
	case diagRetransmit: // or a loss probe: sock_diag does not tell them apart
		return Retransmit
	case diagProbe:
		return WindowProbe
	}
	return NoTimer
}

func monotonic() time.Duration { return time.Duration(ktime.Now()) }
