package timeline

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
)

// A scene is a network in which nothing happens but what the test wants.
type scene struct {
	mu      sync.Mutex
	done    []string
	act     func(a file.Action) error
	prints  string // by commands that are read
	ended   bool   // such a command
	counted chan struct{}
}

func (s *scene) Do(_ context.Context, a file.Action) error {
	s.mu.Lock()
	s.done = append(s.done, a.String())
	s.mu.Unlock()
	if s.act == nil {
		return nil
	}
	return s.act(a)
}

func (s *scene) Output(ctx context.Context, _ string, argv ...string) ([]byte, error) {
	s.mu.Lock()
	s.done = append(s.done, strings.Join(argv, " "))
	s.mu.Unlock()
	return exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
}

func (s *scene) Begin(context.Context, string, []string) (*Command, error) {
	return &Command{strings.NewReader(s.prints), func() { s.ended = true }}, nil
}

func (s *scene) In(_ string, f func() error) error { return f() }
func (s *scene) Counter(string, string) Counter    { return counter{s} }
func (c counter) Close()                           {}
func (c counter) Bytes() (uint64, uint64, error)   { c.counted <- struct{}{}; return 0, 1e6, nil }

type counter struct{ *scene }

func parse(t *testing.T, text string) *file.File {
	t.Helper()
	f, err := file.Parse("t.yaml", []byte("name: t\ntitle: A run\nnodes: {h1: host, r: plain, h2: host}\nlinks: [[h1, r], [r, h2]]\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestStepsAreDoneInTheirOrderAndMeasuredAfterwards(t *testing.T) {
	s := &scene{act: func(a file.Action) error {
		if a.Verb == "unplug" {
			return errors.New("no such link")
		}
		return nil
	}}
	r, err := Play(t.Context(), parse(t, `
timeline: [{at: 0s, do: cut h1 r, label: lost}, {at: 0s, do: heal h1 r}, {at: 1ms, do: unplug h1 r}]
measure: [{name: says, node: h1, run: echo all}, {name: fails, node: h1, run: "sh -c 'echo bad; exit 3'"}, {name: none, node: h1, run: /no/such/program}]
`), s, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"cut h1 r", "heal h1 r", "unplug h1 r", "echo all", "sh -c echo bad; exit 3", "/no/such/program"}; !slices.Equal(s.done, want) {
		t.Errorf("done %q, want %q", s.done, want)
	}
	if r.Name != "t" || r.Title != "A run" || r.Steps[0].Label != "lost" || r.Steps[2].Error != "no such link" || !r.Failed() {
		t.Errorf("%+v", r)
	}
	m := r.Measures
	if m[0].Output != "all\n" || m[0].Exit != 0 || m[1].Output != "bad\n" || m[1].Exit != 3 || m[1].Error != "" || m[2].Exit != -1 || m[2].Error == "" {
		t.Errorf("%+v", m)
	}
}

func TestAStepThatTakesItsTimeHoldsNoOtherUp(t *testing.T) {
	healed := make(chan struct{})
	s := &scene{act: func(a file.Action) error {
		switch a.Verb {
		case "flap":
			<-healed // the next step
		case "heal":
			close(healed)
		}
		return nil
	}}
	r, err := Play(t.Context(), parse(t, "timeline: [{at: 0s, do: flap h1 r every 1s times 1}, {at: 0s, do: heal h1 r}]\n"), s, t.Logf)
	if err != nil || len(r.Steps) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAnInterruptedRunKeepsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &scene{act: func(file.Action) error { cancel(); return nil }}
	r, err := Play(ctx, parse(t, "timeline: [{at: 0s, do: cut h1 r}, {at: 1h, do: heal h1 r}]\nmeasure: [{name: says, node: h1, run: echo all}]\n"), s, t.Logf)
	if !errors.Is(err, context.Canceled) || len(r.Steps) != 1 || r.Measures != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestALinkIsReadUntilTheRunEnds(t *testing.T) {
	s := &scene{counted: make(chan struct{})}
	s.act = func(file.Action) error { // the run lasts until it was counted three times
		for range 3 {
			<-s.counted
		}
		go func() { // a reader that has begun to count ends
			for range s.counted {
			}
		}()
		return nil
	}
	r, err := Play(t.Context(), parse(t, "series: [{name: sent, panel: Mbit/s, node: h1, sent: r, every: 10ms}]\ntimeline: [{at: 0s, do: cut h1 r}]\n"), s, t.Logf)
	close(s.counted)
	if err != nil || len(r.Series) != 1 || r.Series[0].Panel != "Mbit/s" || len(r.Series[0].Points) < 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, p := range r.Series[0].Points {
		if p[1] != 0 { // it stays a million
			t.Errorf("a count that does not grow grows by %v Mbit/s", p[1])
		}
	}
}

func TestNumbersOfACommandAreReadAsTheyCome(t *testing.T) {
	now := 0.0
	since := func() float64 { now += 0.1; return now }
	for _, c := range []struct {
		prints string
		rate   bool
		want   [][2]float64
		err    string
	}{
		{"1\n21\n 7.5 \n", false, [][2]float64{{0.1, 1}, {0.2, 21}, {0.3, 7.5}}, ""},
		{"1\n21\n11\n", true, [][2]float64{{0.2, 200}, {0.3, 0}}, ""}, // a count that fell began anew
		{"1\nmany\n2\n", false, [][2]float64{{0.1, 1}}, `"many"`},
		{"NaN\n", false, nil, `"NaN"`},
	} {
		now = 0
		res := &SeriesResult{}
		err := readLines(strings.NewReader(c.prints), since, c.rate, res)
		if !slices.Equal(res.Points, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q gives %v, %v; want %v, %s", c.prints, res.Points, err, c.want, c.err)
		}
	}
}

func TestACommandThatIsReadEndsWithTheRun(t *testing.T) {
	s := &scene{prints: "1\nmany\n"}
	r, err := Play(t.Context(), parse(t, "series: [{name: words, node: h1, run: cat}]\n"), s, t.Logf)
	if err != nil || !s.ended || len(r.Series) != 1 {
		t.Errorf("ended: %v; %+v, %v", s.ended, r, err)
	}
}

func TestGrowth(t *testing.T) {
	var g growth
	for _, c := range []struct {
		at, count, rate float64
		ok              bool
	}{{1, 5, 0, false}, {1.5, 15, 20, true}, {1.5, 20, 0, false}, {2, 3, 0, true}, {4, 13, 5, true}} {
		if rate, ok := g.per(c.at, c.count); rate != c.rate || ok != c.ok {
			t.Errorf("%v at %v s: %v, %v; want %v, %v", c.count, c.at, rate, ok, c.rate, c.ok)
		}
	}
}
