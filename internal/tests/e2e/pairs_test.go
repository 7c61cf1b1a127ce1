package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// pairsEnv names, by commas, the parts that are away longer: for who looks for the cause of a failure.
const pairsEnv = "SCAFFOLD_PAIRS"

// TestWhatWorksWhileTwoAreAway takes away each part of a network, and with it each other one, and tries all that programs
// do. What works, waits or is refused is what the table says.
func TestWhatWorksWhileTwoAreAway(t *testing.T) {
	p := thePairs(t)
	for i, a := range parts {
		if !chosen(a) {
			continue
		}
		waiting := p.away(a)
		for _, b := range parts[i+1:] {
			if a.includes(b) || !nstest.Long() && (len(a.daemons) != 1 || len(b.daemons) != 1) {
				continue
			}
			with := p.away(a, b)
			if !a.leaves(b) && excepted(a, b) == nil {
				p.back(with, b)
				continue
			}
			p.back(append(waiting, with...), b, a)
			waiting = p.away(a)
		}
		p.back(waiting, a)
	}
}

var errHangs = errors.New("no end")

// patience is how long an attempt may take before the test takes it for one that hangs: a SYN is sent again after 1, 2, 3, 4,
// 5, then 7 s.
var patience = nstest.Deadline

func chosen(a part) bool {
	only := os.Getenv(pairsEnv)
	return only == "" || slices.Contains(strings.Split(only, ","), a.name)
}

// away takes the last of the parts away, those before it are away already, tries everything, and returns what waits for
// the last.
func (p *pairs) away(all ...part) (waiting []*attempt) {
	p.t.Helper()
	var names []string
	for _, x := range all {
		names = append(names, x.name)
	}
	without := strings.Join(names, " and ")
	not, before := expected(all...), expected(all[:len(all)-1]...)
	if excepted(all[0], all[len(all)-1]) != nil {
		before = nil // both come back
	}
	began := time.Now()
	p.take(all[len(all)-1])
	waiting = p.judge(without, began, not)
	return slices.DeleteFunc(waiting, func(k *attempt) bool {
		if before[k.what] != waits { // else it waits for the other one
			return false
		}
		k.cancel()
		p.end(k, patience)
		return true
	})
}

// judge tries everything, and returns what waits.
func (p *pairs) judge(without string, began time.Time, not expectation) (waiting []*attempt) {
	p.t.Helper()
	var said []string
	for _, k := range p.attempts(not) {
		if not[k.what] == waits {
			waiting = append(waiting, k)
			continue
		}
		if not[k.what] == later {
			k.cancel()
			<-k.ended
			continue
		}
		err := p.end(k, patience-time.Since(began))
		switch v := not[k.what]; {
		case v == works && err != nil:
			said = append(said, fmt.Sprintf("%s: %v (after %v), want it to work", k.what, err, k.took))
		case v == refused && (err == nil || errors.Is(err, errHangs)):
			said = append(said, fmt.Sprintf("%s: %v, want it refused", k.what, err))
		}
		if k.took > 500*time.Millisecond {
			p.t.Logf("%s: %s took %v", without, k.what, k.took.Round(10*time.Millisecond))
		}
	}
	notYet := time.After(0)
	if nstest.Long() && len(waiting) > 0 { // what does not wait has the time to end
		notYet = time.After(4 * time.Second)
	}
	<-notYet
	for _, k := range waiting {
		select {
		case err := <-k.ended:
			said = append(said, fmt.Sprintf("%s waits for nobody: %v", k.what, err))
			k.ended <- err
		default:
		}
	}
	p.t.Logf("%s: %v", without, time.Since(began).Round(time.Millisecond))
	if len(said) > 0 {
		p.t.Errorf("without %s:\n  %s\nlook at: %s", without, strings.Join(said, "\n  "), p.look())
	}
	return waiting
}

// back brings parts back, and ends what waited for them.
func (p *pairs) back(waiting []*attempt, all ...part) {
	p.t.Helper()
	for _, x := range all {
		p.give(x)
	}
	for _, k := range waiting {
		if err := p.end(k, patience); err != nil {
			p.t.Errorf("%s, when what it waits for is back: %v\nlook at: %s", k.what, err, p.look())
		}
	}
	p.whole()
}

// end waits for the end of an attempt. One that hangs is an error, and is given up.
func (p *pairs) end(k *attempt, patience time.Duration) (err error) {
	select {
	case err = <-k.ended:
	case <-time.After(max(time.Second, patience)):
		k.cancel()
		err = fmt.Errorf("%w: %w", errHangs, <-k.ended)
	}
	k.cancel()
	return err
}

// flowOf are the attempts on flows that were there.
var flowOf = map[string]string{oldFlow: "s1", elsewhere: "s2"}

// attempts begins everything that is tried.
func (p *pairs) attempts(not expectation) (all []*attempt) {
	p.port++
	port := p.port
	fresh := fmt.Sprintf("nobody%d.svc.", port)
	all = []*attempt{
		p.try(newFlow, p.connect),
		p.try(question, p.datagrams),
		p.try(knownName, func(ctx context.Context) error { return p.name(ctx, "pairs.svc.", not[knownName] == works) }),
		p.try(newName, func(ctx context.Context) error { return p.name(ctx, fresh, not[newName] == works) }),
		p.try(register, func(ctx context.Context) error { return p.register(ctx, port) }),
	}
	for what, host := range flowOf {
		if p.flows[host] != nil { // or it cannot be had without the first with what is away longer
			all = append(all, p.try(what, p.goesOn(host)))
		}
	}
	return all
}

// goesOn asks over the flow to a host.
func (p *pairs) goesOn(host string) func(context.Context) error {
	c := p.flows[host]
	return func(ctx context.Context) error {
		got, err := askBy(ctx, c, "again")
		if err == nil && got != host {
			err = fmt.Errorf("%s answers", got)
		}
		return err
	}
}
