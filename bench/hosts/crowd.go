package hosts

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/sid"
)

// Config is who comes and where to.
type Config struct {
	Endpoint string          `json:"endpoint"`
	Hosts    int             `json:"hosts"`
	Routers  int             `json:"routers"`
	Service  bool            `json:"service"`  // its routers resolve: each is told everything
	Services []sid.ServiceID `json:"services"` // that exist
	Each     int             `json:"each"`     // of them, one host serves so many
	Keys     bool            `json:"keys"`
	AtOnce   int             `json:"at_once"` // hosts that are about to join, at most
	Issuer   string          `json:"issuer"`  // with keys: the controller's own socket, which gives credentials
}

// A Report is what happened since the order, times in ms.
type Report struct {
	Joined  float64   `json:"joined"` // until the last host was let in
	Knew    float64   `json:"knew"`   // until every router of the crowd knew every instance
	Each    []float64 `json:"each"`   // what each join took, or each change until every router knew it
	At      []float64 `json:"at"`     // when each host was in
	Refused int       `json:"refused"`
	Lost    int64     `json:"lost"` // hosts' streams that ended by themselves so far
	Error   string    `json:"error,omitempty"`
}

// A dialer says where a member calls, and as whom.
type dialer func(name string) (api.Endpoint, error)

// A Crowd obeys orders.
type Crowd struct {
	cfg     Config
	dial    dialer
	hosts   []*host
	routers []*router
	keys    map[string]ed25519.PrivateKey // in a network with keys
	knows   *gauge
	leaving atomic.Bool
	lost    atomic.Int64 // streams that ended by themselves
}

// OfRouter is how many hosts a router has locators for.
const OfRouter = 255

// Run reads its configuration and then orders as lines of in, and answers each by a Report, until in ends: "come"
// lets all hosts join, "change N" has one of them withdraw an instance and register it again, "load SECONDS"
// has all tell their load each second.
func Run(ctx context.Context, in io.Reader, out io.Writer) error {
	lines, enc := bufio.NewScanner(in), json.NewEncoder(out)
	lines.Buffer(nil, 16<<20)
	c := &Crowd{knows: newGauge()}
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &c.cfg) != nil {
		return errors.New("the first line of standard input must be the crowd's configuration")
	}
	debug.SetGCPercent(400) // the processors are for the controller
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := c.begin(ctx); err != nil {
		return err
	}
	if err := enc.Encode(Report{}); err != nil {
		return err
	}
	go c.ask(ctx) // ends with ctx
	for lines.Scan() {
		r, err := c.order(ctx, lines.Text())
		r.Lost = c.lost.Load()
		if err != nil {
			r.Error = err.Error()
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	c.leaving.Store(true)
	return nil
}

func (c *Crowd) order(ctx context.Context, line string) (Report, error) {
	var what string
	var n int
	fmt.Sscan(line, &what, &n) //nolint:errcheck // n is 0 where there is none
	switch what {
	case "come":
		return c.come(ctx)
	case "change":
		return c.change(ctx, n)
	case "load":
		return Report{}, c.load(ctx, time.Duration(n)*time.Second)
	}
	return Report{}, fmt.Errorf("no such order: %q", line)
}

// begin joins the routers and makes the hosts.
func (c *Crowd) begin(ctx context.Context) error {
	if c.cfg.Hosts > c.cfg.Routers*OfRouter {
		return fmt.Errorf("%d hosts on %d routers: one has locators for %d", c.cfg.Hosts, c.cfg.Routers, OfRouter)
	}
	if err := agent.RoomFor(c.cfg.Hosts + c.cfg.Routers + 256); err != nil {
		return err
	}
	var names []string
	for i := range c.cfg.Routers {
		names = append(names, fmt.Sprintf("far-%d", i))
	}
	if err := c.enrol(ctx, names); err != nil {
		return err
	}
	for i, name := range names {
		r := &router{name: name, knows: c.knows}
		if err := r.join(ctx, c.dial, c.cfg.Service, names, i); err != nil {
			return err
		}
		if c.cfg.Service {
			c.knows.set(name, 0)
		}
		c.routers = append(c.routers, r)
		go c.keep(r.obey) // ends with the stream
	}
	for i := range c.cfg.Hosts {
		h := &host{number: i, name: hostName(i), router: names[i%len(names)]}
		for k := range c.cfg.Each {
			h.serves = append(h.serves, c.cfg.Services[(i*c.cfg.Each+k)%len(c.cfg.Services)])
		}
		h.key = c.keys[h.name]
		c.hosts = append(c.hosts, h)
	}
	return nil
}

func hostName(i int) string { return fmt.Sprintf("crowd-%d", i) }

// keep counts a stream that ended although nobody leaves.
func (c *Crowd) keep(serve func() error) {
	if serve(); !c.leaving.Load() { //nolint:errcheck // whatever ended it
		c.lost.Add(1)
	}
}

// stay reads a host's orders, and joins again when its stream ends, as a daemon does.
func (c *Crowd) stay(ctx context.Context, h *host) {
	for {
		h.listen() //nolint:errcheck // whatever ended it
		if c.leaving.Load() || ctx.Err() != nil {
			return
		}
		c.lost.Add(1)
		if h.join(ctx, c.dial, time.Now().Add(orderTime)) != nil {
			return
		}
	}
}

// ask has silent connections asked whether they are there, as a daemon's client does.
func (c *Crowd) ask(ctx context.Context) {
	tick := time.NewTicker(quietFor / 5)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, h := range c.hosts {
				if s := h.now(); s != nil {
					s.ping(now) //nolint:errcheck // who reads notices
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// orderTime bounds one order.
const orderTime = 3 * time.Minute

func (c *Crowd) come(ctx context.Context) (r Report, err error) {
	start := time.Now()
	deadline := start.Add(orderTime)
	r.Each, r.At = make([]float64, len(c.hosts)), make([]float64, len(c.hosts))
	var group errgroup.Group
	group.SetLimit(c.cfg.AtOnce)
	for i, h := range c.hosts {
		group.Go(func() error {
			began := time.Now()
			err := h.join(ctx, c.dial, deadline)
			r.Each[i], r.At[i] = ms(time.Since(began)), ms(time.Since(start))
			if err == nil {
				go c.stay(ctx, h) // ends with the stream
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return r, err
	}
	r.Joined = ms(time.Since(start))
	for _, h := range c.hosts {
		r.Refused += h.refused
	}
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	err = c.knows.until(waiting, c.cfg.Hosts*c.cfg.Each)
	r.Knew = ms(time.Since(start))
	return r, err
}

// change measures single changes, of one host after the other.
func (c *Crowd) change(ctx context.Context, times int) (r Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	all := c.cfg.Hosts * c.cfg.Each
	for i := range times {
		h := c.hosts[i*7919%len(c.hosts)]
		for _, gone := range []bool{true, false} {
			start, want := time.Now(), all
			if gone {
				want--
			}
			err := h.report(false, h.serves[:1], gone)
			if err == nil {
				err = c.knows.until(ctx, want)
			}
			if err != nil {
				return r, err
			}
			r.Each = append(r.Each, ms(time.Since(start)))
		}
	}
	return r, nil
}

// load has all hosts tell their load each second, spread over it as hosts that came at different times do.
func (c *Crowd) load(ctx context.Context, d time.Duration) error {
	const slices = 100
	tick := time.NewTicker(time.Second / slices)
	defer tick.Stop()
	for i := range int(d/time.Second) * slices {
		for k := i % slices; k < len(c.hosts); k += slices {
			c.hosts[k].load() //nolint:errcheck // a stream that ended is counted
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
