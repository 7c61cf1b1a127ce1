// Package config is what a controller is told at its start: checked, with defaults for what is not said, and settled by
// what the store has.
package config

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/sid"
)

// Config is what the controller is told at start. Zero values stand for the defaults.
type Config struct {
	Name          string // of this controller
	Network       string // name of the network
	Domain        string // DNS domain of the service names
	Space         sid.Space
	Data          string   // directory of the embedded store
	Etcd          []string // or the endpoints of an etcd elsewhere
	EtcdTLS       *tls.Config
	Cluster       *store.Cluster              // or, with Data, a member of the controllers' own etcd
	PeerClear     bool                        // members of Cluster may speak in the clear although the network has keys
	EtcdClear     bool                        // the same of Etcd
	LeaderLease   time.Duration               // how long the silence of a controller that leads is waited for
	Advertise     []string                    // endpoints at which daemons and other controllers reach this one; nil: as it listens
	Decided       func(keys bool) error       // told before anything runs; its error ends the start; nil: nobody asks
	Beside        func(context.Context) error // what else runs while this controller leads; nil: nothing
	EtcdCertFile  string                      // what EtcdTLS shows, to know when it ends
	Lab           string                      // whose controller this is; empty: none
	Listen        []string                    // endpoints of the API beside the socket
	ListenByTrust bool                        // instead of Listen: on all addresses with keys, by this machine alone where it is open
	Socket        string                      // path of the API's Unix socket; empty: none
	Services      []ServiceSpec
	ProbeInterval time.Duration  // between PROBEs of a host
	SuspectAfter  uint32         // unanswered probes
	GoneAfter     time.Duration  // of unanswered probes
	Lease         time.Duration  // how long a host's silent daemon is waited for
	Grace         time.Duration  // how long after a restart rules wait for reports
	SwitchLease   time.Duration  // and how long an OpenFlow switch is trusted that is not back by then; 0: five times Grace
	Quarantine    time.Duration  // how long a locator is given to nobody else
	RedirectFor   time.Duration  // how long what comes for a locator that its host left is sent after it
	Trust         string         // TrustOpen, TrustKeys; empty: as the store says, and keys in a new network
	Serve         string         // who may serve what names nobody: ServeAny, ServeNamed
	CertifyFor    time.Duration  // how long the certificate of a host's locator is valid
	CredentialFor time.Duration  // how long members' credentials are
	Announce      time.Duration  // how long the network's next key is known before it certifies
	KeyOverlap    time.Duration  // how long a member's key of before counts beside the one that took its place
	Doors         []net.Listener // more places to listen, for what relays calls of others: nobody rules by them
	QueueLength   int            // orders that a stream may lag behind
	Profiles      bool           // serve /debug/pprof on the socket
	Mounts        []api.Mount    // what else of this process is served with the API
	Metrics       *obs.Metrics   // of "controld", where the process exports more with them; nil: its own

	trustSaid bool // Trust was there before the store was asked
}

// How much hosts are trusted: whoever comes, or members, whom tokens make such.
const (
	TrustOpen = "open"
	TrustKeys = "keys"
)

// Who may serve a service that has neither a key nor a list of servers.
const (
	ServeAny   = "any"   // any host of the network
	ServeNamed = "named" // nobody
)

// Defaults for what a Config leaves empty; docs/protocol.md §5.3 has the reasons of the probes'.
const (
	DefaultSocket        = "/run/scaffold/controld.sock"
	DefaultData          = "/var/lib/scaffold/controld"
	DefaultListen        = "[::]:23728"
	DefaultDomain        = "svc"
	DefaultNetwork       = "scaffold"
	DefaultProbeInterval = 25 * time.Millisecond
	DefaultSuspectAfter  = 3
	DefaultGoneAfter     = time.Second
	DefaultLease         = 5 * time.Second
	DefaultGrace         = 3 * time.Second
	DefaultQuarantine    = 15 * time.Minute
	DefaultRedirectFor   = time.Minute
	DefaultCertifyFor    = 24 * time.Hour
	DefaultCredentialFor = 90 * 24 * time.Hour
	DefaultAnnounce      = time.Minute
	DefaultQueueLength   = 4096
)

// DefaultKeyOverlap is how long a member's key of before counts beside the one that took its place: what it signed is still
// under way, and other hosts hear of neither at once.
const DefaultKeyOverlap = time.Minute

// Check fills in defaults and says what is wrong.
func (c *Config) Check() error {
	orElse(&c.Name, "controller")
	orElse(&c.Network, DefaultNetwork)
	orElse(&c.Domain, DefaultDomain)
	orElse(&c.Data, DefaultData)
	orElse(&c.Space, sid.DefaultSpace())
	orElse(&c.ProbeInterval, DefaultProbeInterval)
	orElse(&c.SuspectAfter, DefaultSuspectAfter)
	orElse(&c.GoneAfter, DefaultGoneAfter)
	orElse(&c.Lease, DefaultLease)
	orElse(&c.Grace, DefaultGrace)
	orElse(&c.SwitchLease, 5*c.Grace) // Open vSwitch tries again after up to 8 s
	orElse(&c.Quarantine, DefaultQuarantine)
	orElse(&c.RedirectFor, DefaultRedirectFor)
	orElse(&c.Serve, ServeAny)
	orElse(&c.CertifyFor, DefaultCertifyFor)
	orElse(&c.CredentialFor, DefaultCredentialFor)
	orElse(&c.KeyOverlap, DefaultKeyOverlap)
	orElse(&c.Announce, DefaultAnnounce)
	orElse(&c.QueueLength, DefaultQueueLength)
	c.Domain = strings.Trim(strings.ToLower(c.Domain), ".")
	if err := c.checkTimes(); err != nil {
		return err
	}
	if err := c.Space.Validate(); err != nil {
		return err
	}
	if _, err := names.Clean(c.Domain, ""); err != nil {
		return fmt.Errorf("domain: %w", err)
	}
	if err := checkDomain(c.Domain); err != nil {
		return err
	}
	for _, x := range []struct{ what, name string }{{"network", c.Network}, {"controller", c.Name}} {
		if _, err := names.Clean(x.name, ""); err != nil { // capitals are let through: there are networks with such names
			return fmt.Errorf("%s name %.80q: want letters, digits and hyphens, such as lab", x.what, x.name)
		}
	}
	if c.Trust != "" && c.Trust != TrustOpen && c.Trust != TrustKeys {
		return fmt.Errorf("trust %q: want %s or %s", c.Trust, TrustOpen, TrustKeys)
	}
	if c.Serve != ServeAny && c.Serve != ServeNamed {
		return fmt.Errorf("serve %q: want %s or %s", c.Serve, ServeAny, ServeNamed)
	}
	for _, endpoint := range c.Listen {
		if _, err := api.ParseEndpoint(endpoint); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	if len(c.Listen) == 0 && !c.ListenByTrust && c.Socket == "" {
		return fmt.Errorf("nowhere to listen: give --listen or --socket")
	}
	return c.checkSeveral()
}

// checkTimes refuses what would be over before it began.
func (c *Config) checkTimes() error {
	for _, x := range []struct {
		flag string
		time time.Duration
	}{{"probe-interval", c.ProbeInterval}, {"gone-after", c.GoneAfter}, {"lease", c.Lease}, {"grace", c.Grace}, {"quarantine", c.Quarantine},
		{"redirect", c.RedirectFor}, {"certify", c.CertifyFor}, {"credentials-for", c.CredentialFor}, {"announce", c.Announce}} {
		if x.time < 0 {
			return fmt.Errorf("%s %v: want a time of more than 0", x.flag, x.time)
		}
	}
	return nil
}

// checkSeveral looks at what several controllers need: who they are, and how they reach each other.
func (c *Config) checkSeveral() error {
	orElse(&c.LeaderLease, store.DefaultLease)
	if c.LeaderLease < minLease || c.LeaderLease > maxLease {
		return fmt.Errorf("leader-lease %v: want %v to %v", c.LeaderLease, minLease, maxLease)
	}
	for _, endpoint := range c.Advertise {
		if _, err := api.ParseEndpoint(endpoint); err != nil {
			return fmt.Errorf("advertise: %w", err)
		}
	}
	if c.Cluster == nil && len(c.Etcd) == 0 {
		return nil
	}
	if c.Cluster != nil && len(c.Etcd) > 0 {
		return fmt.Errorf("the state is either in an etcd elsewhere (--etcd) or in the controllers (--cluster, --peer, --join)")
	}
	if c.Cluster != nil {
		c.Cluster.Name = c.Name
		if c.Cluster.Own() == "" {
			return fmt.Errorf("--cluster does not name this controller, %s, and there is no --peer: want %s=https://host:port among its members", c.Name, c.Name)
		}
		if err := c.refuseNewPeers(); err != nil {
			return err
		}
	}
	return c.advertise()
}

// Store is what the store is told.
func (c *Config) Store(log *slog.Logger) store.Config {
	return store.Config{Dir: c.Data, Endpoints: c.Etcd, TLS: c.EtcdTLS, Cluster: c.Cluster, Name: c.Name, Version: obs.Version(), Network: c.Network, Lease: c.LeaderLease, Log: log}
}

// What a leader's lease may be: etcd counts in seconds and gives none under two.
const (
	minLease = 2 * time.Second
	maxLease = time.Minute
)

func orElse[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
