package session

import (
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// fire does what the state's timer is for.
func (e *Engine) fire(now time.Time, f *flow) {
	defer e.finish(f, e.begin(f, "timer", nil))
	t := &e.cfg.Times
	if f.tries == t.Tries && e.atWork(now, f) {
		f.tries-- // once more
	}
	if f.state == Asking && f.asked == mostAsked && e.stillServed(now) {
		f.asked -= retries
	}
	switch {
	case f.state == Blocked:
		e.reset(now, f, wire.Unreachable) // the data path was not read in time
	case f.state == Asking && f.asked < mostAsked && !e.ready(now, f):
	case f.state == Asking:
		e.ask(now, f)
	case f.state == Confirming && e.calm(now, f):
	case f.state == Confirming && f.tries == confirmTries:
		e.askAnew(now, f)
	case f.state == Confirming:
		e.confirm(now, f)
	case f.state == Bound && f.nonce == 0:
	case f.state == Bound && f.tries == t.Probes && f.Role == Server:
		f.nonce = 0 // there is nobody else to turn to, and the client may come back: TCP decides
	case f.state == Bound && f.tries == t.Probes && f.Proto == sid.TCP:
		f.nonce = 0
		e.change(Change{Kind: Unanswered, Key: f.Key, Peer: f.Peer})
	case f.state == Bound && f.tries == t.Probes, f.tries == t.Tries:
		e.lost(now, f, wire.Unreachable)
	case f.state == Bound:
		e.sendProbe(now, f)
	case (f.state == Moving || f.state == Answering) && e.patient(now, f):
	case f.state == Moving:
		e.claim(wire.TypeRSYN, f)
		e.again(now, f)
	case f.state == Answering:
		e.claim(wire.TypeRSYNACK, f)
		e.again(now, f)
	}
}

// lost: the peer will not come back. What follows is the service's policy.
func (e *Engine) lost(now time.Time, f *flow, why wire.Reason) {
	switch {
	case why == wire.Elsewhere || why == wire.Forbidden || f.Role != Client || f.state == Connecting:
		e.reset(now, f, why)
	case f.Proto != sid.TCP:
		e.change(Change{Kind: Unbind, Key: f.Key, Local: Addr{Locator: f.Local.Locator}, Reason: why})
		e.end(now, f, why)
	case f.Continue && f.Service.Valid() && f.state <= Answering:
		e.block(now, f, why)
	default:
		e.reset(now, f, why)
	}
}

// Lost gives up the peers of the flows that gone chooses: the network says that their hosts do not answer, and
// that there are others to go to. A server's end keeps its flow: where a client is gone, there is nobody else to
// turn to, and a client may come back.
func (e *Engine) Lost(now time.Time, why wire.Reason, gone func(Flow) bool) {
	for _, f := range e.sorted(func(f *flow) bool { return f.Role == Client && gone(f.Flow) }) {
		begun := e.begin(f, "lost", nil)
		if f.state == Confirming {
			e.askAnew(now, f)
		} else {
			e.lost(now, f, why)
		}
		e.finish(f, begun)
	}
}

// SetContinue says whether another instance may go on with a client's flow.
func (e *Engine) SetContinue(k Key, may bool) {
	if f := e.flows[k]; f != nil && f.Role == Client && f.Continue != may {
		f.Continue = may && e.cfg.Trust != nil
		e.touch(f)
	}
}

func (e *Engine) reset(now time.Time, f *flow, why wire.Reason) {
	e.change(Change{Kind: Reset, Key: f.Key, Reason: why})
	e.end(now, f, why)
}

// flowFail takes a host's word that it does not serve flows of ours.
func (e *Engine) flowFail(now time.Time, key wire.Key, m wire.FlowFail) {
	for _, x := range m.Flows {
		e.failed(now, key, m, x)
	}
}

// failed takes it for one flow.
func (e *Engine) failed(now time.Time, key wire.Key, m wire.FlowFail, x wire.Failed) {
	k := Key{x.Stable, Server}
	if x.Server {
		k.Role = Client
	}
	f := e.flows[k]
	if f == nil {
		f = e.bySocket[x.Socket]
	}
	if e.cfg.Journal != nil {
		in := saidFailed(x)
		defer e.finish(f, e.begin(f, in.Kind, &in))
	}
	switch {
	case f == nil || f.Local.Socket != x.Socket:
		e.count("late_fail")
	case f.state == Asking:
		e.refused(now, f, m.Reason)
	case f.Peer.Socket != x.Quote || f.state == Blocked || f.state == Connecting:
		e.count("late_fail")
	case !e.trusts(f, key, m.Locator):
		e.count("other_key")
	case f.state == Confirming:
		e.askAnew(now, f)
	default:
		e.lost(now, f, m.Reason)
	}
}

// Fail tells the peers of these flows that this end gives them up, and forgets them: a process died, a
// server sheds its load. A flow that is not here is passed over.
func (e *Engine) Fail(now time.Time, why wire.Reason, keys ...Key) {
	for _, k := range keys {
		f := e.flows[k]
		if f == nil {
			continue
		}
		begun := e.begin(f, "fail", nil)
		if f.state != Connecting && f.state != Blocked && f.state != Asking {
			f.endNotice = &endNotice{why, wire.Failed{Stable: f.Stable, Epoch: f.seen, Server: f.Role == Server,
				Socket: f.Peer.Socket, Quote: f.Local.Socket}}
		}
		e.reset(now, f, why)
		if f.endNotice != nil {
			e.sendNotice(f)
			e.arm(now, f)
		}
		e.finish(f, begun)
	}
}

// A endNotice is the FLOW-FAIL of a flow that this end gave up. Nothing answers it, and a peer that only
// receives would wait for ever if it was lost: it is sent again noticeTimes times.
type endNotice struct {
	why  wire.Reason
	what wire.Failed
}

const noticeTimes = 4

func (e *Engine) sendNotice(f *flow) { e.fail(f.endNotice.why, f.Local, f.Peer, f.endNotice.what) }

// repeatNotice fires in a closed flow.
func (e *Engine) repeatNotice(now time.Time, f *flow) {
	if f.timer.IsZero() || now.Before(f.timer) {
		return
	}
	f.timer = time.Time{}
	e.sendNotice(f)
	if f.tries+1 < noticeTimes {
		e.again(now, f)
	}
}
