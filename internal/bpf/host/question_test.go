package host

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"scaffold.dev/scaffold/sid"
)

// said is what comes back of a question to a host, or of the flow's own packet.
func said(to sid.Locator, code uint8, later bool) Event {
	packet := make([]byte, 2*ip6Len+icmp6Len+tcpLen)
	packet[6] = unix.IPPROTO_ICMPV6
	if later {
		packet[ip6Len+7] = 1
	}
	label := uint32(0)
	if to != 0 {
		label = uint32(sid.NewLabel(to, sid.MaxRetry))
	}
	binary.BigEndian.PutUint32(packet[ip6Len+icmp6Len:], 6<<28|label)
	ev := refusal(code)
	ev.Packet = packet
	return ev
}

// A hearing asks with one answer for each host and the network: code 4, "later" until some time, or silence.
type hearing struct {
	later  map[sid.Locator]time.Duration // until when
	silent map[sid.Locator]bool
}

// ask lets time pass until the socket is told or nothing is due; asked is whom was asked, in order.
func (h hearing) ask(t interface{ Fatalf(string, ...any) }, hosts []sid.Locator) (asked []sid.Locator, told Event, at time.Duration) {
	r := NewRefusals(func(Event) []sid.Locator { return hosts })
	begin := time.Unix(0, 0)
	r.Handle(begin, said(0, noSuchPort, false))
	var since time.Time // when the question was asked that has no answer
	for d := r.Deadline(); !d.IsZero() && told.Kind == 0; d = r.Deadline() {
		r.Expire(d)
		for _, a := range r.Drain() {
			if !a.Retry {
				told, at = a.Event, d.Sub(begin)
				continue
			}
			if asked = append(asked, a.To); !since.IsZero() && d.Sub(since) < silenceLimit {
				t.Fatalf("two are asked at once: %v", asked)
			}
			if since = d; h.silent[a.To] {
				continue
			}
			since = time.Time{}
			r.Handle(d.Add(100*time.Microsecond), said(a.To, noSuchPort, d.Sub(begin) < h.later[a.To]))
		}
	}
	return asked, told, at
}

const (
	hostA sid.Locator = 0xfd5d_0000_0001_0101
	hostB sid.Locator = 0xfd5d_0000_0001_0102
)

// TestWhoKnowsOfAPortIsAsked: A says "no" and is not asked again, B says "later" and is, beyond the 20 ms for the network.
func TestWhoKnowsOfAPortIsAsked(t *testing.T) {
	h := hearing{later: map[sid.Locator]time.Duration{hostB: 200 * time.Millisecond}}
	asked, _, at := h.ask(t, []sid.Locator{hostA, hostB})
	if asked[0] != hostA || slices.Contains(asked[1:], hostA) {
		t.Errorf("asked %x, want %x once and first", asked, hostA)
	}
	if n := len(asked); n < 10 || asked[n-2] != hostB || asked[n-1] != 0 {
		t.Errorf("asked %x, want %x until it has said no, then the network", asked, hostB)
	}
	if at < 200*time.Millisecond || at > 220*time.Millisecond {
		t.Errorf("told after %v, want it as soon as the host has said no", at)
	}
}

// TestAStuckDaemonIsNotWaitedForLongerThanASecond says "later" for ever.
func TestAStuckDaemonIsNotWaitedForLongerThanASecond(t *testing.T) {
	h := hearing{later: map[sid.Locator]time.Duration{hostA: time.Hour}}
	if asked, told, at := h.ask(t, []sid.Locator{hostA}); told.Kind == 0 || at > laterLimit+2*laterLast {
		t.Errorf("told %v after %v; asked %x", told.Kind, at, asked)
	}
}

// TestHostsThatSayNoTakeNoTime: a closed port is refused when it was without them.
func TestHostsThatSayNoTakeNoTime(t *testing.T) {
	_, _, without := hearing{}.ask(t, nil)
	asked, told, with := hearing{}.ask(t, []sid.Locator{hostA, hostB})
	if told.Kind == 0 || with > without+time.Millisecond || asked[0] != hostA || asked[1] != hostB {
		t.Errorf("told after %v, %v without hosts; asked %x", with, without, asked)
	}
}

// TestAHostThatIsGoneIsPassedOver; a datagram is not sent to another one, since it may have arrived.
func TestAHostThatIsGoneIsPassedOver(t *testing.T) {
	h := hearing{silent: map[sid.Locator]bool{hostA: true}}
	if asked, told, _ := h.ask(t, []sid.Locator{hostA, hostB}); told.Kind == 0 || asked[1] != hostB {
		t.Errorf("asked %x, told %v", asked, told.Kind)
	}
	r := NewRefusals(func(Event) []sid.Locator { return []sid.Locator{hostA, hostB} })
	r.Handle(time.Unix(0, 0), refusedDatagram(4, 4))
	n := 0
	for d := r.Deadline(); !d.IsZero(); d = r.Deadline() {
		r.Expire(d)
		n += len(r.Drain())
	}
	if n != 1 {
		t.Errorf("a datagram was sent, or reported, %d times, want once", n)
	}
}

// TestTheNetworksRefusalIsTold: what a router says about a question to a host is not what the program asked.
func TestTheNetworksRefusalIsTold(t *testing.T) {
	r := NewRefusals(func(Event) []sid.Locator { return []sid.Locator{hostA} })
	now := time.Unix(0, 0)
	r.Handle(now, said(0, noSuchPort, false))
	for d := r.Deadline(); !d.IsZero(); d = r.Deadline() {
		r.Expire(d)
		for _, a := range r.Drain() {
			switch {
			case !a.Retry && a.Event.Code != noSuchPort:
				t.Fatalf("the program hears code %d", a.Event.Code)
			case a.To == hostA:
				r.Handle(d, said(hostA, 0, false)) // no route to it
			case a.Retry:
				r.Handle(d, said(0, noSuchPort, false))
			}
		}
	}
}

// TestEveryRefusalEnds whatever hosts say: in bounded time, with a bounded number of questions, one at a time.
func TestEveryRefusalEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := hearing{later: map[sid.Locator]time.Duration{}, silent: map[sid.Locator]bool{}}
		var hosts []sid.Locator
		for i := range rapid.IntRange(0, mostRecentPeers).Draw(t, "hosts") {
			l := hostA + sid.Locator(i)
			hosts = append(hosts, l)
			h.later[l] = time.Duration(rapid.IntRange(0, 1500).Draw(t, "later, ms")) * time.Millisecond
			h.silent[l] = rapid.Bool().Draw(t, "silent")
		}
		asked, told, at := h.ask(t, hosts)
		if told.Kind == 0 || at > laterLimit+mostRecentPeers*silenceLimit+holdLimit || len(asked) > 150 {
			t.Fatalf("told %v after %v, %d questions", told.Kind, at, len(asked))
		}
	})
}

// TestHostsAreAskedWhereNobodyServes: who is asked is the caller's to say, and who may not connect asks nobody.
func TestHostsAreAskedWhereNobodyServes(t *testing.T) {
	const noService, noInstance = 0, 3
	for _, code := range []uint8{noService, noInstance, forbidden} {
		r, now := NewRefusals(func(Event) []sid.Locator { return []sid.Locator{hostA} }), time.Unix(0, 0)
		r.Handle(now, said(0, code, false))
		var asked []sid.Locator
		var told []uint8
		for d := r.Deadline(); !d.IsZero(); d = r.Deadline() {
			r.Expire(d)
			for _, a := range r.Drain() {
				if !a.Retry {
					told = append(told, a.Event.Code)
					continue
				}
				asked = append(asked, a.To)
				r.Handle(d.Add(100*time.Microsecond), said(a.To, noSuchPort, false))
			}
		}
		if want := code != forbidden; (len(asked) == 1 && asked[0] == hostA) != want || len(asked) > 1 {
			t.Errorf("code %d: asked %x, want host A alone: %v", code, asked, want)
		}
		if !slices.Equal(told, []uint8{code, code, code}) {
			t.Errorf("code %d: the socket is told %v, want what the network said", code, told)
		}
	}
}
