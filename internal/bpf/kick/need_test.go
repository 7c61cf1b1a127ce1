package kick

import (
	"testing"
	"time"
)

func TestEachStateGetsItsKick(t *testing.T) {
	flying := func(s Socket) Socket { s.SndUna, s.SndNxt = 100, 200; s.Written = max(s.Written, 200); return s }
	for _, c := range []struct {
		what string
		s    Socket
		want need
	}{
		{"idle", Socket{State: Established}, need{}},
		{"idle, closing from the peer's side only", Socket{State: CloseWait}, need{}},
		{"in flight, timer not doubled yet", flying(Socket{State: Established, Timer: Retransmit}), need{}},
		{"in flight, a tail loss probe waits", flying(Socket{State: Established, Timer: LossProbe, Written: 300}), need{}},
		{"in flight, doubled", flying(Socket{State: Established, Backoff: 1, Retransmits: 1}), need{refusals: 2}},
		{"a FIN in flight, doubled", flying(Socket{State: LastAck, Backoff: 3, Retransmits: 3}), need{refusals: 4}},
		{"over the end of sequence space", Socket{State: FinWait1, SndUna: 1<<32 - 5, SndNxt: 5, Written: 5, Backoff: 2, Retransmits: 2}, need{refusals: 3}},
		{"in flight, doubled, more queued", flying(Socket{State: Established, Backoff: 1, Retransmits: 1, Written: 900}), need{refusals: 2}},
		{"nothing could be sent", Socket{State: Established, Written: 9, SndWnd: 9, MSS: 1000, Timer: WindowProbe, Backoff: 4}, need{ack: true}},
		{"nothing could be sent, no timer yet", Socket{State: Established, Written: 9, SndWnd: 9, MSS: 1000}, need{ack: true}},
		{"nothing could be sent, of much", Socket{State: Established, Written: 9000, SndWnd: 1000, MSS: 1000, Timer: WindowProbe}, need{ack: true}},
		{"the peer's window is closed", Socket{State: Established, Written: 9, MSS: 1000, Timer: WindowProbe, Backoff: 4}, need{}},
		{"the peer's window is too small", Socket{State: Established, Written: 9000, SndWnd: 999, MSS: 1000, Timer: WindowProbe, Backoff: 4}, need{}},
		{"the peer has taken its window back", flying(Socket{State: Established, Written: 900, SndWnd: 50, MSS: 1000, Timer: WindowProbe, Backoff: 1}), need{}},
		{"probes with data in flight", flying(Socket{State: Established, Written: 900, SndWnd: 800, MSS: 500, Timer: WindowProbe, Backoff: 1, Retransmits: 1}), need{refusals: 2, ack: true}},
		{"connecting: a refusal would end it", Socket{State: SynSent, SndNxt: 1, Written: 1, Backoff: 2, Retransmits: 2}, need{}},
		{"the program reads ICMPv6 errors", flying(Socket{State: Established, Backoff: 2, Retransmits: 2, ReadsICMP: true}), need{}},
		{"somebody repairs it", flying(Socket{State: Established, Backoff: 2, Retransmits: 2, Repair: true}), need{}},
		{"closed", flying(Socket{State: Closed, Backoff: 2, Retransmits: 2}), need{}},
	} {
		if got := needOf(&c.s); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestOfManyEachIsGivenTheLeast(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		rto, due time.Duration
		timer    Timer
		want     int
	}{
		{3200 * ms, 1500 * ms, Retransmit, 1}, // 1.7 s have passed: a timeout of 1.6 s is over
		{3200 * ms, 1590 * ms, Retransmit, 2}, // barely, which the clocks may see otherwise
		{3200 * ms, 2000 * ms, Retransmit, 2},
		{3200 * ms, 3100 * ms, Retransmit, 6}, // of the 100 ms that have passed: 50
		{3200 * ms, 3190 * ms, Retransmit, 7}, // it was sent just now: the next timeout is the shortest
		{3200 * ms, -10 * ms, Retransmit, 1},
		{3200 * ms, 3300 * ms, Retransmit, 7},
		{3200 * ms, 1500 * ms, WindowProbe, 7},
	} {
		s := Socket{State: Established, SndNxt: 1, Written: 1, Backoff: 6, Retransmits: 6, RTO: c.rto, Due: c.due, Timer: c.timer}
		if got := needOf(&s).least(&s); got.refusals != c.want {
			t.Errorf("%v of %v to go, %v: %d refusals, want %d", c.due, c.rto, c.timer, got.refusals, c.want)
		}
	}
	if got := (need{ack: true}).least(&Socket{}); got != (need{ack: true}) {
		t.Errorf("what could not be sent at all: %+v", got)
	}
}
