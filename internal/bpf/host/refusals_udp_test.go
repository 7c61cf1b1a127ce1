package host

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/sid"
)

// refusedDatagram is a refusal that quotes the first quoted bytes of a datagram of size bytes.
func refusedDatagram(size, quoted int) Event {
	quote := make([]byte, ip6Len+udpLen+size)
	binary.BigEndian.PutUint16(quote[4:], uint16(udpLen+size))
	quote[6] = unix.IPPROTO_UDP
	udp := quote[ip6Len:]
	binary.BigEndian.PutUint16(udp[4:], uint16(udpLen+size))
	for i := range udp[udpLen:] {
		udp[udpLen+i] = byte(i + 1)
	}
	packet := append(make([]byte, ip6Len+icmp6Len), quote[:ip6Len+udpLen+quoted]...)
	packet[6] = unix.IPPROTO_ICMPV6
	return Event{
		Kind: Refused, Code: noSuchPort, Proto: sid.UDP, ID: 1, Packet: packet,
		Local: netip.MustParseAddrPort("[fd5e::7]:4000"), Peer: netip.MustParseAddrPort("[fd5c::1:2]:5201"),
	}
}

func TestARefusedDatagramIsSentAgainThenReportedOnce(t *testing.T) {
	r, now := NewRefusals(none), time.Unix(1000, 0)
	retries, told := 0, 0
	r.Handle(now, refusedDatagram(4, 4))
	for at := r.Deadline(); !at.IsZero(); at = r.Deadline() {
		r.Expire(at)
		for _, a := range r.Drain() {
			if a.Retry {
				retries++
				r.Handle(at, a.Event) // refused again
			} else {
				told++
			}
		}
	}
	if retries < 2 || told != 1 {
		t.Errorf("%d retries, the socket told %d times; want a few, and once", retries, told)
	}
}

func TestADatagramThatIsNotQuotedWholeIsReportedAtOnce(t *testing.T) {
	r, now := NewRefusals(none), time.Unix(1000, 0)
	r.Handle(now, refusedDatagram(200, 80))
	r.Expire(r.Deadline())
	if out := r.Drain(); len(out) != 1 || out[0].Retry {
		t.Errorf("done: %v, want the socket told", out)
	}
}

func TestARepeatedDatagramIsWhole(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, size := range []int{0, 1, 4, 79} {
		d := quotedDatagram(refusedDatagram(size, size))
		if len(d) != ip6Len+udpLen+size {
			t.Fatalf("datagram of %d bytes: %d bytes are sent again", size, len(d))
		}
		if src := netip.AddrFrom16([16]byte(d[8:24])); src.String() != "fd5e::7" {
			t.Errorf("source %v", src)
		}
		if !bpftest.ChecksumOK(d) {
			t.Errorf("datagram of %d bytes: wrong checksum", size)
		}
		for i, b := range d[ip6Len+udpLen:] {
			if b != byte(i+1) {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
	}
}
