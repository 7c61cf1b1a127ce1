package boost

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/bench"
)

func TestARunThatTheEmulatorSpoiltIsNotJudged(t *testing.T) {
	all := []outcome{{0.99, ""}, {0.2, "late"}, {0.97, ""}}
	r := judged("a", "ratio", ">= 0.98", "", all)
	if r.N != 2 || r.Value != 0.98 || !r.Met || r.Marked != "" {
		t.Errorf("one of three: %+v", r)
	}
	r = judged("a", "ratio", ">= 0.98", "", all[1:2])
	if r.N != 1 || r.Value != 0.2 || !r.Met || r.Marked != "late" {
		t.Errorf("the only one: %+v", r)
	}
	if missed := (bench.Report{Rows: []bench.Row{r}}).Missed(); len(missed) > 0 {
		t.Errorf("a marked row misses its aim: %v", missed)
	}
	if r = judged("a", "ratio", ">= 0.98", "", nil); r.Met || r.Marked != "" {
		t.Errorf("nothing was measured: %+v", r)
	}
	if r = judged("a", "ratio", ">= 0.98", "", all[2:]); r.Met {
		t.Errorf("0.97 in a clean run: %+v", r)
	}
}

func TestAMarkedRowSaysSo(t *testing.T) {
	rep := bench.Report{Rows: []bench.Row{judged("a", "ratio", ">= 0.98", "", []outcome{{0.2, "late"}}), judged("b", "ratio", ">= 0.98", "", []outcome{{1, ""}})}}
	var table, rows bytes.Buffer
	if err := rep.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(table.String(), "\n"); !strings.Contains(lines[1], "marked") || strings.Contains(lines[2], "marked") {
		t.Errorf("\n%s", &table)
	}
	if err := rep.WriteJSON(&rows); err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	if err := json.Unmarshal(rows.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	if _, ok := all[1]["marked"]; ok || all[0]["marked"] != "late" {
		t.Errorf("%s", &rows)
	}
}

func TestPairsAreOfTheSameTurn(t *testing.T) {
	ours := []outcome{{10, ""}, {20, ""}, {30, "ours"}, {40, ""}}
	peers := []outcome{{5, ""}, {0, ""}, {10, "theirs"}, {8, "late"}}
	want := []outcome{{2, ""}, {3, "ours"}, {5, "late"}}
	if got := paired(ours, peers, quotient); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := paired(ours[:1], peers, difference); !slices.Equal(got, []outcome{{5, ""}}) {
		t.Errorf("%v", got)
	}
}

func TestEverybodyHasATurnInEachRound(t *testing.T) {
	first := map[int]bool{}
	for round := range 4 {
		seen := map[int]bool{}
		for place := range 3 {
			seen[turn(round, place, 3)] = true
		}
		if len(seen) != 3 {
			t.Errorf("round %d: %v", round, seen)
		}
		first[turn(round, 0, 3)] = true
	}
	if len(first) != 2 {
		t.Errorf("who goes first: %v", first)
	}
}
