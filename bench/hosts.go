package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/bench/hosts"
	"scaffold.dev/scaffold/bench/process"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/plot"
	"scaffold.dev/scaffold/sid"
)

// CrowdLab is the lab of the crowd benchmark: the controller, and a router that resolves for real.
const CrowdLab = `
name: benchcrowd
nodes:
  ctl: controller
  r1: {kind: router, service: true}
  a: host
links:
  - [a, r1]
`

// A CrowdSize is how many hosts come.
type CrowdSize struct {
	Hosts, Routers, Services, Each int
	AtOnce, Changes, Rest          int // Rest: seconds
}

// Check says what is out of range.
func (s CrowdSize) Check() error {
	if s.Hosts > s.Routers*hosts.OfRouter || s.Routers > 250 {
		return fmt.Errorf("%d hosts on %d routers: a router has locators for %d hosts, a network blocks for 255 routers", s.Hosts, s.Routers, hosts.OfRouter)
	}
	if s.Each > s.Services {
		return fmt.Errorf("a host serves %d of %d services", s.Each, s.Services)
	}
	return nil
}

// Crowd has thousands of hosts join one controller, each by a connection of its own, and measures until all are
// in, until every router knows all that they serve, and what that takes.
func Crowd(ctx context.Context, r *Rig, size CrowdSize) (rep Report, err error) {
	c, err := newCrowdRun(ctx, r, size)
	if err != nil {
		return rep, err
	}
	defer c.close()
	if err := c.come(ctx); err != nil {
		return rep, err
	}
	if err := c.change(); err != nil {
		return rep, err
	}
	if err := c.rest(); err != nil {
		return rep, err
	}
	c.rep.Notes = []string{
		fmt.Sprintf("%d services; %d hosts that serve %d each, on %d routers that are streams too and resolve, beside a real one; %d join at once", size.Services, size.Hosts, size.Each, size.Routers, size.AtOnce),
		"hosts, routers, controller and its store share this machine's processors: the simulated ones take part of the time, see their CPU-seconds",
	}
	return c.rep, nil
}

// A crowdRun is a run of Crowd.
type crowdRun struct {
	rig  *Rig
	size CrowdSize
	real *scale // asks r1
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder
	rep  Report
}

func newCrowdRun(ctx context.Context, r *Rig, size CrowdSize) (*crowdRun, error) {
	c := &crowdRun{rig: r, size: size}
	services, err := c.services(ctx)
	if err != nil {
		return nil, err
	}
	if c.real, err = askRouter(r, "r1"); err != nil {
		return nil, err
	}
	if c.cmd, err = AgentCommand("hosts"); err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(out)
	if err := r.Start("ctl", c.cmd); err != nil {
		return nil, err
	}
	err = json.NewEncoder(c.in).Encode(hosts.Config{
		Endpoint: "http://" + netip.AddrPortFrom(r.Plan().Node("ctl").Management, plan.ControllerPort).String(),
		Hosts:    size.Hosts, Routers: size.Routers, Service: true, Services: services, Each: size.Each,
		Keys: r.File.Network.Trust == "keys", AtOnce: size.AtOnce, Issuer: r.Controller(),
	})
	if err == nil {
		_, err = c.answer()
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *crowdRun) services(ctx context.Context) ([]sid.ServiceID, error) {
	services := make([]sid.ServiceID, c.size.Services)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(64)
	for i := range services {
		group.Go(func() error {
			answer, err := c.rig.Client.CreateService(ctx, connect.NewRequest(&apiv1.CreateServiceRequest{Name: fmt.Sprintf("crowd-%d", i)}))
			if err != nil {
				return fmt.Errorf("create service %d: %w", i, err)
			}
			services[i], err = sid.ParseServiceID(answer.Msg.Sid)
			return err
		})
	}
	return services, group.Wait()
}

func (c *crowdRun) close() error {
	c.in.Close()         // it may have ended
	c.cmd.Process.Kill() // the same
	c.cmd.Wait()         //nolint:errcheck // killed
	return nil
}

func (c *crowdRun) answer() (r hosts.Report, err error) {
	if err := c.out.Decode(&r); err != nil {
		return r, fmt.Errorf("the simulated hosts ended: %w", err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("the simulated hosts: %s", r.Error)
	}
	return r, nil
}

func (c *crowdRun) tell(order string) (hosts.Report, error) {
	if _, err := fmt.Fprintln(c.in, order); err != nil {
		return hosts.Report{}, err
	}
	return c.answer()
}

func (c *crowdRun) add(name, unit, aim string, samples ...float64) {
	c.rep.Rows = append(c.rep.Rows, NewRow(name, unit, aim, "", samples))
}

// come is the joining.
func (c *crowdRun) come(ctx context.Context) error {
	before, err := c.rig.uses()
	if err != nil {
		return err
	}
	all, simulated, start := c.size.Hosts*c.size.Each, process.CPU(c.cmd.Process.Pid), time.Now()
	var kernel time.Duration
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := c.real.until(ctx, all, 20*time.Millisecond)
		kernel = time.Since(start)
		return err
	})
	r, err := c.tell("come")
	if err != nil {
		return err
	}
	if err := group.Wait(); err != nil {
		return err
	}
	after, err := c.rig.uses()
	if err != nil {
		return err
	}
	knew := max(r.Knew/1e3, kernel.Seconds())
	c.draw(r, knew)
	hosts := float64(c.size.Hosts)
	c.add(fmt.Sprintf("%d hosts: first to come until the last one is in", c.size.Hosts), "s", "<= 10", r.Joined/1e3)
	c.add("the same, joins", "1/s", "", hosts/r.Joined*1e3)
	c.add("one join, p50", "ms", "", r.Each...)
	c.rep.Rows = append(c.rep.Rows, QuantileRow("one join, p99", "ms", "", "", r.Each, 0.99))
	c.add("joins that had to be asked again", "", "", float64(r.Refused))
	c.add(fmt.Sprintf("first to come until all %d routers know all %d instances", c.size.Routers+1, all), "s", "<= 10", knew)
	c.add("the same, registrations", "1/s", "", float64(all)/knew)
	c.add("controller, CPU-seconds for it", "s", "", (after["ctl"].cpu - before["ctl"].cpu).Seconds())
	c.add("simulated hosts and routers, CPU-seconds", "s", "", (process.CPU(c.cmd.Process.Pid) - simulated).Seconds())
	c.add("controller, memory per host", "bytes", "", (after["ctl"].bytes-before["ctl"].bytes)/hosts)
	return nil
}

// draw shows how the hosts came in.
func (c *crowdRun) draw(r hosts.Report, knew float64) {
	slices.Sort(r.At)
	in := plot.Line{Name: "hosts in"}
	for i := 0; i < len(r.At); i += max(1, len(r.At)/200) {
		in.Points = append(in.Points, plot.Point{At: r.At[i] / 1e3, Value: float64(i + 1)})
	}
	in.Points = append(in.Points, plot.Point{At: r.Joined / 1e3, Value: float64(len(r.At))})
	c.rep.Figure = plot.Figure{
		Title: fmt.Sprintf("%d hosts join one controller", c.size.Hosts), End: knew * 1.05,
		Panels: []plot.Panel{{Label: "hosts", Lines: []plot.Line{in}}},
		Marks:  []plot.Mark{{At: r.Joined / 1e3, Text: "the last is in"}, {At: knew, Text: "every router knows all they serve"}},
	}
}

func (c *crowdRun) change() error {
	r, err := c.tell(fmt.Sprintf("change %d", c.size.Changes))
	if err != nil {
		return err
	}
	c.add("one change until all routers know, p50", "ms", "", r.Each...)
	c.rep.Rows = append(c.rep.Rows, QuantileRow("one change until all routers know, p99", "ms", "", "", r.Each, 0.99))
	return nil
}

// rest is what the controller takes while all hosts do no more than tell their load each second.
func (c *crowdRun) rest() error {
	if c.size.Rest == 0 {
		return nil
	}
	before, err := c.rig.uses()
	if err != nil {
		return err
	}
	start := time.Now()
	r, err := c.tell(fmt.Sprintf("load %d", c.size.Rest))
	if err != nil {
		return err
	}
	c.add("streams that ended by themselves", "", "= 0", float64(r.Lost))
	after, err := c.rig.uses()
	if err != nil {
		return err
	}
	share := (after["ctl"].cpu - before["ctl"].cpu).Seconds() / time.Since(start).Seconds()
	c.add("controller while all tell their load each second", "cores", "", share)
	return nil
}
