package switchd

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A registry knows which switches are connected; names and datapath ids are unique.
type registry struct {
	mu       sync.Mutex
	byName   map[string]*member
	byID     map[uint64]*member
	visits   map[uint64]*visits
	refusals map[string]time.Time // last said, by host
}

// Switch implements ofconn.Handler.
func (d *daemon) Switch(c *ofconn.Conn) {
	id := c.Features().DatapathID
	if !d.wait(c, id) {
		return
	}
	spec, err := d.identify(c, id)
	if err == nil {
		err = d.serve(c, spec)
	}
	if err != nil {
		d.Refused(c.RemoteAddr(), err)
	}
}

// Refused implements ofconn.Handler.
func (d *daemon) Refused(from net.Addr, err error) {
	if d.ctx.Err() == nil && d.registry.sayable(from, time.Now()) {
		d.report("switch.refused", hostOf(from), fmt.Sprintf("switch at %v refused: %v", from, err))
	}
}

// sayEvery is how often refusals of one address are told of.
var sayEvery = time.Minute

// maxRefusals bounds how many addresses are remembered.
const maxRefusals = 1024

func (r *registry) sayable(from net.Addr, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	host := hostOf(from)
	if last, ok := r.refusals[host]; ok && now.Sub(last) < sayEvery {
		return false
	}
	if r.refusals == nil || len(r.refusals) >= maxRefusals {
		r.refusals = map[string]time.Time{}
	}
	r.refusals[host] = now
	return true
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return cmp.Or(a.String(), a.Network())
	}
	return host
}

// identify finds the switch's name: as it is listed, as it calls itself, or by its datapath id.
func (d *daemon) identify(c *ofconn.Conn, id uint64) (Switch, error) {
	i := slices.IndexFunc(d.cfg.Switches, func(s Switch) bool { return s.Datapath == id })
	switch {
	case i >= 0:
		return d.cfg.Switches[i], d.certified(c, d.cfg.Switches[i])
	case d.cfg.OnlyListed:
		return Switch{}, fmt.Errorf("datapath id %016x is not listed: where it is to be a router, start the controller with --switch NAME=%016x", id, id)
	case id == 0:
		return Switch{}, fmt.Errorf("its datapath id is 0: give it one")
	}
	s := Switch{Name: fmt.Sprintf("sw-%x", id), Datapath: id, Service: true}
	desc, err := d.describe(c)
	if err != nil {
		return s, fmt.Errorf("ask what it is: %w", err)
	}
	called := func(listed Switch) bool { return listed.Name == desc.Datapath }
	if checkName(desc.Datapath) == nil && !slices.ContainsFunc(d.cfg.Switches, called) {
		s.Name = desc.Datapath
	}
	return s, nil
}

func (d *daemon) describe(c *ofconn.Conn) (desc ofp.Desc, err error) {
	ctx, cancel := context.WithTimeout(d.ctx, d.cfg.Silence)
	defer cancel()
	parts, err := c.Collect(ctx, ofp.AskDesc{})
	if err == nil && len(parts) > 0 {
		desc, _ = parts[0].(ofp.Desc)
	}
	return desc, err
}

// serve runs the switch until its connection ends. An error means that it was not let in.
func (d *daemon) serve(c *ofconn.Conn, spec Switch) error {
	m := newMember(d, c, spec)
	for {
		other := d.registry.enter(m)
		if other == nil {
			break
		}
		if other.alive() {
			return fmt.Errorf("its datapath id %016x and name %s are those of the switch at %v, which answers", spec.Datapath, spec.Name, other.conn.RemoteAddr())
		}
		other.conn.Close()
		<-other.left
	}
	defer d.registry.leave(m)
	m.run()
	return nil
}

// enter gives the member its place, or returns who has it.
func (r *registry) enter(m *member) *member {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName, r.byID = map[string]*member{}, map[uint64]*member{}
	}
	if other := cmp.Or(r.byID[m.spec.Datapath], r.byName[m.spec.Name]); other != nil {
		return other
	}
	r.byName[m.spec.Name], r.byID[m.spec.Datapath] = m, m
	return nil
}

func (r *registry) leave(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byName, m.spec.Name)
	delete(r.byID, m.spec.Datapath)
	close(m.left)
}

// member finds a connected switch.
func (r *registry) member(name string) *member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[name]
}

// members are all that are connected, by name.
func (r *registry) members() []*member {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*member, 0, len(r.byName))
	for _, m := range r.byName {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *member) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	return all
}
