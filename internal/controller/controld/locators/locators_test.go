package locators

import (
	"errors"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// a network as its locators see it.
type network struct {
	here      map[sid.Locator]string
	certified map[sid.Locator]string
	doubted   bool
	restored  bool
	held      map[sid.Locator]string // from which locator who may still send
	evicted   sid.Locator
	later     []func()
}

func (n *network) At(l sid.Locator) (host string, doubted, here bool) {
	host, here = n.here[l]
	return host, n.doubted, here
}
func (n *network) Evict(l sid.Locator, by string) {
	if host, here := n.here[l]; here && host != by {
		n.evicted = l
	}
}
func (n *network) Certified(l sid.Locator) string { return n.certified[l] }
func (n *network) CertifiedFor(l sid.Locator, host string) time.Duration {
	if n.certified[l] == host {
		return time.Hour
	}
	return 0
}
func (n *network) Restored() bool                                { return n.restored }
func (n *network) SetLeft(sid.Locator, bool)                     {}
func (n *network) SetHeld(l sid.Locator, host, router, _ string) { n.held[l] = host }
func (n *network) HeldBy(l sid.Locator) string                   { return n.held[l] }
func (n *network) Later(...store.Change)                         {}
func (n *network) After(_ time.Duration, f func())               { n.later = append(n.later, f) }

// pass is the time until all that waits is due.
func (n *network) pass() {
	due := n.later
	n.later = nil
	for _, f := range due {
		f()
	}
}

const block = sid.Locator(0x100)

func newLocators() (*Locators, *network) {
	n := &network{here: map[sid.Locator]string{}, certified: map[sid.Locator]string{}, held: map[sid.Locator]string{}}
	return New(Config{Plan: n, Saver: n, Loop: n, Hosts: n, Touch: func(string) {}}), n
}

// ask is for a locator of the block, by a host that has none.
func ask(host string, wishes ...sid.Locator) Ask {
	return Ask{Host: host, Router: "r1", Block: block, Wishes: wishes, Has: func(sid.Locator) bool { return false }}
}

func TestWhichLocatorAHostGets(t *testing.T) {
	x, n := newLocators()
	n.here[block+1], n.here[block+7] = "s1", "s1"
	x.Own(nil, []store.Place{{Locator: block + 2}}) // s2 had it, and is away
	for _, c := range []struct {
		what string
		ask  Ask
		want sid.Locator
	}{
		{"what it wishes for", ask("s3", block+9), block + 9},
		{"another one's", ask("s3", block+7), block + 3},
		{"of another router", ask("s3", 0x901), block + 3},
		{"its own", ask("s1", block+7), block + 7},
	} {
		if got, err := x.For(c.ask); err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", c.what, got, err, c.want)
		}
	}
	waits := ask("s4")
	waits.Waits = true
	if _, err := x.For(waits); !errors.Is(err, ErrWaiting) {
		t.Errorf("before it is known what others have: %v", err)
	}
	for l := block + 1; l <= block+255; l++ {
		n.here[l] = "s1"
	}
	if _, err := x.For(ask("s4")); !errors.Is(err, ErrFull) {
		t.Errorf("of a router without a free one: %v", err)
	}
}

// What was left is kept for who left it, and what is certified for whom it is certified to.
func TestWhatWasLeftIsKept(t *testing.T) {
	x, n := newLocators()
	l := block + 5
	x.Hold(l, "s1")
	if x.MayHave("s2", block, l, false) || !x.MayHave("s1", block, l, false) || len(x.Left()["s1"]) != 1 {
		t.Error("it is not kept for s1")
	}
	first := n.later
	n.later = nil
	x.Reclaim(l)
	x.Hold(l, "s1")
	first[0]()
	if _, kept := x.Held(l); !kept {
		t.Error("the first quarantine's end ends the second")
	}
	if n.pass(); !x.MayHave("s2", block, l, false) {
		t.Error("it is kept for ever")
	}
	n.certified[l] = "s3"
	if x.MayHave("s2", block, l, false) || !x.MayHave("s3", block, l, false) || x.MayHave("s3", block, block+256, false) {
		t.Error("it is not kept for whom it is certified to, or one of another block is given")
	}
}

// A host may send from what it left, for as long as nobody else may have it.
func TestWhoLeftMaySendForAWhile(t *testing.T) {
	x, n := newLocators()
	l := block + 5
	x.LetIn(store.Place{Locator: l, Router: "r1"}, "s1")
	n.certified[l] = "s1"
	if n.pass(); n.held[l] != "s1" {
		t.Error("it may not send, and its certificate counts")
	}
	delete(n.certified, l)
	if n.pass(); n.held[l] != "" {
		t.Errorf("it may send for ever: %q", n.held[l])
	}
	if x.LetIn(store.Place{Locator: l}, ""); n.held[l] != "" || len(n.later) > 0 {
		t.Error("nobody is let in")
	}
}

// After a backup was restored who says that he has a locator gets it, also of one who is only on record.
func TestWhoIsThereCountsAfterARestore(t *testing.T) {
	x, n := newLocators()
	n.restored, n.doubted = true, true
	n.here[block+4] = "s1"
	a := ask("s2", block+4)
	a.Asked = block + 4
	if got, err := x.For(a); err != nil || got != block+4 || n.evicted != block+4 {
		t.Errorf("%v, %v, evicted is %v", got, err, n.evicted)
	}
	if got, err := x.For(ask("s3")); err != nil || got != block+255 {
		t.Errorf("a new host gets %v, %v, want one that the backup's hosts did not: the last", got, err)
	}
}
