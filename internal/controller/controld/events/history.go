// Package events is the history of a network: what happened and what was ordered, who follows it, and how much of it
// somebody may tell.
package events

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
)

// Remembered is how many events are kept, in memory and in the store, where they outlive the controller and whoever leads has them:
// so many that were ordered, and so many that happened, since a host that comes and goes all night must not push out
// who changed what. 4,096 of each are 2 MB.
const Remembered = 4096

// watcherQueue is how far a follower may lag behind before its stream is ended.
const watcherQueue = 1024

// What happened is saved each second, for a network of hosts that come and go all at once would else write as often;
// what was ordered is saved with what it changed.
const (
	saveHappenedEvery = time.Second
	entryEvents       = 512 // of an entry: etcd takes 1.5 MiB at once
)

// A History is what happened and what was ordered, and those who follow it. The loop owns it.
type History struct {
	happened, ordered []*apiv1.Event // by number, each of them the last ones
	seq               uint64
	watchers          map[*Watcher]struct{}
	entries           []store.Entry // of what happened, in the store: without the events
	unsaved           []*apiv1.Event
	saving            bool // somebody will save them

	loop    Loop
	saver   Saver
	counted Counter
	log     *slog.Logger
}

// A Loop runs what is to be done later in the goroutine that owns the history.
type Loop interface {
	After(time.Duration, func())
}

// A Saver keeps records until they are stored.
type Saver interface {
	Later(...store.Change)
}

// A Counter counts events by kind.
type Counter interface {
	Inc(kind ...string)
}

// A Watcher follows those events that it asked for.
type Watcher struct {
	*session.Session[apiv1.Event]
	wants func(*apiv1.Event) bool
}

// NewHistory makes an empty one.
func NewHistory(loop Loop, saver Saver, counted Counter, log *slog.Logger) *History {
	return &History{watchers: make(map[*Watcher]struct{}), loop: loop, saver: saver, counted: counted, log: log}
}

// NewWatcher makes one that follows nothing yet. Its stream is that of ctx.
func NewWatcher(ctx context.Context, wants func(*apiv1.Event) bool) *Watcher {
	return &Watcher{session.New[apiv1.Event](ctx, watcherQueue), wants}
}

// Follow tells a watcher of all events from now on.
func (h *History) Follow(w *Watcher) { h.watchers[w] = struct{}{} }

// Leave tells it no more.
func (h *History) Leave(w *Watcher) { delete(h.watchers, w) }

// Next is the number of an event to come. Those of a term begin with its epoch: nobody gives a number twice.
func (h *History) Next() uint64 { h.seq++; return h.seq }

// add takes an event that has its number.
func (h *History) add(e *apiv1.Event) {
	list := &h.happened
	if e.By != nil && !e.Refused {
		list = &h.ordered
	}
	*list = append(*list, e)
	if len(*list) > 2*Remembered { // seldom, and all at once
		*list = slices.Clone((*list)[len(*list)-Remembered:])
	}
	for w := range h.watchers {
		if w.wants(e) && !w.Send(e) {
			delete(h.watchers, w)
		}
	}
}

// Last returns up to count events that are wanted, oldest first.
func (h *History) Last(count int, wants func(*apiv1.Event) bool) []*apiv1.Event {
	a, b := tail(h.happened), tail(h.ordered)
	var list []*apiv1.Event
	for len(list) < count && len(a)+len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[len(b)-1].Seq > a[len(a)-1].Seq {
			from = &b
		}
		e := (*from)[len(*from)-1]
		*from = (*from)[:len(*from)-1]
		if wants(e) {
			list = append(list, e)
		}
	}
	slices.Reverse(list)
	return list
}

// CarriedOut is what there is of an order with this number, if it was done.
func (h *History) CarriedOut(number string) *apiv1.Event {
	if number == "" {
		return nil
	}
	for _, e := range slices.Backward(h.ordered) {
		if e.Order == number {
			return e
		}
	}
	return nil
}

func tail(list []*apiv1.Event) []*apiv1.Event { return list[max(0, len(list)-Remembered):] }

// Every wants all events.
func Every(*apiv1.Event) bool { return true }

// Restore takes up the history of before.
func (h *History) Restore(state store.State) {
	h.seq = state.Epoch << 32
	for _, e := range state.Ordered {
		h.ordered = append(h.ordered, eventsIn(e)...)
	}
	for _, e := range state.Happened {
		list := eventsIn(e)
		h.happened = append(h.happened, list...)
		h.entries = append(h.entries, store.Entry{First: e.First, Events: make([]json.RawMessage, len(list))})
	}
	for _, list := range [][]*apiv1.Event{h.ordered, h.happened} { // a backup's epochs may be other ones
		if len(list) > 0 {
			h.seq = max(h.seq, list[len(list)-1].Seq)
		}
	}
}

func eventsIn(entry store.Entry) (list []*apiv1.Event) {
	for _, text := range entry.Events {
		e := new(apiv1.Event)
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, e) == nil {
			list = append(list, e)
		}
	}
	return list
}

func entryOf(list []*apiv1.Event) store.Entry {
	entry := store.Entry{First: list[0].Seq}
	for _, e := range list {
		if text, err := protojson.Marshal(e); err == nil { // fails for text that is no UTF-8, which Printable leaves none of
			entry.Events = append(entry.Events, text)
		}
	}
	return entry
}

// Records are the records of events that somebody ordered, to be saved with what they changed; the oldest go for them.
func (h *History) Records(list []*apiv1.Event) (records []store.Change) {
	for i := range list {
		records = append(records, store.PutOrdered(entryOf(list[i:i+1])))
		if at := len(h.ordered) + i - Remembered; at >= 0 && at < len(h.ordered) {
			records = append(records, store.DeleteOrdered(h.ordered[at].Seq))
		}
	}
	return records
}

// gathered are the records of what happened since the last time; the oldest go for them.
func (h *History) gathered() (records []store.Change) {
	for list := range slices.Chunk(h.unsaved, entryEvents) {
		entry := entryOf(list)
		records = append(records, store.PutHappened(entry))
		h.entries = append(h.entries, store.Entry{First: entry.First, Events: make([]json.RawMessage, len(entry.Events))})
	}
	h.unsaved = nil
	sum := 0
	for i := len(h.entries) - 1; i >= 0; i-- {
		if sum >= Remembered {
			for _, old := range h.entries[:i+1] {
				records = append(records, store.DeleteHappened(old.First))
			}
			h.entries = slices.Clone(h.entries[i+1:])
			break
		}
		sum += len(h.entries[i].Events)
	}
	return records
}

// Tell tells everybody what happened, which nobody ordered.
func (h *History) Tell(kind, subject, text string, attrs ...string) {
	h.Happened(New(kind, subject, text, attrs...))
}

// Happened tells of an event and has it saved soon.
func (h *History) Happened(e *apiv1.Event) {
	e.Seq = h.Next()
	h.Announce(e)
	h.unsaved = append(h.unsaved, e)
	if !h.saving {
		h.saving = true
		h.loop.After(saveHappenedEvery, h.Save)
	}
}

// Save has what happened saved, without waiting for the next time.
func (h *History) Save() {
	h.saving = false
	if len(h.unsaved) > 0 {
		h.saver.Later(h.gathered()...)
	}
}

// Announce lets everybody know of an event that has its number.
func (h *History) Announce(e *apiv1.Event) {
	h.add(e)
	h.counted.Inc(e.Kind)
	args := []any{"kind", e.Kind, "subject", e.Subject}
	for k, v := range e.Attrs {
		args = append(args, k, v)
	}
	if e.By != nil {
		args = append(args, "by", ActorText(e.By))
	}
	for _, c := range e.Changes {
		args = append(args, c.Field, c.From+" -> "+c.To)
	}
	h.log.Info(e.Text, args...)
}

// Ordered tells of what was ordered and saved.
func (h *History) Ordered(list []*apiv1.Event) {
	for _, e := range list {
		h.Announce(e)
	}
}
