package store

import (
	"strings"
	"testing"
	"time"
)

// Controllers that reached each other in the clear get TLS one after the other: first all of them have the files, and are
// reached as before, then each is reached by https. Each step is one restart; two of three run all the time, and what was
// written is there at the end.
func TestThreeThatReachEachOtherInTheClearGetTLSOneAfterTheOther(t *testing.T) {
	t.Parallel()
	ca, cert, key := pemFiles(t)
	c := newTrio(t)
	for _, m := range c.members {
		c.start(m.Name, Cluster{Members: c.members})
	}
	written := uint64(0)
	writes := func(when string) {
		t.Helper()
		written++
		for _, s := range c.open { // any of them may lead
			c.leads(when, s, func(State) error {
				return s.Commit(t.Context(), service(strings.ReplaceAll(when, " ", "-"), written))
			})
			return
		}
	}
	writes("in the clear")
	files := Cluster{CAFile: ca, CertFile: cert, KeyFile: key}
	for _, m := range c.members {
		c.stop(m.Name)
		c.start(m.Name, files)
		writes(m.Name + " has the files")
	}
	for i, m := range c.members {
		c.stop(m.Name)
		c.members[i].URL = strings.Replace(m.URL, "http:", "https:", 1)
		lead(t, c.start(m.Name, files)).Resign() // it tells the others where it is before it runs for the lead
		writes(m.Name + " is reached by https")
	}
	for _, s := range c.open {
		members, err := s.Members(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			if !strings.HasPrefix(m.URL, "https:") {
				t.Errorf("%s is at %s, want https", m.Name, m.URL)
			}
		}
		c.leads("at the end", s, func(state State) error {
			if uint64(len(state.Services)) != written {
				t.Errorf("%d services are there of %d", len(state.Services), written)
			}
			return nil
		})
		break
	}
}

// leads does something in a term of a member's, and again where etcd had just lost its own leader.
func (c *trio) leads(when string, s *Store, do func(State) error) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		term := lead(c.t, s)
		state, err := s.Begin(c.t.Context(), "")
		if err == nil {
			err = do(state)
		}
		term.Resign()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: %v", when, err)
		}
	}
}
