package hostd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// An instance is one triple that this host's sockets serve.
type instance struct {
	trusted bool              // found in place by a new daemon: it serves until a check says otherwise
	drained bool              // by word of somebody on this host
	refused string            // why the edge or the controller does not take it
	barred  bool              // it is the edge that does not
	check   string            // why its ready checks fail, where none passes
	queue   serving.Group     // of accepted connections
	stuck   string            // why its program does not accept
	checks  map[uint16]*check // that run, for the host and its guests
	spec    string            // of them
	waiting uint32            // connections in the accept queue
	backlog uint32
	flows   uint32
}

// A verdict is what is reported of an instance.
type verdict struct {
	reason string // why it is not ready; "" when it is
	queue  bool   // only its accept queue speaks against it
	resume bool   // its program can go on with flows that began elsewhere
}

// verdict judges an instance of a service whose policy is known or not.
func (i *instance) verdict(known bool) verdict {
	switch {
	case i.refused != "":
		return verdict{reason: i.refused}
	case i.drained:
		return verdict{reason: "draining"}
	case !known && !i.trusted:
		return verdict{reason: "asking for its policy"}
	case i.check != "":
		return verdict{reason: i.check}
	}
	return verdict{reason: i.stuck, queue: i.stuck != ""}
}

// A registry knows what this host serves and what of it the controller was told. The loop owns it.
type registry struct {
	d         *daemon
	sockets   *serving.Sockets
	instances map[sid.Triple]*instance
	policies  map[sid.ServiceID]*apiv1.ServicePolicy
	told      map[sid.Triple]verdict // the verdict that the controller has
	missing   map[uint64]int         // looks at which a listener was not there
	seq       uint64
	dirty     bool
	changes   int                     // instances that came, went, or may serve or not since, ever
	dumped    bool                    // the sockets from before are known
	awaited   map[uint16]bool         // namespaces whose sockets from before are not known yet
	shared    map[sid.Triple][]uint16 // who takes first packets, where guests do
	swept     bool                    // what the edge has of others who served is gone
	owed      bool                    // the session has not got its snapshot yet
}

func newRegistry(d *daemon) *registry {
	return &registry{
		d: d, sockets: serving.NewSockets(), instances: map[sid.Triple]*instance{},
		policies: map[sid.ServiceID]*apiv1.ServicePolicy{}, told: map[sid.Triple]verdict{}, missing: map[uint64]int{},
		awaited: map[uint16]bool{0: true}, shared: map[sid.Triple][]uint16{},
	}
}

// watchSockets begins to watch the namespace's sockets, those that are there first.
func (d *daemon) watchSockets(space sid.Space) error {
	if d.socks != nil {
		return nil
	}
	socks, err := d.hooks.Join(space.Services)
	if err != nil {
		return err
	}
	d.socks, d.readers = socks, make(chan struct{})
	go d.readSockets(0, socks, d.readers)
	return nil
}

// readSockets brings dumps and events to the loop, in order, until the hooks are closed.
func (d *daemon) readSockets(guest uint16, socks *sockets.Host, done chan struct{}) {
	defer close(done)
	d.dump(guest, socks)
	for {
		e, err := socks.Read()
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil:
			d.log.Error("socket events", "error", err)
			return
		case e.Kind == sockets.Lost:
			d.log.Warn("socket events came faster than they were read; looking at all sockets")
			d.dump(guest, socks)
		case e.Kind == sockets.CaughtUp:
			d.post(func() {
				select {
				case d.caught <- struct{}{}:
				default: // nobody waits any more
				}
			})
		default:
			d.post(func() { d.serving.event(guest, e) })
		}
	}
}

// catchUpTime bounds how long catchUp takes where a guest goes meanwhile.
const catchUpTime = time.Second

// catchUp returns when the loop knows of every socket that was closed by now: also of a program's whose end its parent
// has heard of already.
func (d *daemon) catchUp(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, catchUpTime)
	defer stop()
	d.catching.Lock()
	defer d.catching.Unlock()
	var from []*sockets.Host
	var caught chan struct{}
	known := d.call(ctx, func() {
		if d.socks != nil {
			from = append(from, d.socks)
		}
		for _, x := range d.guests.up {
			if x.socks != nil {
				from = append(from, x.socks)
			}
		}
		caught = make(chan struct{}, len(from))
		d.caught = caught
	})
	if !known {
		return
	}
	for _, s := range from {
		if s.Flush() != nil {
			continue // it is closed
		}
		select {
		case <-caught:
		case <-ctx.Done():
			return
		}
	}
}

func (d *daemon) dump(guest uint16, socks *sockets.Host) {
	events, err := socks.Dump()
	if err != nil {
		d.log.Error("cannot list the sockets that serve", "error", err)
	}
	d.post(func() {
		if guest == 0 || d.guests.up[guest] != nil {
			d.serving.replace(guest, events)
		}
	})
}

// event counts one socket in or out.
func (r *registry) event(guest uint16, e sockets.Event) {
	if guest != 0 && r.d.guests.up[guest] == nil {
		return // it is gone
	}
	if e.Kind == sockets.Unregister {
		delete(r.missing, e.Cookie)
		if t, last := r.sockets.Unregister(e.Cookie); last {
			r.down(t, fmt.Sprintf("%v by %s", e.Why, process(e.PID, e.Comm)))
			if t.Proto == sid.UDP && e.Why == sockets.Closed {
				r.d.sessions.orphaned(t, e.Cookie)
			}
		} else if r.instances[t] != nil {
			r.share(t)
		}
		return
	}
	t, ok := r.triple(guest, e)
	if !ok {
		return
	}
	if r.sockets.Register(e.Cookie, t, owner(guest, e)) {
		r.up(t, "by "+process(e.PID, e.Comm)+r.d.guests.where(guest))
	} else {
		r.share(t)
	}
}

func owner(guest uint16, e sockets.Event) serving.Owner {
	return serving.Owner{PID: e.PID, Comm: e.Comm, Guest: guest}
}

func process(pid uint32, comm string) string {
	if pid == 0 {
		return "a process"
	}
	return fmt.Sprintf("%s[%d]", comm, pid)
}

// triple reads a service address, or the wildcard one of a guest.
func (r *registry) triple(guest uint16, e sockets.Event) (sid.Triple, bool) {
	at := e.Addr
	if x := r.d.guests.up[guest]; x != nil && at == netip.IPv6Unspecified() {
		at = x.Address // it is told of such listeners where they serve that
	}
	id, ok := r.d.home.Space.ServiceOf(at)
	if !ok {
		r.d.log.Warn("a program binds an address that no service can have", "address", e.Addr, "process", process(e.PID, e.Comm))
		return sid.Triple{}, false
	}
	return sid.Triple{Service: id, Proto: e.Proto, Port: e.Port}, true
}

// replace makes a dump of a guest's sockets, or of the host's own, the truth.
func (r *registry) replace(guest uint16, events []sockets.Event) {
	dump, owners := map[uint64]sid.Triple{}, map[uint64]serving.Owner{}
	for _, e := range events {
		if t, ok := r.triple(guest, e); ok {
			dump[e.Cookie], owners[e.Cookie] = t, owner(guest, e)
		}
	}
	up, down := r.sockets.Replace(guest, dump, owners)
	for _, t := range down {
		r.down(t, "no socket any more")
	}
	for _, t := range up {
		r.up(t, "found")
		r.instances[t].trusted = !r.dumped && r.d.edge.Adopted()
	}
	r.heard(guest)
	r.shareAll()
}

// heard notes that the sockets of a namespace from before are known, or that it is gone.
func (r *registry) heard(guest uint16) {
	delete(r.awaited, guest)
	if r.dumped || len(r.awaited) > 0 {
		return
	}
	r.withdrawStale()
	r.dumped, r.dirty = true, true
}

// withdrawStale takes back what the edge still lets in for programs that ended while no daemon was
// there.
func (r *registry) withdrawStale() {
	admitted, err := r.d.edge.Admitted()
	if err != nil {
		r.d.log.Warn("cannot compare the edge with the sockets", "error", err)
	}
	for _, t := range admitted {
		if r.instances[t] == nil {
			r.d.edge.Withdraw(t)
		}
	}
}

// up admits a triple's first packets; flush tells the controller.
func (r *registry) up(t sid.Triple, why string) {
	i := &instance{}
	r.instances[t] = i
	r.changes++
	r.dirty = true
	if r.known(t) {
		r.admit(t, i)
	}
	r.d.log.Info("serving", "service", r.name(t.Service), "proto", t.Proto, "port", t.Port, "why", why)
	r.share(t)
}

// admit lets first packets in. It waits until it is known who may connect.
func (r *registry) admit(t sid.Triple, i *instance) {
	err := r.d.edge.Admit(t)
	if i.barred = err != nil; !i.barred {
		return
	}
	i.refused = err.Error()
	for _, known := range []error{host.ErrSuffix, host.ErrNoRoom} {
		if errors.Is(err, known) {
			i.refused = known.Error()
		}
	}
	r.d.log.Warn("cannot serve", "triple", t, "error", err)
}

// down makes late first packets bounce at once; flush tells the controller.
func (r *registry) down(t sid.Triple, why string) {
	i := r.instances[t]
	if i == nil {
		return
	}
	if err := r.d.edge.Withdraw(t); err != nil {
		r.d.log.Error("cannot withdraw", "triple", t, "error", err)
	}
	i.cancelChecks()
	delete(r.instances, t)
	r.unshare(t)
	r.changes++
	r.dirty = true
	r.d.log.Info("no longer serving", "service", r.name(t.Service), "proto", t.Proto, "port", t.Port, "why", why)
}

// withdrawAll is the host's own goodbye.
func (r *registry) withdrawAll() {
	for t := range r.instances {
		r.down(t, "the host leaves")
	}
}

// name of a service, as far as it was told.
func (r *registry) name(id sid.ServiceID) string {
	if p := r.policies[id]; p != nil && p.Name != "" {
		return p.Name
	}
	return id.String()
}

// newSession makes the next flush tell everything.
func (r *registry) newSession() { r.owed, r.dirty = true, true }

// snapshot tells everything, anew.
func (r *registry) snapshot() {
	r.owed = false
	clear(r.told)
	var all []*apiv1.Registration
	for t, i := range r.instances {
		i.reconsider()
		all = append(all, r.registration(t, i))
	}
	r.seq++
	r.d.control.send(&apiv1.HostReport{Report: &apiv1.HostReport_Snapshot{Snapshot: &apiv1.Registrations{Entries: all, Seq: r.seq}}})
}

// reconsider keeps the edge's refusal; the controller may have changed its mind.
func (i *instance) reconsider() {
	if !i.barred {
		i.refused = ""
	}
}

// flush reports what changed, withdrawals first. A snapshot waits until the sockets from before are
// known: without them it would withdraw what serves.
func (r *registry) flush() {
	if !r.dirty || r.d.control.out == nil || !r.dumped {
		return
	}
	r.dirty = false
	if r.owed {
		r.snapshot()
		return
	}
	var gone, come []*apiv1.Registration
	for t := range r.told {
		if r.instances[t] == nil {
			gone = append(gone, &apiv1.Registration{Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port), Gone: true})
			delete(r.told, t)
		}
	}
	for t, i := range r.instances {
		if told, ok := r.told[t]; !ok || told != r.verdict(t, i) {
			come = append(come, r.registration(t, i))
		}
	}
	if len(gone)+len(come) == 0 {
		return
	}
	r.seq++
	r.d.control.send(&apiv1.HostReport{Report: &apiv1.HostReport_Delta{Delta: &apiv1.Registrations{Entries: append(gone, come...), Seq: r.seq}}})
}

// registration is what the controller is told of a triple; it is noted as told.
func (r *registry) registration(t sid.Triple, i *instance) *apiv1.Registration {
	v := r.verdict(t, i)
	if told, ok := r.told[t]; ok && told != v {
		r.d.log.Info("readiness changed", "service", r.name(t.Service), "proto", t.Proto, "port", t.Port, "ready", v.reason == "", "reason", v.reason)
	}
	r.told[t] = v
	g := &apiv1.Registration{
		Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port),
		Ready: v.reason == "", Reason: v.reason, Queue: v.queue, CanResume: v.resume,
	}
	r.d.permits.show(g, t)
	return g
}

// verdict is what is reported of a triple.
func (r *registry) verdict(t sid.Triple, i *instance) verdict {
	v := i.verdict(r.known(t))
	v.resume = r.d.sessions.canResume(t)
	return v
}

// known reports whether the service's policy is known: until then nobody can say what ready means.
func (r *registry) known(t sid.Triple) bool { return r.policies[t.Service] != nil }
