package registrations

import (
	"bytes"
	"fmt"
	"maps"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/replica"
	"scaffold.dev/scaffold/sid"
)

// Most is how many instances a host may have.
const Most = 65536

// A Plan makes rules of instances.
type Plan interface {
	Register(host string, t sid.Triple, r plan.Readiness) error
	Withdraw(host string, t sid.Triple)
}

// Services are those that there are.
type Services interface {
	ByID(id sid.ServiceID) (names.Record, bool)
}

// Access knows who may connect to each service.
type Access interface {
	Of(id sid.ServiceID) *apiv1.AccessList
	Edition(r names.Record) uint64 // of what a host is told of a service
	TouchService(id sid.ServiceID) // others serve it than before
}

// Drains are told to hosts that serve.
type Drains interface {
	Tell(host string, id sid.ServiceID)
}

// Hosts are those of the network.
type Hosts interface {
	Here(host string) bool
	Connected(host string) bool                 // its daemon has a session
	Order(host string, o *apiv1.HostOrder)      // to one that is connected
	Locator(host string) sid.Locator            // the preferred one
	Keys(host string, shown []byte) [][]byte    // by which it is known, with the one that its session showed
	Record(host string) store.Host              // who it is, as it is stored
	Revoked(key []byte) bool                    // it is no host's any more
	MayTell(host string) bool                   // it has room for an event about it
	Unknown(host string, service sid.ServiceID) // it would serve what there is not
}

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// A Saver keeps records until they are stored.
type Saver interface {
	Later(...store.Change)
}

// A Loop runs what is to be done later in the goroutine that owns the registrations.
type Loop interface {
	After(time.Duration, func())
}

// A Counter counts.
type Counter interface {
	Inc(values ...string)
}

// A Config is what registrations need of others.
type Config struct {
	Named    bool // a service that names nobody who may serve it is served by nobody
	Plan     Plan
	Services Services
	Access   Access
	Drains   Drains
	Hosts    Hosts
	Events   Events
	Saver    Saver
	Loop     Loop
	Refused  Counter // registrations, by why
	Ready    func()  // an instance became ready
}

// Registrations are those of all hosts of a network. The loop owns them.
type Registrations struct {
	Config
	hosts map[string]*host
	news  map[string][]*apiv1.ServicePolicy // for hosts, since they were told last
	had   map[sid.ServiceID]bool            // services that had an instance once
	asked map[sid.ServiceID]time.Time       // when a host asked last for one that had none

	unkept map[*host]struct{} // hosts whose records are to be written
}

// A host is one that may register.
type host struct {
	name      string
	wanted    map[sid.Triple]wish      // all that it registered, also what was refused
	told      map[sid.ServiceID]uint64 // edition of the policies that the session knows
	shown     []byte                   // the public key of the session's Join, proven only in a network with keys
	challenge []byte                   // that the session's signatures quote

	pages pages     // its records
	as    identity  // that they have
	due   time.Time // when they would be written next if they were at even intervals
	waits bool      // they are written when that is soon enough
}

// A wish is a registration as the host sent it.
type wish struct {
	Registration
	user string // whose programs serve, as the host says
	told bool   // of an instance: that it is ready is known

	permit    []byte // as it was shown
	signature []byte
	stood     bool // the signature was looked at, in a term before
	proved    bool // both were looked at

	page int // its record; 0: it is no instance
}

// A Registration is what became of one.
type Registration struct {
	Ready   plan.Readiness
	Since   time.Time
	Up      bool      // it is an instance
	Refused string    // why it is none
	Until   time.Time // when the permit ends that is watched
	Warned  bool      // that is soon
}

// New knows of none.
func New(cfg Config) *Registrations {
	return &Registrations{Config: cfg, hosts: make(map[string]*host), news: make(map[string][]*apiv1.ServicePolicy),
		had: make(map[sid.ServiceID]bool), asked: make(map[sid.ServiceID]time.Time), unkept: make(map[*host]struct{})}
}

// Joined begins a session of a host, whose Join bore a key: it knows nothing yet. Instances that another key proved do not
// go on under this one, unless it succeeds that key.
func (x *Registrations) Joined(name string, key []byte, succeeds bool) {
	h := x.known(name)
	for t, w := range h.wanted {
		if len(w.permit) > 0 && !bytes.Equal(h.shown, key) && !succeeds {
			x.withdraw(h, t)
		}
	}
	h.shown, h.challenge = key, challenge()
	h.told = make(map[sid.ServiceID]uint64)
	delete(x.news, name)
	x.anew(h)
}

// Settle puts what a host served before into the plan: until its snapshot replaces it.
func (x *Registrations) Settle(name string) {
	h := x.hosts[name]
	if h == nil {
		return
	}
	for t, w := range h.wanted {
		if w.Up {
			_ = x.Plan.Register(name, t, w.Ready) // fails for services that do not exist any more
		}
	}
}

// Left is for a host that is not here any more; the plan has forgotten it already.
func (x *Registrations) Left(name string) {
	if h := x.hosts[name]; h != nil {
		h.wanted = nil
		x.forgetKept(h)
	}
}

// Forget is for a host that is none of the network's any more.
func (x *Registrations) Forget(name string) {
	if h := x.hosts[name]; h != nil {
		x.forgetKept(h)
	}
	delete(x.hosts, name)
	delete(x.news, name)
}

// Replace takes a full set: what it does not name is withdrawn first.
func (x *Registrations) Replace(name string, entries []*apiv1.Registration) {
	h := x.hosts[name]
	var naming replica.Naming[sid.Triple]
	naming.Begin()
	for _, r := range entries {
		if t, err := triple(r); err == nil && !r.Gone {
			naming.Name(t)
		}
	}
	for _, t := range naming.Commit(maps.Keys(h.wanted)) {
		x.withdraw(h, t)
	}
	for _, r := range entries {
		x.Take(name, r)
	}
	x.doubt(h, func(p page) bool { return p.count == 0 }) // what could not be read is replaced, too
}

// Take takes what a host says of one socket: that it serves, or does no more.
func (x *Registrations) Take(name string, r *apiv1.Registration) {
	h := x.hosts[name]
	t, err := triple(r)
	switch {
	case err != nil:
		x.refuse(h, r, err.Error())
	case r.Gone:
		x.withdraw(h, t)
	case !x.wants(h, t, r):
		x.refuse(h, r, fmt.Sprintf("a host serves at most %d instances", Most))
	default:
		x.judge(h, t)
	}
}

func triple(r *apiv1.Registration) (sid.Triple, error) {
	t := sid.Triple{Service: sid.ServiceID{SS: r.Ss, Suffix: sid.Suffix(r.Suffix)}, Proto: sid.Proto(r.Proto), Port: uint16(r.Port)}
	if r.Proto > 255 || r.Port > 65535 {
		return t, fmt.Errorf("serviceID %v, protocol %d, port %d: not an instance", t.Service, r.Proto, r.Port)
	}
	return t, checkTriple(t)
}

func checkTriple(t sid.Triple) error {
	if !t.Service.Valid() || t.Proto == 0 || t.Port == 0 {
		return fmt.Errorf("serviceID %v, protocol %d, port %d: not an instance", t.Service, t.Proto, t.Port)
	}
	return nil
}

// wants notes a registration, whether the host may serve or not; false where it has too many.
func (x *Registrations) wants(h *host, t sid.Triple, r *apiv1.Registration) bool {
	w, again := h.wanted[t]
	if !again && len(h.wanted) >= Most {
		return false
	}
	if !again || w.Ready.Ready != r.Ready {
		w.Since = time.Now()
	}
	w.Ready = plan.Readiness{Ready: r.Ready, Queue: r.Queue && !r.Ready, Slow: r.Slow && (r.Queue || r.Ready), Resume: r.CanResume, Reason: events.Shortened(r.Reason),
		Working: r.Working, Listeners: r.Listeners, Carries: r.Carries}
	w.user = r.User
	if !bytes.Equal(w.permit, r.Permit) || !bytes.Equal(w.signature, r.Signature) {
		w.permit, w.signature, w.proved, w.Warned = bytes.Clone(r.Permit), bytes.Clone(r.Signature), false, false
		w.stood = false
	}
	x.put(h, t, w)
	return true
}

func (x *Registrations) withdraw(h *host, t sid.Triple) {
	w, ok := h.wanted[t]
	if !ok {
		return
	}
	x.drop(h, t)
	x.Plan.Withdraw(h.name, t)
	if _, ok := x.Services.ByID(t.Service); ok && w.Up {
		x.Access.TouchService(t.Service)
		x.instanceEvent("instance.down", h, t, "instance is down: its host unregistered it")
	}
}

func (x *Registrations) refuse(h *host, r *apiv1.Registration, reason string) {
	x.Hosts.Order(h.name, &apiv1.HostOrder{Order: &apiv1.HostOrder_RegistrationRefused{
		RegistrationRefused: &apiv1.RegistrationRefused{Registration: r, Reason: reason},
	}})
}

func (x *Registrations) instanceEvent(kind string, h *host, t sid.Triple, text string) {
	name := t.Service.String()
	if r, ok := x.Services.ByID(t.Service); ok {
		name = r.Name
	}
	where := fmt.Sprintf("%s %v/%d", h.name, t.Proto, t.Port)
	x.Events.Tell(kind, name, where+": "+text, "host", h.name, "proto", t.Proto.String(), "port", events.Number(t.Port), "locator", x.Hosts.Locator(h.name).String())
}
