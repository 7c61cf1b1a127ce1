package notes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/core/names"
)

// a history of a network with the service web.
type history struct {
	told    [][]string
	refused int
}

func (h *history) Tell(kind, subject, text string, attrs ...string) {
	h.told = append(h.told, append([]string{kind, subject, text}, attrs...))
}
func (h *history) Inc(...string) { h.refused++ }
func (h *history) Named(name string) (names.Record, error) {
	if name != "web" {
		return names.Record{}, names.ErrUnknown
	}
	return names.Record{Name: "web"}, nil
}

func newNotes() (*Notes, *history) {
	h := new(history)
	return New(h, h, h), h
}

// A host tells of its own flows and gateways, in its own name.
func TestWhatAHostTells(t *testing.T) {
	x, h := newNotes()
	m := new(events.Meter)
	x.FromHost("s1", m, &apiv1.Event{Kind: "flow.move", Subject: "web", Text: "moved", Attrs: map[string]string{"host": "s2", strings.Repeat("k", maxText+1): "v"}})
	x.FromHost("s1", m, &apiv1.Event{Kind: "gateway.start", Subject: "s2", Text: "runs"})
	want := [][]string{{"flow.move", "web", "s1: moved", "host", "s1"}, {"gateway.start", "s1", "s1: runs", "host", "s1"}}
	if !slices.EqualFunc(h.told, want, slices.Equal[[]string]) || h.refused > 0 {
		t.Errorf("told %q, want %q", h.told, want)
	}
	many := map[string]string{}
	for i := range maxAttrs + 1 {
		many[strings.Repeat("k", i)] = ""
	}
	for _, e := range []*apiv1.Event{{Kind: "service.create"}, {Kind: "flow.\x1b[2J"}, {Kind: "flow." + strings.Repeat("x", maxText)}, {Kind: "flow.move", Attrs: many}} {
		x.FromHost("s1", m, e)
	}
	if len(h.told) != 2 || h.refused != 4 {
		t.Errorf("%d are told and %d refused, want 2 and 4", len(h.told), h.refused)
	}
}

// Attack: a host tells without end. Another one is heard all the same, and how many were left out is told.
func TestAHostThatFloodsIsLeftOut(t *testing.T) {
	x, h := newNotes()
	flood, other := new(events.Meter), new(events.Meter)
	for range 10 * HostBurst {
		x.FromHost("liar", flood, &apiv1.Event{Kind: "flow.move"})
	}
	if told := len(h.told); told < HostBurst || told > 5*HostBurst || h.refused != 10*HostBurst-told {
		t.Errorf("%d are told and %d refused of %d", told, h.refused, 10*HostBurst)
	}
	h.told = nil
	if x.FromHost("s1", other, &apiv1.Event{Kind: "flow.move"}); len(h.told) != 1 {
		t.Error("another host is not heard")
	}
	if got := skipped(&events.Meter{Skipped: 7}, nil); !slices.Equal(got, []string{"not_told", "7"}) {
		t.Errorf("seven were not told: %q", got)
	}
}

func TestWhatIsToldOfSwitches(t *testing.T) {
	x, h := newNotes()
	good := &apiv1.Event{Kind: "switch.join", Subject: "s\x1b1", Attrs: map[string]string{"b": "2", "a": "1"}}
	if err := errors.Join(Check(good), x.FromSwitches(good)); err != nil || !slices.Equal(h.told[0][3:], []string{"a", "1", "b", "2"}) || strings.Contains(h.told[0][1], "\x1b") {
		t.Errorf("%v: told %q", err, h.told)
	}
	for _, e := range []*apiv1.Event{{Kind: "flow.move"}, {Kind: "switch." + strings.Repeat("x", maxSuffix+1)}, {Kind: "module.x", Subject: strings.Repeat("x", maxText+1)}} {
		if Check(e) == nil {
			t.Errorf("%v is taken", e)
		}
	}
	for range 5 * switchBurst {
		if err := x.FromSwitches(good); err != nil {
			if !errors.Is(err, ErrTooMany) || h.refused != 1 {
				t.Errorf("%v, %d refused", err, h.refused)
			}
			return
		}
	}
	t.Error("all of a flood is taken")
}
