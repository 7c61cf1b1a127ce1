package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"scaffold.dev/scaffold/bench/checked"
)

// A Ledger is what the programs at both ends of all checked flows have told.
type Ledger struct {
	mu      sync.Mutex
	flows   map[uint64]*Flow
	wrong   []checked.Note
	refused []checked.Note
	others  []checked.Note // of no flow
	changed chan struct{}  // closed with each note, then another
}

// A Flow is one checked flow, its ends by the node that they are on.
type Flow struct {
	ID    uint64
	Proto string
	Ends  map[string]*End
}

// An End is the latest that one end told.
type End struct {
	checked.Note
	Since int64 // when it began
	Ended bool
	Gaps  []Span
}

// A Span is from when to when nothing arrived, CLOCK_MONOTONIC in ns.
type Span struct{ From, To int64 }

// Milliseconds is how long it is.
func (s Span) Milliseconds() float64 { return float64(s.To-s.From) / 1e6 }

// NewLedger makes an empty one.
func NewLedger() *Ledger {
	return &Ledger{flows: map[uint64]*Flow{}, changed: make(chan struct{})}
}

// Read takes notes until the program ends.
func (l *Ledger) Read(r io.Reader) error {
	for dec := json.NewDecoder(r); ; {
		var n checked.Note
		if err := dec.Decode(&n); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("a checked program said what is no note: %w", err)
		}
		l.add(n)
	}
}

func (l *Ledger) add(n checked.Note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { close(l.changed); l.changed = make(chan struct{}) }()
	switch n.Kind {
	case checked.Refused:
		l.refused = append(l.refused, n)
		return
	case checked.Wrong:
		l.wrong = append(l.wrong, n)
	case checked.Listening:
		l.others = append(l.others, n)
	}
	if n.Flow != 0 {
		l.flow(n).take(n)
	}
}

func (l *Ledger) flow(n checked.Note) *Flow {
	f := l.flows[n.Flow]
	if f == nil {
		f = &Flow{ID: n.Flow, Proto: n.Proto, Ends: map[string]*End{}}
		l.flows[n.Flow] = f
	}
	return f
}

func (f *Flow) take(n checked.Note) {
	e := f.Ends[n.Node]
	if e == nil || n.Kind == checked.Began && !n.Client { // a stream may come back to a server that it was on
		e = &End{Since: n.At}
		f.Ends[n.Node] = e
	}
	if n.Kind == checked.Gap {
		e.Gaps = append(e.Gaps, Span{n.From, n.At})
	}
	if n.Last < e.Last {
		n.Last = e.Last
	}
	e.Note, e.Ended = n, e.Ended || n.Kind == checked.Ended
}

// Client is the end that began the flow, nil before it told anything.
func (f *Flow) Client() *End {
	for _, e := range f.Ends {
		if e.Client {
			return e
		}
	}
	return nil
}

// Server is the end that serves it, or the one that did so last; nil for datagrams.
func (f *Flow) Server() (last *End) {
	for _, e := range f.Ends {
		if !e.Client && (last == nil || e.Since > last.Since) {
			last = e
		}
	}
	return last
}

// Live reports whether its client holds it open.
func (f *Flow) Live() bool {
	c := f.Client()
	return c != nil && !c.Ended
}

// clone is for whoever looks while notes come in.
func (f *Flow) clone() *Flow {
	c := &Flow{ID: f.ID, Proto: f.Proto, Ends: maps.Clone(f.Ends)}
	for node, e := range c.Ends {
		one := *e
		one.Gaps = slices.Clone(e.Gaps)
		c.Ends[node] = &one
	}
	return c
}

// Flows are the flows that fit, in the order of their numbers.
func (l *Ledger) Flows(fit func(*Flow) bool) (all []*Flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.flows {
		if fit(f) {
			all = append(all, f.clone())
		}
	}
	slices.SortFunc(all, func(a, b *Flow) int { return int(int64(a.ID) - int64(b.ID)) })
	return all
}

// Forget drops what is settled; the programs may still tell of it.
func (l *Ledger) Forget(f *Flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flows, f.ID)
}

// Wrong are the notes of bytes that were not what was sent, each told once.
func (l *Ledger) Wrong() []checked.Note { return l.once(&l.wrong) }

// Refused are the notes of connects that failed, each told once.
func (l *Ledger) Refused() []checked.Note { return l.once(&l.refused) }

func (l *Ledger) once(list *[]checked.Note) []checked.Note {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := *list
	*list = nil
	return all
}

// Await waits until what is known satisfies ready, which says by its error what is missing.
func (l *Ledger) Await(ctx context.Context, ready func() error) error {
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-changed:
		}
	}
}

// listening is an error until a server on the node has said so after the time.
func (l *Ledger) listening(node string, after int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.others {
		if n.Node == node && n.At >= after {
			return nil
		}
	}
	return fmt.Errorf("the server on %s does not listen", node)
}

// Truncated is what a client says whose stream ended as if it were complete.
const Truncated = checked.Truncated
