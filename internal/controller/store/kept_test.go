package store

import (
	"log/slog"
	"testing"

	"scaffold.dev/scaffold/internal/tests/freeport"
)

// TestADirectorySaysWhereItsMemberWasReached before the member begins: nothing when it is new, this machine after it was
// alone, and what others were told after it was one of several.
func TestADirectorySaysWhereItsMemberWasReached(t *testing.T) {
	t.Parallel()
	dir, among := t.TempDir(), "http://"+freeport.Address(t)
	if HasMember(dir) {
		t.Error("an empty directory has a member")
	}
	for _, c := range []struct {
		cluster *Cluster
		want    string
	}{
		{nil, ""},
		{&Cluster{Name: "c1", Peer: among}, "http://localhost:2380"},
		{&Cluster{Name: "c1", Peer: among}, among},
	} {
		s, err := Open(t.Context(), Config{Dir: dir, Name: "c1", Network: "n", Log: slog.New(slog.DiscardHandler), Cluster: c.cluster})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range s.Kept() {
			got += p.URL
		}
		if got != c.want {
			t.Errorf("%+v: it was at %q, want %q", c.cluster, got, c.want)
		}
		lead(t, s).Resign() // it tells where it is before it leads
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !HasMember(dir) {
			t.Error("the directory has no member after it ran")
		}
	}
}
