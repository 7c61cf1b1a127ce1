package saving

import (
	"context"
	"errors"
	"testing"

	"scaffold.dev/scaffold/internal/controller/store"
)

func TestWhatCouldNotBeSavedIsTriedAgainUnlessOvertaken(t *testing.T) {
	t.Parallel()
	d := &memory{kept: map[string]bool{}, fail: true}
	s := New(d)
	s.Later(store.PutHost(store.Host{Name: "a"}), store.PutHost(store.Host{Name: "b"}))
	if s.Save(t.Context()) == nil {
		t.Fatal("a failing disk saved")
	}
	d.fail = false
	if err := s.Now(t.Context(), store.PutHost(store.Host{Name: "a"})); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context()); err != nil || d.writes != 2 || !d.kept["host/b"] {
		t.Errorf("%v after %d writes of %v, want a and b once each", err, d.writes, d.kept)
	}
}

type memory struct {
	kept   map[string]bool
	writes int
	fail   bool
}

func (m *memory) Probe(ctx context.Context) error { return m.Commit(ctx) }

func (m *memory) Commit(_ context.Context, changes ...store.Change) error {
	if m.fail {
		return errors.New("no")
	}
	for _, c := range changes {
		m.kept[c.Key()] = true
		m.writes++
	}
	return nil
}
