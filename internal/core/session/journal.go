package session

import (
	"net/netip"
	"strings"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// An Entry is one decision about a flow that is here: what it was about, what was said and what became of the end.
// For who looks for a bug, and for the model, which replays it.
type Entry struct {
	Flow   netip.Addr `json:"flow"` // its stable identifier
	Server bool       `json:"server,omitempty"`
	What   string     `json:"what"` // move, timer, lost, continue, abandon, fail, or the kind of In
	In     *Said      `json:"in,omitempty"`
	Out    []Said     `json:"out,omitempty"`
	Before Stand      `json:"before"`
	After  Stand      `json:"after"`
}

// A Said is a claim in a message, or what FLOW-FAIL says of a flow. The sender of a claim stands where its Epoch
// brought it; FLOW-FAIL goes to where Epoch brought its receiver.
type Said struct {
	Kind   string         `json:"kind"` // RSYN, RSYNACK, RACK, RESUME or FAIL
	Epoch  uint32         `json:"epoch"`
	Seen   uint32         `json:"seen"`
	Socket sid.SocketID   `json:"socket"`
	Quote  sid.SocketID   `json:"quote"`
	Chain  []sid.SocketID `json:"chain,omitempty"`
}

// A Stand is how far an end has come.
type Stand struct {
	State  string       `json:"state"`
	Epoch  uint32       `json:"epoch"`
	Seen   uint32       `json:"seen"`
	Socket sid.SocketID `json:"socket"`
	Peer   sid.SocketID `json:"peer"`
}

func (f *flow) stand() Stand {
	return Stand{f.state.String(), f.epoch, f.seen, f.Local.Socket, f.Peer.Socket}
}

func saidClaim(kind wire.Type, c wire.Claim) Said {
	return Said{strings.ReplaceAll(kind.String(), "-", ""), c.Epoch, c.Seen, c.Socket, c.Quote, c.Chain}
}

func saidFailed(x wire.Failed) Said {
	return Said{Kind: "FAIL", Epoch: x.Epoch, Socket: x.Socket, Quote: x.Quote}
}

// begin opens an entry; what is decided within another decision is part of it.
func (e *Engine) begin(f *flow, what string, in *Said) (begun bool) {
	if e.cfg.Journal == nil || e.entry != nil || f == nil {
		return false
	}
	e.entry = &Entry{Flow: f.Stable, Server: f.Role == Server, What: what, In: in, Before: f.stand()}
	return true
}

// beginResume opens the entry of an instance that is asked to go on with a flow, which it may not have.
func (e *Engine) beginResume(k Key, c *wire.Claim) (begun bool) {
	if e.cfg.Journal == nil || e.entry != nil {
		return false
	}
	in := saidClaim(wire.TypeResume, *c)
	e.entry = &Entry{Flow: k.Stable, Server: true, What: in.Kind, In: &in, Before: e.standOf(k)}
	return true
}

func (e *Engine) finishResume(k Key, begun bool) {
	if begun {
		e.entry.After = e.standOf(k)
		e.cfg.Journal(*e.entry)
		e.entry = nil
	}
}

// standOf is also that of a flow that is not here.
func (e *Engine) standOf(k Key) Stand {
	if f := e.flows[k]; f != nil {
		return f.stand()
	}
	return Stand{State: Closed.String()}
}

// finish hands it over.
func (e *Engine) finish(f *flow, begun bool) {
	if begun {
		e.entry.After = f.stand()
		e.cfg.Journal(*e.entry)
		e.entry = nil
	}
}

// said adds what the end says to the entry that is open.
func (e *Engine) said(s Said) { e.entry.Out = append(e.entry.Out, s) }
