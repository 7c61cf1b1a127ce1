package bench

import (
	"context"
	"fmt"
	"time"

	"scaffold.dev/scaffold/bench/agent"
)

// Rehome measures how long it takes until all of many live flows are elsewhere when their host is shed:
// streams, whose clients are told and connect again, and datagrams, whose clients notice nothing.
func Rehome(ctx context.Context, r *Rig, service string, flows, times int) (rep Report, err error) {
	to, err := serviceTarget(ctx, r, service)
	if err != nil {
		return rep, err
	}
	h := &rehoming{Rig: r, service: service, to: to, flows: flows}
	if err := h.begin(ctx); err != nil {
		return rep, err
	}
	defer h.end()
	var told, back, asks []float64
	resets, others := int64(0), int64(0)
	for range times {
		one, err := h.shed(ctx, "tcp6")
		if err != nil {
			return rep, err
		}
		told, back = append(told, one.told), append(back, one.answered)
		resets, others = resets+one.resets, others+one.others
		if one, err = h.shed(ctx, "udp6"); err != nil {
			return rep, err
		}
		asks = append(asks, one.answered)
	}
	rep.Rows = []Row{
		NewRow(fmt.Sprintf("%d streams, host shed: order to last client told", flows), "ms", "<= 1000", "", told),
		NewRow(fmt.Sprintf("%d streams, host shed: order to last one connected again and answered elsewhere", flows), "ms", "", "", back),
		NewRow("of those, ended otherwise than by one reset", "", "= 0", "", []float64{float64(others + resets - int64(flows*times))}),
		NewRow(fmt.Sprintf("%d datagram flows, host shed: order to last one answered elsewhere", flows), "ms", "<= 1000", "", asks),
	}
	return rep, nil
}

// rehoming has its flows on one host, and another one beside it.
type rehoming struct {
	*Rig
	service, to string
	flows       int
	servers     []*Server
}

const rehomeFrom, rehomeTo = "s1", "s2"

func (h *rehoming) begin(ctx context.Context) error {
	if err := h.FreePorts(ctx, "c1"); err != nil {
		return err
	}
	for _, n := range []string{rehomeFrom, rehomeTo} {
		s, err := serve(h.Rig, n, h.to)
		if err != nil {
			return err
		}
		h.servers = append(h.servers, s)
	}
	return awaitServing(ctx, h.Rig, h.service, 2*len(h.servers))
}

func (h *rehoming) end() {
	for _, s := range h.servers {
		s.Kill() //nolint:errcheck // the lab ends with the bench
	}
}

type shedding struct {
	told, answered float64 // ms
	resets, others int64
}

// shed gathers the flows on one host, drains it, and waits until the other one has answered all.
func (h *rehoming) shed(ctx context.Context, network string) (one shedding, err error) {
	if err := h.Act(ctx, "drain %s %s", h.service, rehomeTo); err != nil {
		return one, err
	}
	if err := h.onlyAt(ctx, rehomeFrom); err != nil {
		return one, err
	}
	g, err := gather(h.Rig, "c1", network, h.to, h.flows)
	if err != nil {
		return one, err
	}
	defer g.close()
	if err := h.Act(ctx, "undrain %s %s", h.service, rehomeTo); err != nil {
		return one, err
	}
	if err := awaitServing(ctx, h.Rig, h.service, 2*len(h.servers)); err != nil {
		return one, err
	}
	if _, err := g.tell("fresh"); err != nil {
		return one, err
	}
	start := agent.Now()
	if err := h.Drain(ctx, h.service, rehomeFrom, "shed"); err != nil {
		return one, err
	}
	order := "report"
	if network == "udp6" {
		order = "leave " + rehomeFrom // a datagram that is lost is lost: who wants an answer asks again
	}
	r, err := g.until(ctx, order, moveLimit, func(r agent.CrowdReport) bool { return r.Stand[rehomeTo] >= h.flows })
	if err != nil {
		return one, fmt.Errorf("%s was shed: %w", rehomeFrom, err)
	}
	one = shedding{float64(r.LastReset-start) / 1e6, float64(r.LastMove-start) / 1e6, r.Resets, r.Others}
	return one, h.Act(ctx, "undrain %s %s", h.service, rehomeFrom)
}

// onlyAt waits until new connections meet one host alone.
func (h *rehoming) onlyAt(ctx context.Context, host string) error {
	for deadline := time.Now().Add(moveLimit); time.Now().Before(deadline); {
		res, err := measure(ctx, h.Rig, "c1", "connect", "--to", h.to, "--count", "50")
		if err != nil {
			return err
		}
		if res.ByID[host] == 50 {
			return nil
		}
	}
	return fmt.Errorf("not all new connections meet %s", host)
}
