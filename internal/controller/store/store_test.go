package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Dir: dir, Network: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil)), ops: elsewhereOps})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A controller of before, or of after, reads the same record of a weight.
func TestTheFormOfAnOverride(t *testing.T) {
	o := Override{Service: sid.ServiceID{SS: 1, Suffix: 0x10000}, Host: "s1", Override: plan.Override{Weight: 3, Set: true}, Mode: names.Shed}
	text, err := json.Marshal(o)
	if want := `"host":"s1","weight":3,"set":true,"drain":false,"mode":"shed"}`; err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("%v: stored as %s, want the end %s", err, text, want)
	}
}

func TestWhatWasCommittedIsThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	id := sid.ServiceID{SS: 1, Suffix: 0x10000}
	want := State{
		Services: []names.Record{{Name: "web", ID: id, Policy: names.Policy{Weight: 3}, Version: 2, Created: 5}},
		Hosts: []Host{{Name: "s1", Key: []byte{1, 2}, Identity: 7, Place: Place{Locator: 0xfd5d000000010101, Router: "r1"},
			Others: []Place{{Locator: 0xfd5d000000010201, Router: "r2", Port: "e1"}}}},
		Routers:     []Router{{Name: "r1", Block: 1, Service: true}},
		Links:       []Links{{Router: "r1", Links: []Link{{Port: "e0", Peer: "r2", PeerPort: "e1", Via: "fe80::2", Up: true, Cost: 1}}}},
		Overrides:   []Override{{Service: id, Host: "s1", Override: plan.Override{Set: true, Drain: true}}},
		Quarantines: []Quarantine{{Locator: 0xfd5d000000010102, Host: "s2"}},
		Pledges:     []Pledge{{Locator: 0xfd5d000000010101, Host: "s1", Since: 1, Issued: 2, Valid: 3, Until: 4}},
		Redirects:   []Redirect{{From: 0xfd5d000000010102, To: 0xfd5d000000010103, Host: "s2"}},
		SwitchFlows: []SwitchFlow{{Switch: "s1", Number: 2, Match: "any", Actions: "NORMAL", Priority: 3, First: true}},
		Served:      []Served{{Service: id, Since: 6}},
		Tokens:      []Token{{ID: "ab", Hash: []byte{1}, Role: "host", Expires: 7, Uses: 2, Used: []Member{{Role: "host", Name: "s1", Key: []byte{3}}}}},
		Members:     []Member{{Role: "host", Name: "s1", Key: []byte{3}, Issued: 4}},
		Revoked:     []Revoked{{Key: []byte{4}, Role: "router", Name: "r9", At: 5}},
		Epoch:       1,
	}
	s := open(t, dir)
	first, err := s.Begin(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	want.ID = first.ID
	gone := Override{Service: id, Host: "s9"}
	err = s.Commit(t.Context(), PutService(want.Services[0]), PutHost(want.Hosts[0]), PutRouter(want.Routers[0]), PutLinks(want.Links[0]),
		PutOverride(want.Overrides[0]), PutOverride(gone), PutQuarantine(want.Quarantines[0]), PutPledge(want.Pledges[0]), PutRedirect(want.Redirects[0]),
		PutSwitchFlow(want.SwitchFlows[0]), PutSwitchFlow(SwitchFlow{Switch: "s1", Number: 1}),
		PutToken(want.Tokens[0]), PutToken(Token{ID: "gone"}), PutMember(want.Members[0]), PutMember(Member{Role: "host", Name: "s9"}),
		PutRevoked(want.Revoked[0]), PutRevoked(Revoked{Key: []byte{7}}), PutHost(Host{Name: "s9"}), PutServed(want.Served[0]), PutServed(Served{Service: sid.ServiceID{SS: 1, Suffix: 2}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), DeleteOverride(gone), DeleteSwitchFlow("s1", 1), DeleteToken("gone"),
		DeleteMember(Member{Role: "host", Name: "s9"}), DeleteRevoked(Revoked{Key: []byte{7}}), DeleteHost("s9"),
		DeleteServed(sid.ServiceID{SS: 1, Suffix: 2})); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	if got, err := s.Load(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("after a restart: %+v, %v\nwant %+v", got, err, want)
	}
	if got, err := s.Begin(t.Context(), ""); err != nil || got.Epoch != 2 {
		t.Errorf("the second start is counted as %d, %v", got.Epoch, err)
	}
}

// A disk of its own, in a mount namespace of its own, filled and emptied.
func TestAFullDiskIsSaidAndLosesNothing(t *testing.T) {
	safety.Test(t, safety.Record)
	dir := nstest.Disk(t, 64<<20)
	if dir == "" {
		return
	}
	s := open(t, dir)
	defer s.Close()
	if err := s.Commit(t.Context(), PutHost(Host{Name: "before"})); err != nil {
		t.Fatal(err)
	}
	filler := dir + "/filler"
	if err := nstest.Fill(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), PutHost(Host{Name: "while"})); !errors.Is(err, ErrFull) {
		t.Errorf("a write on a full disk: %v, want ErrFull", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), PutHost(Host{Name: "after"})); err != nil {
		t.Errorf("with room again: %v", err)
	}
	got, err := s.Load(t.Context())
	if err != nil || len(got.Hosts) != 2 || got.Hosts[0].Name != "after" || got.Hosts[1].Name != "before" {
		t.Errorf("stored are %+v, %v; want before and after", got.Hosts, err)
	}
}

func TestEtcdThatGivesUpIsStartedAgain(t *testing.T) {
	s := open(t, t.TempDir())
	defer func() { s.Close() }()
	if err := s.Commit(t.Context(), PutHost(Host{Name: "before"})); err != nil {
		t.Fatal(err)
	}
	why := "as if its disk had failed"
	s.server.broken.Store(&why)
	if err := s.Commit(t.Context(), PutHost(Host{Name: "after"})); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load(t.Context()); err != nil || len(got.Hosts) != 2 {
		t.Errorf("stored are %+v, %v", got.Hosts, err)
	}
}

func TestAHostOfBeforeFurtherUplinksIsRead(t *testing.T) {
	var s State
	old := `{"name":"s1","locator":` + fmt.Sprint(uint64(0xfd5d000000010101)) + `,"identity":7,"router":"r1","port":"e0","mac":"AgAAAAAB","here":true}`
	if err := s.read("host/s1", []byte(old)); err != nil {
		t.Fatal(err)
	}
	want := Host{Name: "s1", Identity: 7, Here: true, Place: Place{Locator: 0xfd5d000000010101, Router: "r1", Port: "e0", MAC: []byte{2, 0, 0, 0, 0, 1}}}
	if !reflect.DeepEqual(s.Hosts, []Host{want}) {
		t.Errorf("read %+v, want %+v", s.Hosts, want)
	}
}
