package sockets

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// Flags of a row of socks, as in sockets.h.
const (
	sockExplicit   = 1
	sockRegistered = 2
)

// Dump returns a Register event for every socket that serves now, also those from before the hooks,
// whose end will be reported from now on. Events of Read that follow refer to the state after it.
func (host *Host) Dump() ([]Event, error) {
	host.lost = host.lostNow()
	// A socket may close between the look at it and the entry of its row, and nobody would remove the
	// row. So the rows are entered first, and what a second look does not show again is taken back.
	entered := map[uint64]bool{}
	err := host.each(func(proto sid.Proto, s DiagSocket) error {
		fresh, err := host.enter(proto, s)
		entered[s.Cookie] = entered[s.Cookie] || fresh
		return err
	})
	if err != nil {
		return nil, err
	}
	var events []Event
	err = host.each(func(proto sid.Proto, s DiagSocket) error {
		delete(entered, s.Cookie)
		if e, ok := host.registered(proto, s); ok {
			events = append(events, e)
		}
		return nil
	})
	for cookie, fresh := range entered {
		if fresh {
			host.hooks.maps.Socks.Delete(cookie) //nolint:errcheck // closed meanwhile: it is gone
		}
	}
	return events, err
}

// each visits the listeners and the unconnected datagram sockets on service addresses.
func (host *Host) each(f func(sid.Proto, DiagSocket) error) error {
	var first error
	visit := func(proto sid.Proto) func(DiagSocket) {
		return func(s DiagSocket) {
			wild := host.wild && proto == sid.TCP && s.Local.Addr() == netip.IPv6Unspecified()
			if first == nil && (wild || host.prefix.Contains(s.Local.Addr())) {
				first = f(proto, s)
			}
		}
	}
	err := host.diag.Each(sid.TCP, StateListen, 0, visit(sid.TCP))
	return errors.Join(err, host.diag.Each(sid.UDP, StateClose, 0, visit(sid.UDP)), first)
}

// enter marks the socket's row as registered, or makes one.
func (host *Host) enter(proto sid.Proto, s DiagSocket) (fresh bool, err error) {
	var row hooksSockRow
	socks := host.hooks.maps.Socks
	if err := socks.Lookup(s.Cookie, &row); err == nil {
		if row.Flags&sockRegistered != 0 || proto == sid.UDP && row.Flags&sockExplicit == 0 {
			return false, nil
		}
		row.Flags |= sockRegistered
		return false, ignoreMissing(socks.Update(s.Cookie, &row, ebpf.UpdateExist))
	}
	row = hooksSockRow{Netns: host.netns, Addr: s.Local.Addr().As16(), Port: s.Local.Port(), Proto: uint8(proto), Flags: sockExplicit | sockRegistered}
	if proto == sid.UDP && ephemeral(s.Local.Port()) {
		row.Flags = 0 // the kernel chose the port, as far as one can tell now
	}
	err = socks.Update(s.Cookie, &row, ebpf.UpdateNoExist)
	if errors.Is(err, ebpf.ErrKeyExist) {
		return false, nil // the hooks were quicker
	}
	if err != nil {
		return false, fmt.Errorf("enter socket %v/%d: %w", s.Local.Addr(), s.Local.Port(), err)
	}
	return true, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

func (host *Host) registered(proto sid.Proto, s DiagSocket) (Event, bool) {
	var row hooksSockRow
	if err := host.hooks.maps.Socks.Lookup(s.Cookie, &row); err != nil || row.Flags&sockRegistered == 0 {
		return Event{}, false
	}
	return Event{
		Kind: Register, Cookie: s.Cookie, Proto: proto, Addr: s.Local.Addr(), Port: s.Local.Port(),
		PID: row.Pid, Comm: unix.ByteSliceToString(row.Comm[:]), ExitCode: -1,
	}, true
}

// ephemeral reports whether the kernel hands out the port by itself.
func ephemeral(port uint16) bool {
	low, high := 32768, 60999
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		fmt.Sscan(strings.TrimSpace(string(b)), &low, &high) //nolint:errcheck // what cannot be read stays as Linux has it
	}
	return int(port) >= low && int(port) <= high
}
