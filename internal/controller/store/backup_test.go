package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"
)

// backedUp is a backup of a small network, as text.
func backedUp(t testing.TB, s *Store) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.Backup(t.Context(), "yesterday", "devel", &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func filled(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Dir: dir, Network: "n", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	err = s.Commit(t.Context(), service("a", 1), PutHost(Host{Name: "h1", Here: true}), PutToken(Token{ID: "x"}),
		PutQuarantine(Quarantine{Locator: 7, Host: "h2"}), PutRedirect(Redirect{From: 7, To: 8, Host: "h2"}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestARestoredStateIsThatOfTheBackupAndLaterThanAllTerms(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	s := filled(t, t.TempDir())
	text := backedUp(t, s)
	b, err := ReadBackup(strings.NewReader(text))
	if err != nil || b.Network != "n" || b.Kinds()["service"] != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	for range 3 {
		if _, err := s.Begin(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	before, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: t.TempDir(), Network: "n", Log: s.cfg.Log}
	if err := Restore(t.Context(), cfg, b); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), cfg, b); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("into a store with a network: %v, want ErrNotEmpty", err)
	}
	got, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if err := Restore(t.Context(), cfg, b); !errors.Is(err, ErrInUse) {
		t.Errorf("under a controller that runs: %v, want ErrInUse", err)
	}
	after, err := got.Begin(t.Context(), "")
	switch {
	case err != nil:
		t.Fatal(err)
	case len(after.Services) != 1 || len(after.Hosts) != 1 || after.ID != before.ID || after.Restored == nil:
		t.Errorf("restored %+v", after)
	case after.Epoch <= before.Epoch:
		t.Errorf("epoch %d after %d", after.Epoch, before.Epoch)
	case len(after.Tokens) != 0 || len(after.Redirects) != 0 || len(after.Quarantines) != 1 || after.Quarantines[0].Host != "":
		t.Errorf("tokens %v, redirects %v, quarantines %v: want none, none, one that is nobody's", after.Tokens, after.Redirects, after.Quarantines)
	}
}

func TestABackupOfAnotherNetworkOrInTheWrongPlaceIsRefused(t *testing.T) {
	t.Parallel()
	s := filled(t, t.TempDir())
	b, err := ReadBackup(strings.NewReader(backedUp(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	err = Restore(t.Context(), Config{Dir: t.TempDir(), Network: "m", Log: s.cfg.Log}, b)
	if !errors.Is(err, ErrOtherNetwork) {
		t.Errorf("%v, want ErrOtherNetwork", err)
	}
	endpoint, stop := serveEtcd(t, t.TempDir(), "127.0.0.1:0")
	defer stop()
	other := reach(t, "n", endpoint)
	term := lead(t, other)
	if err := Restore(t.Context(), Config{Endpoints: []string{endpoint}, Network: "n", Log: s.cfg.Log}, b); !errors.Is(err, ErrRunning) {
		t.Errorf("under a leader: %v, want ErrRunning", err)
	}
	term.Resign()
	if err := Restore(t.Context(), Config{Endpoints: []string{endpoint}, Network: "n", Log: s.cfg.Log}, b); err != nil {
		t.Errorf("into an etcd without the network: %v", err)
	}
}

func TestAnInterruptedRestoreIsNotTakenForAState(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	s := filled(t, t.TempDir())
	b, err := ReadBackup(strings.NewReader(backedUp(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: t.TempDir(), Network: "n", Log: s.cfg.Log}
	half, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := half.Commit(t.Context(), Change{"restoring", b.Made}, service("old", 9)); err != nil {
		t.Fatal(err)
	}
	if _, err := half.Begin(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "restore` again") {
		t.Errorf("a controller on half a restore: %v, want that it is to be run again", err)
	}
	half.Close()
	if err := Restore(t.Context(), cfg, b); err != nil {
		t.Fatal(err)
	}
	whole, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if state, err := whole.Begin(t.Context(), ""); err != nil || len(state.Services) != 1 || state.Services[0].Name != "a" {
		t.Errorf("%+v, %v: want the backup's one service", state.Services, err)
	}
}

func TestADamagedBackupIsRefusedAndSaysWhere(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	text := backedUp(t, filled(t, t.TempDir()))
	lines := strings.SplitAfter(text, "\n")
	for name, c := range map[string]struct{ text, want string }{
		"empty":       {"", "cut off"},
		"not one":     {"hello\n", "does not say"},
		"other JSON":  {"{}\n", "does not say"},
		"cut":         {strings.Join(lines[:2], ""), "cut off"},
		"half a line": {text[:len(text)-5], "cut off"},
		"changed":     {strings.Replace(text, `"a"`, `"b"`, 1), "changed or damaged"},
		"a line less": {lines[0] + strings.Join(lines[2:], ""), "changed or damaged"},
		"garbage":     {lines[0] + "\x00\x01\n" + strings.Join(lines[1:], ""), "line 2 cannot be read"},
		"more":        {text + "x", "more follows"},
		"schema":      {strings.Replace(text, `"schema":1`, `"schema":7`, 1), "schema 7"},
		"one line":    {lines[0] + strings.Repeat("x", maxBackupLine+8192), "longer than any record"},
	} {
		_, err := ReadBackup(strings.NewReader(c.text))
		if !errors.Is(err, ErrBackup) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.200v; want %q", name, err, c.want)
		}
	}
}

// TestABackupOfAFormerFormIsBroughtUp: it has the number of its records' form, reads as what it will be, and becomes
// that where a controller starts on it.
func TestABackupOfAFormerFormIsBroughtUp(t *testing.T) {
	dir := t.TempDir()
	formOne(t, dir)
	s := open(t, dir)
	text := backedUp(t, s)
	s.Close()
	withMigration(t, twice)
	b, err := ReadBackup(strings.NewReader(text))
	if err != nil || b.Schema != 1 {
		t.Fatalf("schema %d, %v", b.Schema, err)
	}
	if len(b.State.Routers) != elsewhereOps+20 || !strings.HasPrefix(b.State.Routers[0].Name, "new-") || len(b.State.Links) != 0 {
		t.Errorf("it reads as %d routers, the first %+v, and %d links", len(b.State.Routers), b.State.Routers[0], len(b.State.Links))
	}
	to := t.TempDir()
	if err := Restore(t.Context(), Config{Dir: to, Network: b.Network, Log: s.cfg.Log}, b); err != nil {
		t.Fatal(err)
	}
	got := open(t, to)
	defer got.Close()
	if _, err := got.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	migrated(t, got)
	if b, err = ReadBackup(strings.NewReader(backedUp(t, got))); err != nil || b.Schema != 2 {
		t.Errorf("a backup of what became of it: schema %d, %v; want 2", b.Schema, err)
	}
}

func FuzzReadBackup(f *testing.F) {
	f.Add(`{"format":"scaffold state","schema":1,"network":"n","records":1}` + "\n" + `{"key":"service/x","value":{}}` + "\n" + `{"sha256":"x"}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ReadBackup(strings.NewReader(text))
		if err == nil && fmt.Sprint(b.Kinds()) == "" {
			t.Error("nothing to count")
		}
	})
}
