package bench

import (
	"context"
	"fmt"
	"net/netip"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/sid"
)

// A crowd is hosts behind a router that all exist on their streams to the controller alone: more
// than a machine has room for.
type crowd struct {
	agent apiv1connect.AgentClient
	hosts []*extra
	far   *connect.BidiStreamForClient[apiv1.RouterReport, apiv1.RouterOrder]
}

// An extra is one host of a crowd.
type extra struct {
	name    string
	stream  *connect.BidiStreamForClient[apiv1.HostReport, apiv1.HostOrder]
	locator sid.Locator
}

const farName = "far"

// newCrowd joins the router; its streams end with ctx.
func newCrowd(ctx context.Context, endpoint string) (*crowd, error) {
	client, base, err := api.Dial(endpoint)
	if err != nil {
		return nil, err
	}
	c := &crowd{agent: apiv1connect.NewAgentClient(client, base)}
	c.far = c.agent.Router(ctx)
	ask := &apiv1.RouterJoin{Name: farName, BootId: "crowd"}
	if _, err = member.Join(c.far, farName, &apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: ask}}); err == nil {
		err = c.far.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Neighbours{Neighbours: &apiv1.Neighbours{}}})
	}
	if err != nil {
		return nil, fmt.Errorf("join the router of the crowd: %w", err)
	}
	go func() { // ends with the stream
		for err == nil {
			_, err = c.far.Receive()
		}
	}()
	return c, nil
}

// join brings n hosts in, one triple of each list to serve, and says that they answer probes.
func (c *crowd) join(ctx context.Context, serve [][]sid.Triple) error {
	c.hosts = make([]*extra, len(serve))
	var group errgroup.Group
	for i, triples := range serve {
		group.Go(func() (err error) {
			c.hosts[i], err = c.joinOne(ctx, i, triples)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	states := &apiv1.HostStates{}
	for _, h := range c.hosts {
		states.Hosts = append(states.Hosts, &apiv1.HostState{Locator: uint64(h.locator), State: "up", Reason: "probes"})
	}
	return c.far.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Hosts{Hosts: states}})
}

func (c *crowd) joinOne(ctx context.Context, i int, triples []sid.Triple) (*extra, error) {
	h := &extra{name: fmt.Sprintf("crowd-%d", i), stream: c.agent.Host(ctx)}
	j, err := member.Join(h.stream, h.name, &apiv1.HostReport{Report: &apiv1.HostReport_Join{Join: &apiv1.Join{
		Name: h.name, BootId: "crowd", Netns: h.name, Attachment: &apiv1.Attachment{
			Router: farName, Port: h.name, LinkLocal: "fe80::1", Mac: []byte{2, 0, 0, 0, 0, byte(i)},
		},
	}}})
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", h.name, err)
	}
	prefix, err := netip.ParsePrefix(j.Locator)
	if err != nil {
		return nil, err
	}
	h.locator = sid.LocatorOf(prefix.Addr())
	go func() { // ends with the stream
		for err := error(nil); err == nil; {
			_, err = h.stream.Receive()
		}
	}()
	return h, h.report(true, triples)
}

// report says what the host serves: all of it, or a change.
func (h *extra) report(all bool, triples []sid.Triple, gone ...sid.Triple) error {
	m := &apiv1.Registrations{}
	for _, t := range triples {
		m.Entries = append(m.Entries, entry(t, false))
	}
	for _, t := range gone {
		m.Entries = append(m.Entries, entry(t, true))
	}
	if all {
		return h.stream.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Snapshot{Snapshot: m}})
	}
	return h.stream.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Delta{Delta: m}})
}

func entry(t sid.Triple, gone bool) *apiv1.Registration {
	return &apiv1.Registration{Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port), Ready: !gone, Gone: gone}
}

// leave takes all hosts out.
func (c *crowd) leave() error {
	for _, h := range c.hosts {
		if err := h.stream.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{Reason: "the crowd goes"}}}); err != nil {
			return fmt.Errorf("%s leaves: %w", h.name, err)
		}
	}
	return nil
}
