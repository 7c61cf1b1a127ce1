package liveness

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
)

const hostA = sid.Locator(0xfd5d000000010101)

// A probing is a prober with one host whose answers the test gives.
type probing struct {
	*Probes
	last uint64 // nonce of the last probe
}

func newProbing() *probing {
	p := &probing{Probes: New(Limits{Suspect: 3, Gone: 40})}
	p.Add(hostA, "eth1", 1000)
	return p
}

// rounds runs n rounds and answers their probes, or not.
func (p *probing) rounds(n int, answer bool) (changes []Change) {
	for range n {
		changes = append(changes, p.Turn(func(_ sid.Locator, nonce uint64) { p.last = nonce })...)
		if answer {
			changes = append(changes, p.Answered(hostA, p.last)...)
		}
	}
	return changes
}

func TestAHostIsUpAfterItsFirstAnswer(t *testing.T) {
	p := newProbing()
	if got := p.rounds(1, false); got != nil {
		t.Errorf("before any answer: %v", got)
	}
	want := []Change{{hostA, Up, 0, "probes"}}
	if got := p.rounds(5, true); !reflect.DeepEqual(got, want) {
		t.Errorf("answering: %v, want %v once", got, want)
	}
}

func TestSilenceIsSuspectThenGone(t *testing.T) {
	p := newProbing()
	p.rounds(1, true)
	if got := p.rounds(3, false); got != nil {
		t.Errorf("three probes out, the last may yet be answered: %v", got)
	}
	if got, want := p.rounds(1, false), []Change{{hostA, Suspect, 3, "probes"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("three unanswered: %v, want %v", got, want)
	}
	if got := p.rounds(36, false); got != nil {
		t.Errorf("up to forty unanswered: %v", got)
	}
	if got, want := p.rounds(1, false), []Change{{hostA, Gone, 40, "probes"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("forty unanswered: %v, want %v", got, want)
	}
	if got, want := p.rounds(1, true), []Change{{hostA, Up, 0, "probes"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("one answer: %v, want %v", got, want)
	}
}

func TestAHostThatNeverAnsweredIsSuspectAndWaitedForLonger(t *testing.T) {
	p := newProbing()
	if got, want := p.rounds(200, false), []Change{{hostA, Suspect, 3, "probes"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("200 rounds: %v, want %v", got, want)
	}
	if got := p.rounds(1, false); len(got) != 1 || got[0].State != Gone {
		t.Errorf("round 201: %v, want it gone", got)
	}
}

func TestCarrierLossIsGoneAtOnce(t *testing.T) {
	p := newProbing()
	p.rounds(1, true)
	if got := p.Carrier("eth2", false); got != nil {
		t.Errorf("another port: %v", got)
	}
	if got := p.Carrier("eth1", false); len(got) != 1 || got[0].State != Gone || got[0].Reason != "carrier" {
		t.Errorf("carrier loss: %v", got)
	}
	if got := p.rounds(1, true); got != nil {
		t.Errorf("an answer from before the loss: %v", got)
	}
	p.Carrier("eth1", true)
	if got := p.rounds(1, true); len(got) != 1 || got[0].State != Up {
		t.Errorf("an answer after carrier came back: %v", got)
	}
}

func TestForeignAnswersAreIgnored(t *testing.T) {
	p := newProbing()
	p.rounds(2, false)
	for _, nonce := range []uint64{999, p.last + 1, 0} {
		if got := p.Answered(hostA, nonce); got != nil {
			t.Errorf("nonce %d was never sent: %v", nonce, got)
		}
	}
	if got := p.Answered(hostA+1, p.last); got != nil {
		t.Errorf("a host that was not probed answered: %v", got)
	}
}

// TestOneAnswerInThreeKeepsAHostUp: whatever the pattern, a host is suspect only after three in a row.
func TestOneAnswerInThreeKeepsAHostUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newProbing()
		p.rounds(1, true)
		for _, silent := range rapid.SliceOf(rapid.IntRange(0, 2)).Draw(t, "silences") {
			if got := append(p.rounds(silent, false), p.rounds(1, true)...); got != nil {
				t.Fatalf("%d unanswered in a row: %v", silent, got)
			}
		}
	})
}
