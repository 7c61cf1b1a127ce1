package bench

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestQuantile(t *testing.T) {
	s := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4} {
		if got := Quantile(s, q); got != want {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, want)
		}
	}
}

func TestRowJudgesItsAim(t *testing.T) {
	for _, c := range []struct {
		aim  string
		v    float64
		want bool
	}{{"<= 5", 5, true}, {"<= 5", 6, false}, {">= 0.95", 0.96, true}, {">= 0.95", 0.9, false}, {"= 0", 0, true}, {"= 0", 1, false}, {"", 1, true}} {
		if got := NewRow("x", "", c.aim, "", []float64{c.v}).Met; got != c.want {
			t.Errorf("%v against %q: met = %v", c.v, c.aim, got)
		}
	}
	if NewRow("x", "", "<= 5", "", nil).Met {
		t.Error("a row without samples must not meet its aim")
	}
}

func TestReportContract(t *testing.T) {
	var buf bytes.Buffer
	rep := Report{Rows: []Row{NewRow("a", "ns", "<= 5", "plain", []float64{1, 2, 3})}}
	if err := rep.WriteJSON(&buf); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(buf.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"name", "value", "unit", "aim", "met", "n", "p25", "p75", "peer"} {
		if _, ok := rows[0][k]; !ok {
			t.Errorf("row has no %q: %v", k, rows[0])
		}
	}
}
