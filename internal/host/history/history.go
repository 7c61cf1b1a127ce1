package history

import (
	"container/list"
	"fmt"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// An Event is one thing that happened to a flow.
type Event struct {
	At    time.Time
	Kind  string // of apiv1.FlowEvent
	Text  string
	Stall time.Duration
}

// A Flow is the history of one flow: what happened to it lately, kept for a while after its end.
type Flow struct {
	Key     session.Key
	Tuple   host.Tuple
	Service sid.ServiceID
	names   []sid.SocketID // what this end was called
	Events  []Event
	ended   bool
}

// How much is remembered: of each flow its beginning and the newest events.
const (
	mostFlows  = 4096
	mostEvents = 32
	mostNames  = 16
)

// Flows are the histories of the flows that had something happen last.
type Flows struct {
	byKey map[session.Key]*list.Element // of *Flow
	order *list.List                    // the one whose newest event is the oldest in front
}

// New returns a memory without flows.
func New() Flows {
	return Flows{byKey: map[session.Key]*list.Element{}, order: list.New()}
}

// Begin opens the history of a flow that something is about to happen to.
func (s *Flows) Begin(k session.Key, f host.Flow) {
	if s.byKey[k] != nil {
		return
	}
	if s.order.Len() >= mostFlows {
		first := s.order.Front()
		delete(s.byKey, first.Value.(*Flow).Key)
		s.order.Remove(first)
	}
	t := &Flow{Key: k, Tuple: f.Tuple, Service: f.Service, names: []sid.SocketID{f.ID}}
	t.Events = []Event{{At: Began(f), Kind: "begin", Text: Beginning(f)}}
	s.byKey[k] = s.order.PushBack(t)
}

// Began is when the flow did, which was before anything happened to it; of one from before an edge that keeps that,
// now.
func Began(f host.Flow) time.Time {
	if at, known := f.Began(); known {
		return at
	}
	return time.Now()
}

// Beginning says what the flow was when it first mattered.
func Beginning(f host.Flow) string {
	at := f.Locator.String()
	if f.State == host.Connecting {
		return "connecting from " + at
	}
	return fmt.Sprintf("%v of a flow between %s here and %v there", f.Role, at, sid.LocatorOf(f.WirePeer.Addr()))
}

// Add adds an event.
func (s *Flows) Add(k session.Key, c Event) {
	e := s.byKey[k]
	if e == nil {
		return
	}
	s.order.MoveToBack(e)
	t := e.Value.(*Flow)
	if len(t.Events) == mostEvents { // the beginning stays
		copy(t.Events[1:], t.Events[2:])
		t.Events = t.Events[:mostEvents-1]
	}
	t.Events = append(t.Events, c)
}

// Lengthen adds an event, or makes the last one longer that still goes on, and says whether it is another one.
func (s *Flows) Lengthen(k session.Key, c Event) bool {
	if e := s.byKey[k]; e != nil {
		t := e.Value.(*Flow)
		if last := &t.Events[len(t.Events)-1]; last.Kind == c.Kind && last.Stall < c.Stall && c.At.Sub(last.At) < c.Stall {
			last.Stall, last.Text = c.Stall, c.Text
			return false
		}
	}
	s.Add(k, c)
	return true
}

// Call notes what the flow's end is called now.
func (s *Flows) Call(k session.Key, id sid.SocketID) {
	if e := s.byKey[k]; e != nil {
		t := e.Value.(*Flow)
		if t.names[len(t.names)-1] != id {
			t.names = append(t.names[max(0, len(t.names)-mostNames+1):], id)
		}
	}
}

// End says that the flow has ended.
func (s *Flows) End(k session.Key, at time.Time) {
	if e := s.byKey[k]; e != nil && !e.Value.(*Flow).ended {
		s.Add(k, Event{At: at, Kind: "end", Text: "the flow is over"})
		e.Value.(*Flow).ended = true
	}
}

// Again says that a flow that had ended goes on.
func (s *Flows) Again(k session.Key) {
	if e := s.byKey[k]; e != nil {
		e.Value.(*Flow).ended = false
	}
}

// Rename gives a history that began with another attempt the key of the one that was answered.
func (s *Flows) Rename(from, to session.Key) {
	if e := s.byKey[from]; e != nil && from != to && s.byKey[to] == nil {
		e.Value.(*Flow).Key = to
		delete(s.byKey, from)
		s.byKey[to] = e
	}
}

// Find looks for a flow by a stable identifier, a socketID or a program's address and port.
func (s *Flows) Find(want string) *Flow {
	id, ip, at := ParseName(want)
	for e := s.order.Back(); e != nil; e = e.Prev() {
		if t := e.Value.(*Flow); t.is(id, ip, at) {
			return t
		}
	}
	return nil
}

func (t *Flow) is(id sid.SocketID, ip netip.Addr, at netip.AddrPort) bool {
	for _, n := range t.names {
		if id != 0 && n == id {
			return true
		}
	}
	return ip.IsValid() && t.Key.Stable == ip || at.IsValid() && (t.Tuple.Local == at || t.Tuple.Remote == at)
}
