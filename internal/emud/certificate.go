package emud

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fidelity"
	"scaffold.dev/scaffold/internal/nsenter"
)

// certify says whether the network did what was asked of it so far.
func (e *engine) certify(r *http.Request) (any, error) {
	bounds := fidelity.Usual
	if r.ContentLength != 0 {
		if err := read(r, &bounds); err != nil {
			return nil, err
		}
	}
	dropped := droppedBy(e.net.Edges())
	var all []fidelity.Direction
	for _, l := range e.links {
		lines, err := l.Stats()
		if err != nil {
			return nil, err
		}
		for i, s := range lines {
			d := fidelity.Direction{From: l.name(i), To: l.name(1 - i), Stats: s}
			if edge, ok := l.Ends()[i].(*emu.Edge); ok {
				d.Dropped = dropped[edge.End()]
			}
			all = append(all, d)
		}
	}
	shards, err := e.net.Shards()
	if err != nil {
		return nil, err
	}
	return fidelity.Judge(all, shards, bounds), nil
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

// Certificate says whether the network did what was asked of it so far, within the usual bounds.
func (c *Client) Certificate(ctx context.Context) (all fidelity.Certificate, err error) {
	return all, c.do(ctx, "GET", "/v1/certificate", nil, &all)
}
