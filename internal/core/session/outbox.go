package session

import (
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// An Outgoing is a message to send in UDP, port 23727 on both sides.
type Outgoing struct {
	From, To netip.Addr
	Retry    uint8 // for the flow label, where To is a service (docs/protocol.md §3.1)
	Message  wire.Message
}

// A Kind says what the data path is to do.
type Kind uint8

// The changes of a data path.
const (
	// Accept takes packets for Local to the flow from now on; a non-zero Until says when Drop will come. The
	// peer's address behind a newly accepted one may be unknown until the next Bind.
	Accept Kind = iota + 1
	// Bind sends the flow's packets from Local to Peer, and kicks its transport: what was sent
	// meanwhile may be lost.
	Bind
	// Retry sends a connecting flow's first packet again, from Local. Earlier attempts stay accepted.
	Retry
	// Block takes and sends nothing more; the caller answers with Continue or Reset.
	Block
	// Unbind makes a datagram flow resolve anew.
	Unbind
	// Reset ends the local socket with an error at once. Reason says why.
	Reset
	// Adopt makes a connection out of Transport, for the program that serves Service.
	Adopt
	// Drop takes packets for Local no more: its grace time is over.
	Drop
	// Unanswered: Peer, a server, answers no PROBE. The caller finds out whether there is anybody else to turn
	// to, and calls Lost if so.
	Unanswered
	// Kick has the flow's transport send what waits for a timer: the peer answers, and so the way is open.
	Kick
)

var kindNames = [...]string{"", "accept", "bind", "retry", "block", "unbind", "reset", "adopt", "drop", "unanswered", "kick"}

func (k Kind) String() string { return kindNames[k] }

// A Change is for the data path.
type Change struct {
	Kind      Kind
	Key       Key
	Local     Addr
	Peer      Addr
	Until     time.Time
	Reason    wire.Reason
	Service   sid.ServiceID
	Proto     sid.Proto
	Transport wire.Transport
}

// outbox collects what Drain returns.
type outbox struct {
	changes []Change
	batches []*batch
	open    map[shared]*batch // of batches
	single  []Outgoing
}

// shared is what claims or failures in one message have in common.
type shared struct {
	kind             wire.Type
	reason           wire.Reason
	local, old, peer sid.Locator
}

// batch is claims or failures that can share messages.
type batch struct {
	shared
	claims  []addressed[wire.Claim]
	failed  []addressed[wire.Failed]
	touched map[Key]int // where a flow's claim stands: a later one replaces it
}

type addressed[T any] struct {
	from, to netip.Addr
	what     T
}

func (e *Engine) change(c Change) { e.out.changes = append(e.out.changes, c) }

func (e *Engine) send(from, to netip.Addr, m wire.Message) {
	e.out.single = append(e.out.single, Outgoing{From: from, To: to, Message: m})
}

// batch finds the one that the arguments share, or begins it.
func (e *Engine) batch(kind wire.Type, why wire.Reason, local, old, peer sid.Locator) *batch {
	s := shared{kind, why, local, old, peer}
	if b := e.out.open[s]; b != nil {
		return b
	}
	b := &batch{shared: s, touched: map[Key]int{}}
	if e.out.open == nil {
		e.out.open = map[shared]*batch{}
	}
	e.out.batches, e.out.open[s] = append(e.out.batches, b), b
	return b
}

// claim sends the flow's address to its peer.
func (e *Engine) claim(kind wire.Type, f *flow) {
	b := e.batch(kind, 0, f.Local.Locator, f.confirmed, f.Peer.Locator)
	a := addressed[wire.Claim]{f.Local.IP(), f.Peer.IP(), f.claimed(f.Peer.Socket)}
	if e.entry != nil {
		e.said(saidClaim(kind, a.what))
	}
	if i, ok := b.touched[f.Key]; ok {
		b.claims[i] = a
		return
	}
	b.touched[f.Key] = len(b.claims)
	b.claims = append(b.claims, a)
}

// claimed is the flow's claim, quoting what its peer is called.
func (f *flow) claimed(quote sid.SocketID) wire.Claim {
	return wire.Claim{Stable: f.Stable, Server: f.Role == Server, Epoch: f.epoch, Seen: f.seen,
		Socket: f.Local.Socket, Quote: quote, Chain: f.chain}
}

// fail sends a FLOW-FAIL for one flow.
func (e *Engine) fail(why wire.Reason, from, to Addr, x wire.Failed) {
	b := e.batch(wire.TypeFlowFail, why, from.Locator, 0, to.Locator)
	b.failed = append(b.failed, addressed[wire.Failed]{from.IP(), to.IP(), x})
	if e.entry != nil {
		e.said(saidFailed(x))
	}
}

// Pending is how many changes Drain would return.
func (e *Engine) Pending() int { return len(e.out.changes) }

// Drain returns the messages to send and the changes for the data path since the last call, in order.
// Changes come before messages: what a peer answers must be accepted.
func (e *Engine) Drain() (changes []Change, messages []Outgoing) {
	changes, messages = e.out.changes, e.out.single
	for _, b := range e.out.batches {
		messages = append(messages, e.claims(b)...)
		messages = append(messages, e.failures(b)...)
	}
	e.out = outbox{}
	return changes, messages
}

// certificates is how many a message of ours carries for the locators.
func (e *Engine) certificates(locators ...sid.Locator) int {
	if e.cfg.Trust == nil {
		return 0
	}
	slices.Sort(locators)
	n := len(slices.Compact(locators))
	if e.cfg.Trust.Succeeds() { // it takes less than a certificate
		n++
	}
	return n
}

// claims packs a batch into as few messages as its claims fit.
func (e *Engine) claims(b *batch) (list []Outgoing) {
	for len(b.claims) > 0 {
		m := wire.Renegotiate{Kind: b.kind, Locator: b.local, Old: b.old}
		first, room := b.claims[0], wire.Room(e.certificates(b.local, b.old))
		for len(b.claims) > 0 && b.claims[0].what.Len() <= room {
			room -= b.claims[0].what.Len()
			m.Claims, b.claims = append(m.Claims, b.claims[0].what), b.claims[1:]
		}
		list = append(list, Outgoing{From: first.from, To: first.to, Message: e.sign(m, b.local, b.old)})
	}
	return list
}

func (e *Engine) failures(b *batch) (list []Outgoing) {
	for part := range slices.Chunk(b.failed, wire.FailRoom(e.certificates(b.local))) {
		m := wire.FlowFail{Locator: b.local, Reason: b.reason}
		for _, x := range part {
			m.Flows = append(m.Flows, x.what)
		}
		list = append(list, Outgoing{From: part[0].from, To: part[0].to, Message: e.sign(m, b.local)})
	}
	return list
}
