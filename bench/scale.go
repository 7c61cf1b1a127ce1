package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/router/routerd"
	"scaffold.dev/scaffold/sid"
)

// scalePoll is how often a router is asked whether it has what is waited for.
const (
	scalePoll = 200 * time.Microsecond
	fillPoll  = 20 * time.Millisecond // of what takes seconds: asking takes the router's time
)

// A ScaleSize is how large a network Scale makes.
type ScaleSize struct{ Services, PerService, Hosts, Changes int }

// Check says what is out of range.
func (s ScaleSize) Check() error {
	if s.Services < 1 || s.PerService < 1 || s.Changes < 1 || s.Hosts < s.PerService || s.Hosts > 255 {
		return fmt.Errorf("want services, instances and changes of at least 1, and from as many hosts as a service has instances to 255")
	}
	return nil
}

// Scale lets hosts that exist on their streams alone register services at the real controller, and
// measures until a real service router has them all in its kernel, what that takes, and what one
// change costs then, beside a network of a single service.
func Scale(ctx context.Context, r *Rig, size ScaleSize) (rep Report, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newScale(ctx, r, size)
	if err != nil {
		return rep, err
	}
	small, err := s.small(ctx)
	if err != nil {
		return rep, err
	}
	before, err := r.uses()
	if err != nil {
		return rep, err
	}
	all, err := s.fill(ctx)
	if err != nil {
		return rep, err
	}
	after, err := r.uses()
	if err != nil {
		return rep, err
	}
	large, err := s.changes(ctx, s.crowd.hosts[0], s.instances())
	if err != nil {
		return rep, err
	}
	status, err := s.status(ctx)
	if err != nil {
		return rep, err
	}
	per := func(bytes float64) []float64 { return []float64{bytes / float64(s.instances())} }
	rep.Rows = []Row{
		NewRow(fmt.Sprintf("first host joins until the router has %d instances", s.instances()), "s", "", "", []float64{all.Seconds()}),
		NewRow("service router, kernel memory per instance", "bytes", "", "", per(float64(status.TableBytes))),
		NewRow("service router, daemon's memory per instance", "bytes", "", "", per(after["r1"].bytes-before["r1"].bytes)),
		NewRow("controller, memory per instance", "bytes", "", "", per(after["ctl"].bytes-before["ctl"].bytes)),
		NewRow("a host's change until it is in the router's kernel", "ms", "", "", large),
		NewRow("a change in the large network / in one of one service", "ratio", "<= 2", "1 service", []float64{Quantile(large, 0.5) / Quantile(small, 0.5)}),
	}
	rep.Notes = []string{fmt.Sprintf("%d services, %d instances each, on %d hosts that are streams to the controller; %d changes", size.Services, size.PerService, size.Hosts, size.Changes)}
	return rep, nil
}

// A scale is a run of Scale.
type scale struct {
	rig      *Rig
	size     ScaleSize
	crowd    *crowd
	router   *http.Client
	base     string
	services []sid.ServiceID
}

// askRouter can be asked what a router has.
func askRouter(r *Rig, name string) (s *scale, err error) {
	s = &scale{rig: r}
	s.router, s.base, err = api.Dial("unix:" + r.Socket(name))
	return s, err
}

func newScale(ctx context.Context, r *Rig, size ScaleSize) (*scale, error) {
	s, err := askRouter(r, "r1")
	if err != nil {
		return nil, err
	}
	s.size, s.services = size, make([]sid.ServiceID, size.Services)
	if s.crowd, err = newCrowd(ctx, r.Controller()); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range s.services {
		group.Go(func() (err error) { s.services[i], err = s.create(ctx, i); return err })
	}
	return s, group.Wait()
}

func (s *scale) create(ctx context.Context, i int) (sid.ServiceID, error) {
	answer, err := s.rig.Client.CreateService(ctx, connect.NewRequest(&apiv1.CreateServiceRequest{Name: fmt.Sprintf("scale-%d", i)}))
	if err != nil {
		return sid.ServiceID{}, fmt.Errorf("create service %d: %w", i, err)
	}
	return sid.ParseServiceID(answer.Msg.Sid)
}

func (s *scale) instances() int { return s.size.Services * s.size.PerService }

// small measures changes while one service is all that is served.
func (s *scale) small(ctx context.Context) ([]float64, error) {
	serve := make([][]sid.Triple, s.size.PerService)
	for i := range serve {
		serve[i] = []sid.Triple{triple(s.services[0])}
	}
	if err := s.crowd.join(ctx, serve); err != nil {
		return nil, err
	}
	if err := s.until(ctx, s.size.PerService, scalePoll); err != nil {
		return nil, err
	}
	took, err := s.changes(ctx, s.crowd.hosts[0], s.size.PerService)
	if err != nil {
		return nil, err
	}
	if err := s.crowd.leave(); err != nil {
		return nil, err
	}
	return took, s.until(ctx, 0, scalePoll)
}

// fill joins all hosts with all they serve, and returns how long it took.
func (s *scale) fill(ctx context.Context) (time.Duration, error) {
	serve := make([][]sid.Triple, s.size.Hosts)
	for i, id := range s.services {
		for k := range s.size.PerService {
			host := (i*s.size.PerService + k) % s.size.Hosts
			serve[host] = append(serve[host], triple(id))
		}
	}
	start := time.Now()
	if err := s.crowd.join(ctx, serve); err != nil {
		return 0, err
	}
	err := s.until(ctx, s.instances(), fillPoll)
	return time.Since(start), err
}

// changes withdraws an instance and registers it again, and measures until the router has it, in ms.
func (s *scale) changes(ctx context.Context, h *extra, all int) ([]float64, error) {
	one := triple(s.services[0])
	var took []float64
	for range s.size.Changes {
		start := time.Now()
		if err := h.report(false, nil, one); err != nil {
			return nil, err
		}
		if err := s.until(ctx, all-1, scalePoll); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(start).Microseconds())/1e3)
		if err := h.report(false, []sid.Triple{one}); err != nil {
			return nil, err
		}
		if err := s.until(ctx, all, scalePoll); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// until waits until the router's kernel has so many instances.
func (s *scale) until(ctx context.Context, instances int, poll time.Duration) error {
	for {
		status, err := s.status(ctx)
		if err != nil || status.Instances == instances {
			return err
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return fmt.Errorf("the router has %d instances, not %d: %w", status.Instances, instances, ctx.Err())
		}
	}
}

func (s *scale) status(ctx context.Context) (status routerd.Status, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/status", nil)
	if err != nil {
		return status, err
	}
	answer, err := s.router.Do(req)
	if err != nil {
		return status, fmt.Errorf("ask r1 for its status: %w", err)
	}
	defer answer.Body.Close()
	return status, json.NewDecoder(answer.Body).Decode(&status)
}
