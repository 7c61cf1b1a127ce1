package e2e

import (
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/model"
)

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
func (m *mobile) journal(hosts ...string) []model.Decision {
	m.t.Helper()
	var files []string
	for _, h := range hosts {
		files = append(files, m.lab.Journal(h))
	}
	all, err := model.Journal(files...)
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}
