package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"slices"
	"testing"

	"scaffold.dev/scaffold/internal/nstest"
	"scaffold.dev/scaffold/model"
)

// A decision is a line of a host's journal, as the model reads it.
type decision struct {
	At     int64
	Host   string
	Flow   netip.Addr
	Server bool
	model.Event
}

// TestMovesOfRealHostsReplayOnTheModel: what the daemons of two hosts decided about a flow while both moved over a
// slow and lossy network, their journals say, and SPIN does the same with the model.
func TestMovesOfRealHostsReplayOnTheModel(t *testing.T) {
	m := theMobile(t)
	spin := nstest.Program(t, "spin", "spin")
	m.middle("delay 10ms loss 10%")
	defer m.middle("delay 0s loss 0%")
	before := m.journal("c1", "s2")
	talks := []*talk{m.talkTCP("s2", 410), m.talkUDP("s2", 411)}
	m.goOn("the beginning", talks...)
	for range 2 {
		m.hop("c1", "")
		m.both("gap 50ms")
		m.goOn("the moves", talks...)
	}
	runs := map[netip.Addr][]model.Event{}
	for _, d := range m.journal("c1", "s2")[len(before):] {
		if d.Server {
			d.End = model.Server
		}
		runs[d.Flow] = append(runs[d.Flow], d.Event)
	}
	replayed := 0
	for flow, run := range runs {
		if b := run[0].Before; b.State != "Bound" || b.Epoch+b.Seen > 0 {
			continue // of an earlier test
		}
		n, err := model.Replay(t.Context(), spin, run)
		if err != nil {
			t.Errorf("flow %v: %v", flow, err)
		}
		t.Logf("flow %v: %d of %d decisions replayed", flow, n, len(run))
		if n >= 10 {
			replayed++
		}
	}
	if replayed < len(talks) {
		t.Errorf("%d flows were replayed, want %d\nlook at: %s", replayed, len(talks), m.lab.Journal("c1"))
	}
}

// journal is what hosts decided so far, in the order of time.
func (m *mobile) journal(hosts ...string) (all []decision) {
	m.t.Helper()
	for _, h := range hosts {
		file, err := os.Open(m.lab.Journal(h))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			m.t.Fatal(err)
		}
		defer file.Close()
		for dec := json.NewDecoder(file); ; {
			var d decision
			if err := dec.Decode(&d); err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			} else if err != nil {
				m.t.Fatalf("%s: %v", file.Name(), err)
			}
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b decision) int { return cmp.Compare(a.At, b.At) })
	return all
}
