package hostd

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/miekg/dns"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/sid"
)

const (
	resolveLimit  = 2 * time.Second
	negativeTTL   = time.Second
	staleTTL      = 1    // seconds: what a program may keep of an answer that nobody could confirm
	defaultTTL    = 5    // seconds, where the controller gives none
	maxNames      = 8192 // kept in memory and on disk
	defaultDomain = "svc"
)

// A name is one answer of the controller, or that there is none.
type name struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	TTL     uint32     `json:"ttl"`
	Missing bool       `json:"-"`
	Until   time.Time  `json:"-"` // after it the controller is asked again
}

// errUnknownName is the controller's word that there is no such name.
var errUnknownName = errors.New("no such name")

// A names answers DNS. It has its own goroutines, those of the DNS servers; mu guards all.
type names struct {
	d *daemon

	mu      sync.Mutex
	domain  string
	plan    sid.Space
	known   map[string]name // by question: a name, or an address
	saved   *time.Timer
	servers []*dns.Server
	forward []string
}

func newNames(d *daemon) *names {
	n := &names{d: d, domain: defaultDomain, known: map[string]name{}, forward: upstreams(d.cfg.ResolvConf, d.cfg.DNS)}
	var saved struct {
		Domain string          `json:"domain"`
		Names  map[string]name `json:"names"`
	}
	if d.store.read("names.json", &saved) && saved.Names != nil {
		n.known = saved.Names
		if saved.Domain != "" {
			n.domain = saved.Domain
		}
	}
	return n
}

// setNetwork says which names and addresses are the network's.
func (n *names) setNetwork(domain string, plan sid.Space) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.plan = plan
	if domain = strings.Trim(strings.ToLower(domain), "."); domain != "" {
		n.domain = domain
	}
}

// suffix is the domain as DNS writes it.
func (n *names) suffix() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return dns.Fqdn(n.domain)
}

// lookup resolves a name, or an address for PTR: from memory while it is fresh, else from the
// controller, else from memory whatever its age.
func (n *names) lookup(ctx context.Context, question string, req *apiv1.ResolveRequest) (name, error) {
	n.mu.Lock()
	old, have := n.known[question]
	n.mu.Unlock()
	if have && time.Now().Before(old.Until) {
		return old, missing(old)
	}
	fresh, err := n.ask(ctx, req)
	if err == nil || errors.Is(err, errUnknownName) {
		n.keep(question, fresh)
		return fresh, err
	}
	if have && !old.Missing {
		old.TTL = staleTTL
		return old, nil
	}
	return name{}, err
}

func missing(a name) error {
	if a.Missing {
		return errUnknownName
	}
	return nil
}

// ask asks the controller.
func (n *names) ask(ctx context.Context, req *apiv1.ResolveRequest) (name, error) {
	_, client, _ := n.d.control.current()
	if client == nil {
		return name{}, errors.New("no way to the controller yet")
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	resp, err := apiv1connect.NewAgentClient(client, api.BaseURL()).Resolve(ctx, connect.NewRequest(req))
	switch connect.CodeOf(err) {
	case connect.CodeNotFound, connect.CodeInvalidArgument:
		if err != nil {
			return name{Missing: true, Until: time.Now().Add(negativeTTL)}, errUnknownName
		}
	}
	if err != nil {
		return name{}, err
	}
	addr, err := netip.ParseAddr(resp.Msg.Address)
	if err != nil {
		return name{}, err
	}
	if p := resp.Msg.Policy; p != nil {
		n.d.call(ctx, func() { n.d.serving.learn(addr, p) })
	}
	ttl := resp.Msg.TtlSeconds
	if ttl == 0 {
		ttl = defaultTTL
	}
	if resp.Msg.Sid == "" { // a host: its name is apart from the services'
		resp.Msg.Name += ".host"
	}
	return name{Name: resp.Msg.Name, Address: addr, TTL: ttl, Until: time.Now().Add(time.Duration(ttl) * time.Second)}, nil
}

// keep remembers an answer, on disk too: a restart while the controller is away still knows it.
func (n *names) keep(question string, a name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= maxNames {
		for q := range n.known { // any: what is needed comes back
			delete(n.known, q)
			break
		}
	}
	old, had := n.known[question]
	n.known[question] = a
	if had && old.Address == a.Address && old.Name == a.Name && old.Missing == a.Missing || a.Missing && !had {
		return
	}
	if n.saved == nil {
		n.saved = time.AfterFunc(100*time.Millisecond, n.save)
	}
}

func (n *names) save() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.saved = nil
	state := struct {
		Domain string          `json:"domain"`
		Names  map[string]name `json:"names"`
	}{n.domain, map[string]name{}}
	for q, a := range n.known {
		if !a.Missing {
			state.Names[q] = a
		}
	}
	if err := n.d.store.writeJSON("names.json", state); err != nil {
		n.d.log.Warn("a restart will not know names", "error", err)
	}
}
