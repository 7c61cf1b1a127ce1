package bench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// plainPath is the same path without Scaffold: an address of the client and one of the server, each a /128
// that is routed by hand, and a stream between them. When the client moves its address is routed anew at
// once, and Linux alone finds out.
type plainPath struct {
	b       *moveBench
	ledger  *Ledger
	server  *Program
	clients []*Program
}

const (
	plainClient = "fd00:ba5e::1"
	plainServer = "fd00:ba5e::2"
	plainHub    = "rs"
)

func newPlainPath(ctx context.Context, b *moveBench) (p *plainPath, err error) {
	p = &plainPath{b: b, ledger: NewLedger()}
	for host, addr := range map[string]string{moveClient: plainClient, moveServer: plainServer} {
		if err := p.ip(ctx, host, "addr", "add", addr+"/128", "dev", "lo", "nodad"); err != nil {
			return nil, err
		}
	}
	if err := p.follow(ctx); err != nil {
		return nil, err
	}
	to := "[" + plainServer + "]:7"
	if p.server, err = p.ledger.Serve(ctx, b.Rig, moveServer, to, moveGap); err != nil {
		return nil, err
	}
	for flow, args := range map[int][]string{flowUp: {"--up", b.size.Rate.String()}, flowDown: {"--down", b.size.Rate.String()}} {
		args = append([]string{"checked", "--to", to, "--gap", moveGap.String(), "--step", moveStep.String(), "--base", fmt.Sprint(flow)}, args...)
		c, err := p.ledger.Start(b.Rig, moveClient, args...)
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, c)
	}
	return p, p.run(ctx)
}

// run waits until both streams run.
func (p *plainPath) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	defer p.instead()()
	for _, flow := range []int{flowUp, flowDown} {
		if err := p.b.arrived(ctx, flow, 0); err != nil {
			return fmt.Errorf("without Scaffold: %w", err)
		}
	}
	return nil
}

// instead makes the bench look at these streams until the function that it returns is called.
func (p *plainPath) instead() func() {
	ours := p.b.ledger
	p.b.ledger = p.ledger
	return func() { p.b.ledger = ours }
}

func (p *plainPath) ip(ctx context.Context, node string, args ...string) error {
	out, err := p.b.Output(ctx, node, append([]string{"ip", "-6"}, args...)...)
	if err != nil {
		return fmt.Errorf("%s: ip -6 %s: %w: %s", node, strings.Join(args, " "), err, out)
	}
	return nil
}

// route is one route by hand, to a host's address over the link to the next node.
func (p *plainPath) route(ctx context.Context, node, to, next string, more ...string) error {
	for _, port := range p.b.Plan().Node(node).Ports {
		if port.Far.Name != next {
			continue
		}
		args := append([]string{"route", "replace", to + "/128", "via", port.Far.LinkLocal.String(), "dev", port.Dev}, more...)
		return p.ip(ctx, node, args...)
	}
	return fmt.Errorf("%s has no link to %s", node, next)
}

// follow routes both addresses to where the hosts are.
func (p *plainPath) follow(ctx context.Context) error {
	c, _ := p.b.sides(moveClient)
	s, _ := p.b.sides(moveServer)
	hops := [][]string{
		{moveClient, plainServer, c, "src", plainClient}, {c, plainClient, moveClient}, {c, plainServer, plainHub}, {plainHub, plainClient, c},
		{moveServer, plainClient, s, "src", plainServer}, {s, plainServer, moveServer},
	}
	if s != plainHub {
		hops = append(hops, []string{s, plainClient, plainHub}, []string{plainHub, plainServer, s})
	}
	var work sync.WaitGroup
	errs := make(chan error, len(hops))
	for _, h := range hops {
		work.Go(func() { errs <- p.route(ctx, h[0], h[1], h[2], h[3:]...) })
	}
	work.Wait()
	for range hops {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// stall breaks the client's link as hard does and routes anew as soon as the other one is there.
func (p *plainPath) stall(ctx context.Context, gone time.Duration, samples []float64) ([]float64, error) {
	if err := p.b.unplug(ctx, moveClient, gone); err != nil {
		return samples, err
	}
	at, err := p.b.plugIn(ctx, moveClient)
	if err != nil {
		return samples, err
	}
	if err := p.follow(ctx); err != nil {
		return samples, err
	}
	back := p.instead()
	for _, flow := range []int{flowUp, flowDown} {
		ms, err := p.b.firstAfter(ctx, flow, at)
		if err != nil {
			back()
			return samples, fmt.Errorf("without Scaffold, moved after %v: %w", gone, err)
		}
		samples = append(samples, ms)
	}
	back()
	if err := p.b.warm(ctx); err != nil {
		return samples, err
	}
	return samples, Pause(ctx, between)
}

func (p *plainPath) close() error {
	for _, c := range p.clients {
		if err := c.Kill(); err != nil {
			return err
		}
	}
	return p.server.Kill()
}
