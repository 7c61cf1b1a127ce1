package controld

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/sid"
)

// These print what a host waits for when it comes or moves, over the API's socket, with the store on disk and a
// hundred other hosts around that serve. Nothing of it waits for the disk.

func report(b *testing.B, what string, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), what+"-p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), what+"-p99-µs")
}

func busy(b *testing.B, cfg config.Config) (*controller, *fakeRouter, *fakeRouter) {
	b.Helper()
	c := start(b, cfg)
	id := c.create("web")
	r1, r2 := c.linked()
	for i := range 100 {
		name := fmt.Sprint("h", i)
		j := join(name, "r1")
		if cfg.Trust == config.TrustKeys {
			j = signed(j, newKey(b))
		}
		h := c.joinHost(j)
		h.serves(web(id))
	}
	c.await("all serve", func() bool { return len(r1.targets(web(id))) == 100 })
	return c, r1, r2
}

func BenchmarkJoinToJoined(b *testing.B) {
	for _, trust := range []string{config.TrustOpen, config.TrustKeys} {
		b.Run(trust, func(b *testing.B) {
			c, _, _ := busy(b, config.Config{Trust: trust})
			key := newKey(b)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				j := join("mover", fmt.Sprint("r", 1+i%2)) // elsewhere each time
				j.Version = fmt.Sprint(i)
				if trust == config.TrustKeys {
					j = signed(j, key)
				}
				took = append(took, c.timeJoin(j))
			}
			report(b, "joined", took)
		})
	}
}

func (c *controller) timeJoin(j *apiv1.Join) time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream := c.agent.Host(ctx)
	defer hangUpStream(stream)
	began := time.Now()
	if err := stream.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Join{Join: j}}); err != nil {
		c.t.Fatal(err)
	}
	first, err := stream.Receive()
	if err != nil || first.GetJoined() == nil {
		c.t.Fatalf("%v, %v; want joined", first, err)
	}
	return time.Since(began)
}

// A move: Attach to Attached, then Detach to the redirect at the router of the old place.
func BenchmarkMove(b *testing.B) {
	c, r1, r2 := busy(b, config.Config{})
	h := c.host("mover", "r1")
	attached, redirected := make(chan sid.Locator, 1), make(chan sid.Locator, 1)
	h.mu.Lock()
	h.hook = func(o *apiv1.HostOrder) {
		if a := o.GetAttached(); a != nil {
			attached <- parseLocator(a.Locator)
		}
	}
	h.mu.Unlock()
	for _, r := range []*fakeRouter{r1, r2} {
		r.mu.Lock()
		r.hook = func(o *apiv1.RouterOrder) {
			for _, x := range o.GetRules().GetRedirects() {
				if !x.Gone {
					redirected <- sid.Locator(x.From)
				}
			}
		}
		r.mu.Unlock()
	}
	at := h.locator()
	var answer, follow []time.Duration
	for i := uint32(0); b.Loop(); i++ {
		router := fmt.Sprint("r", 2-i%2)
		began := time.Now()
		h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Attach{Attach: &apiv1.Attach{Serial: i, Attachment: uplink(h.name, router)}}})
		to := <-attached
		answer = append(answer, time.Since(began))
		began = time.Now()
		h.detach(at, to)
		if from := <-redirected; from != at {
			b.Fatalf("a redirect from %v, want one from %v", from, at)
		}
		follow = append(follow, time.Since(began))
		at = to
	}
	report(b, "attached", answer)
	report(b, "redirected", follow)
}
