package agent

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A Storm is packets of one kind at a rate, as somebody makes them who is no member: put on the wire below all that
// the host's own kernel and edge would say to it, with keys of his own.
type Storm struct {
	Device  string
	Router  net.HardwareAddr // next hop
	Kind    string           // one of StormKinds
	From    netip.Prefix     // sources: its bits, and random ones
	To      []sid.Locator    // of the hosts that are flooded, in turn
	Service netip.AddrPort
	ID      sid.ServiceID
	Rate    int // packets a second
}

// StormKinds are what a Storm can be of.
var StormKinds = []string{"hello", "rsyn", "resume", "confirm", "ping", "probe", "datagram"}

// stormAHand is how many packets go out by one system call.
const stormAHand = 32

// Run sends for d and says how many went out and how long it took.
func (s *Storm) Run(ctx context.Context, d time.Duration) (r Result, err error) {
	t, err := s.template()
	if err != nil {
		return r, err
	}
	fd, err := openDevice(s.Device)
	if err != nil {
		return r, err
	}
	defer unix.Close(fd)
	h := newSheaf(t)
	return atRate(ctx, s.Device, d, s.Rate, stormAHand, func() (int, unix.Errno) {
		for _, f := range h.frames {
			t.vary(f)
		}
		return h.send(fd)
	})
}

// A stormTemplate is a frame and what differs between two of them.
type stormTemplate struct {
	frame  []byte
	next   byte // what the packet carries
	from   netip.Prefix
	to     []sid.Locator // nil: as in the frame
	random *rand.Rand
}

func (s *Storm) template() (*stormTemplate, error) {
	t := &stormTemplate{from: s.From, next: header.UDP, random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	dst, mac, sport, dport := s.Service.Addr(), s.Router, uint16(sid.Port), uint16(sid.Port)
	payload := make([]byte, 8)
	if s.Kind != "hello" && s.Kind != "resume" && s.Kind != "ping" {
		t.to = s.To
		if len(s.To) == 0 {
			return nil, fmt.Errorf("a storm of kind %s needs hosts", s.Kind)
		}
	}
	switch s.Kind {
	case "hello":
		dst, mac = netip.MustParseAddr("ff02::1"), net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}
		t.from = netip.MustParsePrefix("fe80::/64")
		payload = wire.Hello{Service: true, Name: "rs", Port: "p0", Locator: sid.LocatorOf(s.From.Addr())}.Append(nil)
	case "ping":
		t.next = header.ICMPv6
	case "probe":
		payload = wire.Probe{}.Append(nil)
	case "datagram":
		sport, dport = 1, 2
	case "rsyn", "resume", "confirm":
		payload = s.message().Append(nil)
	default:
		return nil, fmt.Errorf("no storms of %q: want one of %v", s.Kind, StormKinds)
	}
	t.frame = header.AppendEthernet(nil, mac, attackerMAC)
	t.frame = header.AppendIPv6(t.frame, netip.IPv6Unspecified(), dst, t.next, 64, header.UDPLen+len(payload))
	if t.next == header.UDP {
		t.frame = header.AppendUDP(t.frame, sport, dport, len(payload))
	} else {
		t.frame = append(t.frame, 128, 0, 0, 0, 0, 0, 0, 0) // echo request, RFC 4443 §4.1
	}
	t.frame = append(t.frame, payload...)
	return t, nil
}

// message is of the kind, with certificates and a signature of the right form by nobody's keys: to make true ones for
// each packet takes longer than to check them.
func (s *Storm) message() wire.Message {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	at := sid.LocatorOf(s.From.Addr())
	certificate := wire.Certify(key, key.Public().(ed25519.PublicKey), at, 0, 1<<40)
	auth := wire.Auth{Certificates: []wire.Certificate{certificate}, Signature: make([]byte, ed25519.SignatureSize)}
	claim := func() wire.Claim {
		return wire.Claim{Stable: at.Addr(uint64(sid.NewSocketID(rand.Uint64()))), Epoch: 1, Socket: sid.NewSocketID(rand.Uint64()), Quote: sid.NewSocketID(rand.Uint64())}
	}
	if s.Kind == "rsyn" {
		m := wire.Renegotiate{Kind: wire.TypeRSYN, Locator: at, Old: at, Auth: auth}
		for c := claim(); len(m.Claims) < wire.Room(1)/c.Len(); c = claim() {
			m.Claims = append(m.Claims, c)
		}
		return m
	}
	m := wire.Resume{Locator: at, Claim: claim(), Service: s.ID, Proto: sid.TCP, Auth: auth,
		Transport: wire.Transport{ClientPort: 1, ServerPort: s.Service.Port(), MSS: 1400}}
	if s.Kind == "resume" {
		m.Claim.Quote = 0
	}
	return m
}

// vary gives a packet another source, and where it goes to a socketID another one; then its checksum.
func (t *stormTemplate) vary(b []byte) {
	ip := b[ethLen:]
	from, bits := t.from.Addr().As16(), t.from.Bits()
	high, low := binary.BigEndian.Uint64(from[:]), t.random.Uint64()|1<<63
	if bits < 64 {
		high |= t.random.Uint64() & (1<<(64-bits) - 1)
	}
	binary.BigEndian.PutUint64(ip[8:], high)
	binary.BigEndian.PutUint64(ip[16:], low)
	if len(t.to) > 0 {
		binary.BigEndian.PutUint64(ip[24:], uint64(t.to[t.random.IntN(len(t.to))]))
		binary.BigEndian.PutUint64(ip[32:], t.random.Uint64()|1<<63)
	}
	l4, at := ip[ip6Len:], 6
	if t.next == header.ICMPv6 {
		at = 2
		binary.BigEndian.PutUint32(l4[4:], t.random.Uint32()) // identifier and sequence number
	}
	l4[at], l4[at+1] = 0, 0
	sum := words(ip[8:40]) + uint64(len(l4)) + uint64(t.next) + words(l4)
	if len(l4)%2 == 1 {
		sum += uint64(l4[len(l4)-1]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(l4[at:], ^uint16(sum))
}
