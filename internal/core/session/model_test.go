package session

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	modelStates = regexp.MustCompile(`mtype = \{ (Connecting, [^}]*) \}`)
	modelStep   = regexp.MustCompile(`\bstep\(\w+, ([A-Z]\w+), ([A-Z]\w+)\)`)
)

// unmodelled are moves of ends that have no peer yet, before the models begin, or that end by the data
// path's word or a renegotiation with the instance just won.
var unmodelled = map[State][]State{
	Connecting: {Bound, Moving, Answering, Closed},
	Confirming: {Moving, Answering, Closed},
}

// TestModelHasTheStatesAndMovesOfTheCode: what SPIN checks are the moves that the code can make. The
// names and the legal moves are compared, not the conditions: TestRunsReplayOnTheModel is for these.
func TestModelHasTheStatesAndMovesOfTheCode(t *testing.T) {
	modelled := map[string]bool{}
	for _, name := range []string{"renegotiate.pml", "failover.pml"} {
		text, err := os.ReadFile(filepath.Join("../../../model", name))
		if err != nil {
			t.Fatal(err)
		}
		m := modelStates.FindSubmatch(text)
		if m == nil || !slices.Equal(strings.Split(string(m[1]), ", "), stateNames[:]) {
			t.Errorf("model/%s: its states are not %v", name, stateNames)
		}
		for _, m := range modelStep.FindAllSubmatch(text, -1) {
			modelled[string(m[1])+" -> "+string(m[2])] = true
		}
	}
	coded := map[string]bool{}
	for from, list := range next {
		for _, to := range list {
			name := from.String() + " -> " + to.String()
			coded[name] = true
			if want := !slices.Contains(unmodelled[from], to); want != modelled[name] {
				t.Errorf("%s: in the models: %v, want %v", name, modelled[name], want)
			}
		}
	}
	for name := range maps.Keys(modelled) {
		if !coded[name] {
			t.Errorf("%s is a move of the models only", name)
		}
	}
}
