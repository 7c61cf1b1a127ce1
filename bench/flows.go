package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/bench/process"
)

// flowPorts is how many ports of the server the flows are divided among: to one a client has 64,511 at most, and a
// process often 20,000 open files.
const flowPorts = 8

// flowsLimit is how long many flows may take to begin, or to go on.
const flowsLimit = 2 * time.Minute

// Flows opens many connections from one host, measures what each takes in the maps of its edge and in its daemon, has
// the host move and measures until the last one goes on, and what they take then.
func Flows(ctx context.Context, r *Rig, service string, flows, moves int) (Report, error) {
	b := &moveBench{Rig: r, service: service, on: map[string]int{}}
	var err error
	if b.target, err = serviceTarget(ctx, r, service); err != nil {
		return b.rep, err
	}
	if err := r.FreePorts(ctx, moveClient); err != nil {
		return b.rep, err
	}
	empty, err := b.keeps(ctx)
	if err != nil {
		return b.rep, err
	}
	m, err := b.multitude(ctx, flows)
	if err != nil {
		return b.rep, err
	}
	defer m.close()
	if err := Pause(ctx, 2*time.Second); err != nil { // the daemon has counted them
		return b.rep, err
	}
	full, err := b.keeps(ctx)
	if err != nil {
		return b.rep, err
	}
	last, broke, err := b.carry(ctx, m, moves)
	if err != nil {
		return b.rep, err
	}
	moved, err := b.keeps(ctx)
	if err != nil {
		return b.rep, err
	}
	each := func(what, aim string, total float64) {
		b.rep.Rows = append(b.rep.Rows, NewRow(fmt.Sprintf("%d flows: %s per flow", flows, what), "bytes", aim, "", []float64{total / float64(flows)}))
	}
	each("kernel's maps and daemon", "<= 512", full.kernel+full.daemon-empty.kernel-empty.daemon)
	each("of that, kernel's maps", "", full.kernel-empty.kernel)
	each("of that, daemon", "", full.daemon-empty.daemon)
	each("after the host has moved, kernel's maps", "", moved.kernel-empty.kernel)
	each("after the host has moved, daemon", "", moved.daemon-empty.daemon)
	b.rep.Rows = append(b.rep.Rows,
		NewRow(fmt.Sprintf("%d flows on a host that moves: link up to the last one answered", flows), "ms", "", "", last),
		NewRow("the same, per 1000 flows", "ms", "<= 100", "", scaled(last, 1000/float64(flows))),
		NewRow("of those, connections that broke", "", "= 0", "", []float64{float64(broke)}))
	b.rep.Notes = append(b.rep.Notes, fmt.Sprintf("TCP connections of one client to %d ports of one server, each with a byte under way when the link is back; %d moves", flowPorts, moves),
		"client, server and both daemons share this machine's processors; a daemon's memory is what it has in RAM, what its garbage collector has not returned included")
	return b.rep, nil
}

func scaled(list []float64, by float64) (out []float64) {
	for _, v := range list {
		out = append(out, v*by)
	}
	return out
}

// A keeping is what flows take on the client's host, in bytes.
type keeping struct{ kernel, daemon float64 }

func (b *moveBench) keeps(ctx context.Context) (k keeping, err error) {
	uses, err := b.uses()
	if err != nil {
		return k, err
	}
	k.daemon = uses[moveClient].bytes
	for _, p := range b.programs {
		k.daemon -= process.Resident(p.cmd.Process.Pid)
	}
	k.kernel, err = b.kernelMemory(ctx, moveClient)
	return k, err
}

// A multitude is crowds of flows from one host.
type multitude struct {
	servers []*Server
	crowds  []*gathering
	flows   int
}

func (b *moveBench) multitude(ctx context.Context, flows int) (m *multitude, err error) {
	m = &multitude{flows: flows}
	to, err := netip.ParseAddrPort(b.target)
	if err != nil {
		return nil, err
	}
	for i := range uint16(flowPorts) {
		s, err := serve(b.Rig, moveServer, netip.AddrPortFrom(to.Addr(), port+i).String())
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.servers = append(m.servers, s)
	}
	if err := awaitServing(ctx, b.Rig, b.service, 2*flowPorts); err != nil {
		return nil, errors.Join(err, m.close())
	}
	for i := range uint16(flowPorts) {
		g, err := gather(b.Rig, moveClient, "tcp6", netip.AddrPortFrom(to.Addr(), port+i).String(), flows/flowPorts)
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.crowds = append(m.crowds, g)
	}
	return m, nil
}

func (m *multitude) close() error {
	for _, g := range m.crowds {
		g.close()
	}
	for _, s := range m.servers {
		s.Kill() //nolint:errcheck // the lab ends with the bench
	}
	return nil
}

// carry moves the host with its flows.
func (b *moveBench) carry(ctx context.Context, m *multitude, moves int) (last []float64, broke int64, err error) {
	for range moves {
		if err := b.unplug(ctx, moveClient, 100*time.Millisecond); err != nil {
			return nil, 0, err
		}
		for _, g := range m.crowds {
			if _, err := g.tell("ask"); err != nil {
				return nil, 0, err
			}
		}
		if err := Pause(ctx, between); err != nil {
			return nil, 0, err
		}
		at, err := b.plugIn(ctx, moveClient)
		if err != nil {
			return nil, 0, err
		}
		latest := int64(0)
		for _, g := range m.crowds {
			r, err := g.until(ctx, "report", flowsLimit, func(r agent.CrowdReport) bool { return r.Answers >= int64(g.flows) })
			if err != nil {
				return nil, 0, fmt.Errorf("the host with %d flows moved: %w", m.flows, err)
			}
			latest, broke = max(latest, r.Last), broke+r.Resets+r.Others
			if r.Broken != "" {
				b.rep.Notes = append(b.rep.Notes, "the first connection that broke: "+r.Broken)
			}
		}
		last = append(last, float64(latest-at)/1e6)
		if err := Pause(ctx, 3*time.Second); err != nil {
			return nil, 0, err
		}
	}
	return last, broke, nil
}
