package routerd

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/sid"
)

// probeRules are how the controller wants hosts to be probed.
type probeRules struct {
	every  time.Duration
	limits liveness.Limits
}

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// join is the first report of a session.
func (d *daemon) join() *apiv1.RouterJoin {
	j := &apiv1.RouterJoin{Name: d.cfg.Name, Service: d.cfg.Service, BootId: d.bootID, Version: obs.Version(),
		Generation: d.generation, Block: d.cfg.Block, Had: d.had(), LinkKey: d.keys.Public()}
	d.tunnels.tellOffers(j)
	return j
}

// had is the number of the block that the router has, 0 for none.
func (d *daemon) had() uint32 {
	if d.locator == 0 || !d.space.AS.IsValid() {
		return 0
	}
	return uint32(d.locator.HostAddr() >> 8)
}

// joined takes the router's place in the network, and tells the controller all that it may have missed.
func (d *daemon) joined(s *agent.Session, j *apiv1.RouterJoined) error {
	space, own, err := agent.Place(j)
	if err != nil {
		return fmt.Errorf("the controller's answer: %w", err)
	}
	moved := own != d.locator || d.prober == nil
	d.space, d.locator = space, own
	if err := d.settle(); err != nil {
		return err
	}
	rules := rulesOf(j)
	if moved || rules != d.probeRules {
		d.probeRules = rules
		if err := d.restartProber(); err != nil {
			return err
		}
	}
	d.session, d.told = s, nil
	d.naming.Drop()
	d.troubled(nil)
	d.log.Info("joined", "network", j.Network, "locator", own)
	d.keys.Take(j.Routers)
	d.neighbours.Listed()
	d.tellNeighbours()
	d.hosts.Tell(s)
	for _, p := range d.ports {
		d.greet(p.name) // with the locator, perhaps a new one
		d.proveAll(p)
	}
	return nil
}

// parted ends a session.
func (d *daemon) parted(s *agent.Session) {
	if d.session == s {
		d.session = nil
		d.naming.Drop()
	}
}

// settle puts the router's own address and the unreachable routes of the network's prefixes into the kernel.
func (d *daemon) settle() error {
	errs := []error{setOwn(d.space, d.locator), d.besideHost()}
	for _, p := range []netip.Prefix{d.space.Services, d.space.AS, d.space.Identities} {
		errs = append(errs, d.routes.set(routeKey{prefix: p, unreachable: true}, route{}))
	}
	if d.resolver != nil {
		errs = append(errs, d.resolver.SetSpace(d.space), d.resolver.SetLocator(d.locator))
	}
	return errors.Join(errs...)
}

// rulesOf turns the times of the controller into numbers of probes.
func rulesOf(j *apiv1.RouterJoined) probeRules {
	every := max(1, j.ProbeIntervalMs)
	return probeRules{every: time.Duration(every) * time.Millisecond, limits: agent.Limits(j, every)}
}

// restartProber begins to probe all hosts anew, from the address and at the pace that now hold.
func (d *daemon) restartProber() (err error) {
	if d.prober != nil {
		d.prober.Close()
		d.prober = nil
	}
	report := func(c []liveness.Change, quit <-chan struct{}) {
		select {
		case d.inbox <- func() { d.hostChanges(c) }:
		case <-quit: // the loop waits for the prober's end, or has ended
		}
	}
	d.prober, err = newProber(d.locator, d.probeRules.every, d.probeRules.limits, report, d.log)
	if err != nil {
		return err
	}
	d.hosts.Anew()
	for l, port := range d.hosts.All() {
		d.probe(l, port)
	}
	return nil
}

func (d *daemon) probe(l sid.Locator, portName string) {
	d.hosts.Probe(l, portName)
	if d.prober == nil {
		return
	}
	d.prober.add(l, portName)
	if p := d.portNamed(portName); p == nil || !p.up {
		d.hostChanges(d.prober.carrier(portName, false))
	}
}

func (d *daemon) unprobe(l sid.Locator) {
	d.hosts.Unprobe(l)
	d.silence(l, liveness.Unknown)
	if d.prober != nil {
		d.prober.remove(l)
	}
}

// hostChanges takes what the prober found.
func (d *daemon) hostChanges(changes []liveness.Change) {
	for _, c := range changes {
		if d.hosts.Probed(c.Locator) {
			d.silence(c.Locator, c.State)
		}
	}
	d.hosts.Changed(d.session, changes, d.log)
}

// silence has first packets pass hosts by that do not answer, without waiting for the controller to say so. A router that
// resolves nothing does not know whether anybody else serves: it waits until a host is gone.
func (d *daemon) silence(l sid.Locator, found liveness.State) {
	if d.resolver == nil {
		return
	}
	if err := d.resolver.SetSilent(l, found == liveness.Gone || found == liveness.Suspect && d.cfg.Service); err != nil {
		d.log.Error("first packets may go to a host that does not answer", "error", err)
	}
}

func (d *daemon) tellCounters() {
	if d.session == nil || d.resolver == nil {
		return
	}
	counters, err := d.resolver.Counters()
	u, err2 := d.resolver.Usage()
	if err := errors.Join(err, err2); err != nil {
		d.log.Warn("counters", "error", err)
		return
	}
	d.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Counters{Counters: &apiv1.RouterCounters{
		Counters: counters, TableBytes: u.Bytes, Services: uint32(u.Services), Instances: uint32(u.Instances), NowUnixMs: time.Now().UnixMilli()}}})
}
