package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// twice makes form 2 of form 1: routers get other names, and links are forgotten.
func twice(records map[string][]byte) (map[string][]byte, error) {
	changes := map[string][]byte{}
	for key, value := range records {
		switch kind, name, _ := strings.Cut(key, "/"); kind {
		case "router":
			var r Router
			if err := json.Unmarshal(value, &r); err != nil {
				return nil, err
			}
			r.Name = "new-" + name
			changes["router/"+r.Name], _ = json.Marshal(r)
			changes[key] = nil
		case "links":
			changes[key] = nil
		}
	}
	return changes, nil
}

// withMigration makes this version read up to form 2.
func withMigration(t *testing.T, m migration) {
	t.Helper()
	migrations[2] = m
	t.Setenv(versions.Pretend, "schema=0-2")
	t.Cleanup(func() { delete(migrations, 2) })
}

// formOne makes a store of form 1 with more records than a transaction holds.
func formOne(t *testing.T, dir string) {
	t.Helper()
	t.Setenv(versions.Pretend, "schema=0-1")
	s := open(t, dir)
	defer s.Close()
	if _, err := s.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	var changes []Change
	for i := range elsewhereOps + 20 {
		changes = append(changes, PutRouter(Router{Name: fmt.Sprint("r", i), Block: uint8(i)}), PutLinks(Links{Router: fmt.Sprint("r", i)}))
	}
	if err := s.Commit(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
}

// migrated fails unless the store is of form 2, whole, and nothing is left of the way there.
func migrated(t *testing.T, s *Store) {
	t.Helper()
	state, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Routers) != elsewhereOps+20 || len(state.Links) != 0 {
		t.Errorf("%d routers and %d links after the migration, want %d and none", len(state.Routers), len(state.Links), elsewhereOps+20)
	}
	for _, r := range state.Routers {
		if !strings.HasPrefix(r.Name, "new-r") {
			t.Errorf("router %s was not migrated, or twice", r.Name)
		}
	}
	records, err := s.records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := 0
	for key := range records {
		if strings.HasPrefix(key, staged) {
			t.Errorf("%s is left", key)
		}
		if strings.HasPrefix(key, former+"1/router/") {
			before++
		}
	}
	if before != elsewhereOps+20 {
		t.Errorf("%d of the routers from before are kept, want %d", before, elsewhereOps+20)
	}
	if f, err := formOf(records); err != nil || f.Number != 2 || f.Under {
		t.Errorf("form %+v, %v", f, err)
	}
}

func TestAnOlderFormIsMigratedOnce(t *testing.T) {
	dir := t.TempDir()
	formOne(t, dir)
	runs := 0
	withMigration(t, func(r map[string][]byte) (map[string][]byte, error) { runs++; return twice(r) })
	for range 2 {
		s := open(t, dir)
		if _, err := s.Begin(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		migrated(t, s)
		s.Close()
	}
	if runs != 1 {
		t.Errorf("the migration ran %d times", runs)
	}
}

func TestAMigrationThatIsInterruptedAnywhereEndsWhole(t *testing.T) {
	safety.Test(t, safety.Record)
	for writes := 1; ; writes++ {
		dir := t.TempDir()
		formOne(t, dir)
		withMigration(t, twice)
		s := open(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		left := writes
		s.cfg.wrote = func() {
			if left--; left == 0 {
				cancel()
			}
		}
		_, err := s.Begin(ctx, "")
		cancel()
		s.cfg.wrote = nil
		if err == nil {
			migrated(t, s)
			s.Close()
			if writes < 10 {
				t.Errorf("it ended after %d writes: the test interrupts too little", writes)
			}
			return
		}
		if _, err := s.Begin(t.Context(), ""); err != nil {
			t.Fatalf("after an end behind write %d: %v", writes, err)
		}
		migrated(t, s)
		s.Close()
	}
}

func TestAMigrationThatFailsChangesNothing(t *testing.T) {
	dir := t.TempDir()
	formOne(t, dir)
	withMigration(t, func(map[string][]byte) (map[string][]byte, error) { return nil, errors.New("router r7 makes no sense") })
	s := open(t, dir)
	defer s.Close()
	before, err := s.records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Begin(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "from schema 1 to 2: to 2: router r7 makes no sense; nothing has been changed") {
		t.Errorf("the error is %v", err)
	}
	after, err := s.records(t.Context())
	if err != nil || !maps.EqualFunc(before, after, func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Errorf("records differ after a migration that failed (%v)", err)
	}
}

func TestAFormOfAnotherVersionIsRefusedWithTheCure(t *testing.T) {
	for _, c := range []struct{ stored, reads, want string }{
		{`{"number":3,"version":"v9"}`, "schema=0-1", "is of schema 3, and this version reads 0 to 1: start version v9 or a later one, or restore a backup"},
		{`{"number":3,"under_way":true}`, "schema=0-2", "is of schema 3, and this version reads 0 to 2: start version that wrote it"},
		{`{"number":1}`, "schema=4-6", "is of schema 1, and this version reads 4 to 6: start a version between"},
		{`{"number":"x"}`, "schema=0-1", "the record schema cannot be read"},
	} {
		s := open(t, t.TempDir())
		if err := s.Commit(t.Context(), Change{schemaKey, json.RawMessage(c.stored)}); err != nil {
			t.Fatal(err)
		}
		t.Setenv(versions.Pretend, c.reads)
		_, begin := s.Begin(t.Context(), "")
		_, load := s.Load(t.Context())
		for _, err := range []error{begin, load} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s read by %s: %v, want %q", c.stored, c.reads, err, c.want)
			}
		}
		s.Close()
	}
}
