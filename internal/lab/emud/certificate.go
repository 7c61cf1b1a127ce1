package emud

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fidelity"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
	"scaffold.dev/scaffold/internal/linux/nsenter"
)

// Certify says whether the network did what was asked of it since counting began.
func (e server) Certify(_ context.Context, q *emudv1.CertifyRequest) (*emudv1.Certificate, error) {
	c, err := e.judge(boundsOf(q.Bounds, fidelity.Usual), q.Anew)
	return certificateMessage(c), err
}

// judge makes the certificate; with anew, counting begins again.
func (e *engine) judge(bounds fidelity.Bounds, anew bool) (c fidelity.Certificate, err error) {
	e.counting.Lock()
	defer e.counting.Unlock()
	now, since, dropped := time.Now(), e.since, droppedBy(e.net.Edges())
	var all []fidelity.Direction
	for _, l := range e.links {
		lines, err := l.Measure(anew)
		if err != nil {
			return c, err
		}
		for i, m := range lines {
			d := fidelity.Direction{From: l.name(i), To: l.name(1 - i), Measure: m, Since: now.Add(-m.SetFor)}
			if edge, ok := l.Ends()[i].(*emu.Edge); ok {
				d.Entry, d.Blind, d.Dropped = true, edge.Blind(), dropped[edge.End()]-e.droppedThen[edge.End()]
			}
			all = append(all, d)
		}
	}
	shards, err := e.net.MeasureShards(anew)
	if err != nil {
		return c, err
	}
	if anew {
		e.since, e.droppedThen = now, dropped
	}
	return fidelity.Judge(since, all, shards, bounds), nil
}

// setParams changes a link, whose counting begins again.
func (l *link) setParams(e *engine, p [2]emu.Params) error {
	e.counting.Lock()
	defer e.counting.Unlock()
	var edges []*emu.Edge
	for _, node := range l.Ends() {
		if edge, ok := node.(*emu.Edge); ok {
			edges = append(edges, edge)
		}
	}
	if err := l.Set(p); err != nil {
		return err
	}
	for end, n := range droppedBy(edges) {
		e.droppedThen[end] = n
	}
	return nil
}

// droppedBy is how many frames each interface of the engine's own lost because they were not read in time. One that
// cannot be asked is left out: it is gone.
func droppedBy(edges []*emu.Edge) map[emu.End]uint64 {
	in := map[string][]emu.End{}
	for _, e := range edges {
		if !e.End().Taken { // its counters are about others, too
			in[e.End().Netns] = append(in[e.End().Netns], e.End())
		}
	}
	all := map[emu.End]uint64{}
	for netns, ends := range in {
		drops, err := dropsIn(netns)
		if err != nil {
			logf("counters of interfaces in %s: %v", netns, err)
			continue
		}
		for _, end := range ends {
			all[end] = drops[end.Dev]
		}
	}
	return all
}

// dropsIn reads what interfaces of a namespace dropped that was to be sent, by name.
func dropsIn(netns string) (drops map[string]uint64, err error) {
	err = nsenter.DoAt(netns, func() error {
		f, err := os.Open("/proc/thread-self/net/dev")
		if err != nil {
			return err
		}
		defer f.Close()
		drops, err = parseDrops(bufio.NewScanner(f))
		return err
	})
	return drops, err
}

// droppedField is the place of what was dropped of all that was to be sent in a line of /proc/net/dev, after the
// name: eight fields about receiving come before bytes, packets, errors and drops.
const droppedField = 8 + 3

func parseDrops(s *bufio.Scanner) (map[string]uint64, error) {
	drops := map[string]uint64{}
	for s.Scan() {
		name, rest, ok := strings.Cut(s.Text(), ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) <= droppedField {
			continue // the two lines of titles
		}
		n, err := strconv.ParseUint(fields[droppedField], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/net/dev: %q: %w", s.Text(), err)
		}
		drops[strings.TrimSpace(name)] = n
	}
	return drops, s.Err()
}
