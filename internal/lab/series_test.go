package lab

import (
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// watched is a lab that measures: c1 sends to a closed port of r1, which says so each time.
const watched = `
name: NAME
title: What is measured
nodes:
  ctl: controller
  r1: {kind: router, service: true}
  c1: host
links:
  - [c1, r1]
series:
  - {name: sent, panel: Mbit/s, node: c1, sent: r1, every: 20ms}
  - {name: received, panel: Mbit/s, node: c1, received: r1, every: 20ms}
  - {name: connections, panel: connections, node: c1, connections: 7, every: 20ms}
  - {name: numbers, node: c1, run: "sh -c 'echo 1; sleep 0.1; echo 21; sleep 1000'"}
  - {name: growth, node: c1, run: "sh -c 'echo 1; sleep 0.1; echo 21; sleep 1000'", rate: true}
  - {name: words, node: c1, run: "echo many"}
timeline:
  - {at: 200ms, label: talks, do: "exec c1: bash -c 'for i in 1 2 3; do echo x >/dev/udp/fe80::2%to-r1/9; sleep 0.1; done 2>/dev/null; true'"}
  - {at: 800ms, do: cut c1}
`

func TestARunReadsItsSeries(t *testing.T) {
	nstest.Root(t)
	f, err := file.Parse("watched.yaml", []byte(strings.Replace(watched, "NAME", nstest.LabNamed("watched"), 1)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), f, Options{stub: []string{"sleep", "1000"}, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Series) != 6 || r.Took < 0.8 {
		t.Fatalf("%d series in %v s", len(r.Series), r.Took)
	}
	for i := range 2 {
		talk := func(p [2]float64) bool { return p[1] > 0 }
		if s := r.Series[i]; s.Error != "" || !slices.ContainsFunc(s.Points, talk) {
			t.Errorf("%+v: nothing moved", s)
		}
	}
	if s := r.Series[2]; s.Error != "" || len(s.Points) < 5 || s.Points[4][1] != 0 {
		t.Errorf("connections %+v", s)
	}
	if s := r.Series[3]; s.Error != "" || len(s.Points) != 2 || s.Points[0][1] != 1 || s.Points[1][1] != 21 {
		t.Errorf("numbers %+v", s)
	}
	if s := r.Series[4]; len(s.Points) != 1 || s.Points[0][1] <= 0 { // by how much, TestGrowth of timeline: a busy machine reads the first line late
		t.Errorf("a count that grew has not: %+v", s)
	}
	if s := r.Series[5]; !strings.Contains(s.Error, `"many"`) || !r.Failed() {
		t.Errorf("words %+v", s)
	}
}
