package daemons

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/settings"
	"scaffold.dev/scaffold/internal/controller/controld"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
)

// controldFlags are controld's flags as they are typed.
type controldFlags struct {
	cfg                      config.Config
	services, as, identities string
	create                   []string
	logFormat, logLevel      string
	nice                     *nice
	listen                   *pflag.Flag
	openflow                 openflowFlags
	several                  severalFlags
}

// Controld is `scaffold controld`.
func Controld(modules []controller.Module) *cobra.Command {
	f := &controldFlags{}
	f.openflow.cfg.Modules = modules
	cmd := &cobra.Command{
		Use:   "controld",
		Short: "Run the controller of a network",
		Long: `Controld is the controller: hosts and routers join it, operators create services and steer their
flows through it, and it tells every router what follows. Its state is in an etcd inside the
process (--data), or in one elsewhere (--etcd).

Several controllers of one network share an etcd elsewhere, or have one among themselves (--cluster,
--join). One of them leads; the others stand by, hand on what they are asked, and one takes over
when the leader is gone. "scaffold controller" looks at them.

While it is away nothing changes and every flow goes on: routers and hosts keep what they know,
and reconcile when it is back. It needs no root, only its directory and its ports.

It serves gRPC and JSON, /metrics and /healthz on every --listen address and on --socket.` + linkedIn(modules),
		Example: `  scaffold controld --listen [::]:23728 --data /var/lib/scaffold/controld --network lab
  scaffold controld --network lab --service web:ready=http:/ --service db:weight=10,ready=tcp
  scaffold controld --config /etc/scaffold/controld.yaml
  scaffold controld --name c1 --cluster c1=https://10.0.0.1:23729,c2=https://10.0.0.2:23729,c3=https://10.0.0.3:23729 \
      --peer-ca ca.pem --peer-cert c1.pem --peer-key c1.key
  scaffold controld --name c4 --peer https://10.0.0.4:23729 --join https://10.0.0.1:23728 \
      --peer-ca ca.pem --peer-cert c4.pem --peer-key c4.key
  curl --unix-socket /run/scaffold/controld.sock -H 'Content-Type: application/json' -d '{}' \
      http://scaffold/scaffold.v1.Admin/GetStatus`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.network(cmd)
	f.timing(cmd)
	f.several.add(cmd, &f.cfg)
	f.openflow.add(cmd)
	return settings.With(cmd, f.parse)
}

// linkedIn names the modules of this binary.
func linkedIn(modules []controller.Module) string {
	if len(modules) == 0 {
		return ""
	}
	text := "\n\nThis one has modules, which run where it drives switches (--openflow):"
	for _, m := range modules {
		text += " " + m.Name()
	}
	return text
}

func (f *controldFlags) network(cmd *cobra.Command) {
	d, set := sid.DefaultSpace(), cmd.Flags()
	set.StringVar(&f.cfg.Name, "name", "controller", "name of this controller")
	set.StringVar(&f.cfg.Network, "network", config.DefaultNetwork, "name of the network")
	set.StringVar(&f.cfg.Domain, "domain", config.DefaultDomain, "DNS domain of the service names")
	set.StringSliceVar(&f.cfg.Listen, "listen", nil, "where to serve the API besides the socket, host:port or http://host:port (default "+config.DefaultListen+"; of an open network this machine alone; empty: nowhere)")
	f.listen = set.Lookup("listen")
	command.AllowEmpty(set, "listen")
	set.StringVar(&f.cfg.Socket, "socket", config.DefaultSocket, "path of the API's Unix socket")
	set.StringVar(&f.cfg.Data, "data", config.DefaultData, "directory of the state")
	set.StringArrayVar(&f.create, "service", nil, "a service to create where it does not exist, NAME[:KEY=VALUE,...] with the keys ready, weight, datagrams, dscp, failover, patience and drain")
	set.StringVar(&f.cfg.Trust, "trust", "", "keys: members alone, whom tokens make such; open: whoever reaches the controller may join and rule (default keys; a network that is there stays what it is)")
	set.StringVar(&f.cfg.Serve, "serve", config.ServeAny, "who may serve a service that has neither a key nor a list of servers: any host, or named: none")
	set.StringVar(&f.services, "services", d.Services.String(), "prefix of service addresses, a /32")
	set.StringVar(&f.as, "as", d.AS.String(), "prefix of locators, a /48")
	set.StringVar(&f.identities, "identities", d.Identities.String(), "prefix of the hosts' identities, a /64")
}

func (f *controldFlags) timing(cmd *cobra.Command) {
	set := cmd.Flags()
	set.DurationVar(&f.cfg.ProbeInterval, "probe-interval", config.DefaultProbeInterval, "time between two probes of a host")
	set.Uint32Var(&f.cfg.SuspectAfter, "suspect-after", config.DefaultSuspectAfter, "unanswered probes until a host gets no new flows")
	set.DurationVar(&f.cfg.GoneAfter, "gone-after", config.DefaultGoneAfter, "unanswered probes, as time, until a host is gone")
	set.DurationVar(&f.cfg.Lease, "lease", config.DefaultLease, "how long the silence of a host's daemon goes unremarked")
	set.DurationVar(&f.cfg.Grace, "grace", config.DefaultGrace, "how long rules wait after a restart for hosts and routers to report; for hosts behind OpenFlow switches five times as long")
	set.DurationVar(&f.cfg.Quarantine, "quarantine", config.DefaultQuarantine, "how long a locator that was left is given to nobody else")
	set.DurationVar(&f.cfg.RedirectFor, "redirect", config.DefaultRedirectFor, "how long what comes for a locator that its host left is sent after it")
	set.DurationVar(&f.cfg.CertifyFor, "certify", config.DefaultCertifyFor, "how long the certificate of a host's locator is valid; hosts get fresh ones in time")
	set.DurationVar(&f.cfg.CredentialFor, "credentials-for", config.DefaultCredentialFor, "how long the credential of a member is valid; daemons get fresh ones in time")
	set.DurationVar(&f.cfg.Announce, "announce", config.DefaultAnnounce, "how long the network's next key is known, at least, before it certifies (scaffold net key rotate)")
	set.BoolVar(&f.cfg.Profiles, "pprof", false, "serve /debug/pprof/ too; it tells much of the process")
	f.nice = addNice(set)
	set.StringVar(&f.logFormat, "log-format", "text", "text or json")
	set.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
}

func (f *controldFlags) run(cmd *cobra.Command) error {
	log, err := obs.NewLogger(cmd.ErrOrStderr(), f.logFormat, f.logLevel)
	if err == nil {
		err = command.Attempt(cmd.Context(), f.parse) // it reads certificates
	}
	if err != nil {
		return exit.Fail(exit.Usage, "`scaffold controld --help` has examples", err)
	}
	f.several.log, f.cfg.Lab = log, os.Getenv("SCAFFOLD_LAB")
	if err := f.openflow.serve(&f.cfg, log); err != nil {
		return err
	}
	f.nice.take(log)
	err = controld.Run(cmd.Context(), f.cfg, log)
	if errors.Is(err, config.ErrTrust) || errors.Is(err, config.ErrClear) { // its unit does not start it again
		return exit.Fail(exit.Usage, "", err)
	}
	return err
}

// What certificates have to last: they are renewed after a third of their time, and clocks may differ by trust.Skew.
const (
	leastCredential  = 2 * trust.Skew
	leastCertificate = time.Minute
)

func (f *controldFlags) parse() error {
	for _, p := range []struct {
		flag, text string
		to         *netip.Prefix
	}{{"services", f.services, &f.cfg.Space.Services}, {"as", f.as, &f.cfg.Space.AS}, {"identities", f.identities, &f.cfg.Space.Identities}} {
		prefix, err := netip.ParsePrefix(p.text)
		if err != nil {
			return fmt.Errorf("--%s %q: want a prefix such as fd5c::/32", p.flag, p.text)
		}
		*p.to = prefix
	}
	for _, text := range f.create {
		spec, err := config.ParseServiceSpec(text)
		if err != nil {
			return fmt.Errorf("--service: %w", err)
		}
		f.cfg.Services = append(f.cfg.Services, spec)
	}
	f.cfg.ListenByTrust = !f.listen.Changed
	if err := f.several.parse(&f.cfg); err != nil {
		return err
	}
	if err := f.cfg.Check(); err != nil {
		return err
	}
	if f.cfg.CredentialFor < leastCredential || f.cfg.CertifyFor < leastCertificate {
		return fmt.Errorf("--credentials-for %v, --certify %v: want at least %v and %v: clocks may be %v apart, and a machine that restarts must not come too late", f.cfg.CredentialFor, f.cfg.CertifyFor, leastCredential, leastCertificate, trust.Skew)
	}
	if f.openflow.cfg.Release && f.several.used(&f.cfg) {
		return errors.New("--openflow-release with several controllers: who stops leading would take the rules from under the next one: leave it out")
	}
	if err := f.openflow.parse("unix:" + f.cfg.Socket); err != nil || f.cfg.Trust != config.TrustKeys || len(f.openflow.cfg.Listen) == 0 {
		return err
	}
	// Where nobody said so the store knows whether there are keys, and it is asked at the start.
	return f.openflow.cfg.RequireKeys()
}
