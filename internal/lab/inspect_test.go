package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"scaffold.dev/scaffold/emu/pcap"
	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestHandlersOfARunningRouter(t *testing.T) {
	l := bareLab(t, circle, "handlers")
	ctx := t.Context()
	if err := l.engine.Set(ctx, "r1", "icmp-rate", "17"); err != nil {
		t.Fatal(err)
	}
	if got, err := l.engine.Get(ctx, "r1", "icmp-rate"); err != nil || got != "17" {
		t.Errorf("icmp-rate %q, %v", got, err)
	}
	all, err := l.engine.Handlers(ctx, "r1")
	names := fmt.Sprint(all)
	if err != nil || !strings.Contains(names, "routes") || !strings.Contains(names, "counters") {
		t.Errorf("handlers %v, %v", all, err)
	}
	var missing *emud.NotFoundError
	for _, c := range [][2]string{{"r1", "colour"}, {"r9", "routes"}, {"h1", "routes"}} {
		if _, err := l.engine.Get(ctx, c[0], c[1]); !errors.As(err, &missing) {
			t.Errorf("handler %s of %s: %v", c[1], c[0], err)
		}
	}
	if err := l.engine.Set(ctx, "r1", "icmp-rate", "many"); err == nil || errors.As(err, &missing) {
		t.Errorf("icmp-rate many: %v", err)
	}
}

// A growing is a recording that grows.
type growing struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *growing) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *growing) bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.text.Bytes())
}

func TestWhatCrossesALinkIsRecordedAndPlayedAgain(t *testing.T) {
	l := bareLab(t, circle, "pcap")
	sees(t, l, "h1", "h2")
	ctx, stop := context.WithCancel(t.Context())
	var file growing
	ended := make(chan error, 1)
	go func() { ended <- l.engine.Capture(ctx, "r2", "r1", &file) }()
	nstest.Wait(t, "a recording", func() error {
		if err := reaches(t, l, "h1", "h2"); err != nil {
			return err
		}
		if len(file.bytes()) < 4*100 {
			return fmt.Errorf("%d bytes are recorded", len(file.bytes()))
		}
		return nil
	})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	frames, err := pcap.Read(bytes.NewReader(file.bytes()), 1)
	if err != nil || len(frames) < 2 {
		t.Fatalf("%d frames, %v", len(frames), err)
	}
	before := carried(t, l, "r2", "r4")
	r, err := l.engine.Replay(t.Context(), "r2:r1", 100, bytes.NewReader(file.bytes()))
	if err != nil || r.Arrived != len(frames) {
		t.Errorf("%+v of %d, %v", r, len(frames), err)
	}
	if carried(t, l, "r2", "r4") == before {
		t.Error("what was played went nowhere")
	}
	for port, want := range map[string]string{"r2": "expected NODE:NEIGHBOUR", "r2:r3": "no emulated link"} {
		if _, err := l.engine.Replay(t.Context(), port, 1, &file.text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("into %s: %v", port, err)
		}
	}
}

func TestARunEndsWithACertificate(t *testing.T) {
	nstest.Root(t)
	f, err := file.Parse("certified.yaml", []byte(strings.Replace(circle, "NAME", nstest.LabNamed("certified"), 1)+
		"measure: [{name: ping, node: h1, run: ping -c 3 -i 0.05 h2}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), f, Options{Log: t.Logf})
	if err != nil || r.Certificate == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	passed := uint64(0)
	for _, row := range r.Certificate.Links {
		passed += row.Packets
		if row.Missing != 0 || row.DelayAsked > 0 && row.Asked == "" {
			t.Errorf("%+v", row)
		}
	}
	if len(r.Certificate.Links) != 12 || passed == 0 || len(r.Certificate.Shards) == 0 {
		t.Errorf("%d directions, %d packets, %+v", len(r.Certificate.Links), passed, r.Certificate.Shards)
	}
}

func TestAnInterruptedRunHasNoCertificate(t *testing.T) {
	l := bareLab(t, circle, "half")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := l.Play(ctx); !errors.Is(err, context.Canceled) || r.Certificate != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestARunWhoseEngineDiesIsNotFaithful(t *testing.T) {
	l := bareLab(t, circle, "unfaithful")
	if err := l.procs.Group(file.ManagementNode, engine.Name).Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := l.engine.OfRun(t.Context()); c == nil || c.Faithful || !strings.Contains(c.Reasons[0], "does not answer") {
		t.Errorf("%+v", c)
	}
	if _, err := l.engine.Get(t.Context(), "r1", "routes"); !errors.Is(err, emud.ErrGone) {
		t.Errorf("a handler of a dead engine: %v", err)
	}
	s, err := l.Status()
	if err != nil || s.Nodes[1].State != "down" || s.Links[1].State != "down" {
		t.Errorf("%+v, %v", s, err)
	}
}
