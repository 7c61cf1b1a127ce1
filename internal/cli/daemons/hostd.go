package daemons

import (
	"os"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api/member"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/settings"
	"scaffold.dev/scaffold/internal/host/hostd"
	"scaffold.dev/scaffold/internal/operate/obs"
)

const aboutHostd = `Hostd makes this host part of a Scaffold network: it finds the router on its uplink, joins through it,
and from then on every socket that a program of the host binds to a service's address serves that
service, and every connection to one is taken by an instance that the network picks.

It looks for the router on every interface of Ethernet, if --uplink names none. Where no cable leads to one
it makes a tunnel through whatever carries UDP, also from behind a NAT, to a router that offers tunnels
(routerd --tunnel); the controller must be named then. --uplink tunnel makes one in any case.

It sets up addresses, routes and rules of its network namespace, and puts back what others remove.
SIGTERM leaves the network and removes all of it. After kill -9 everything goes on without the daemon,
and the next start adopts it; --keep makes SIGTERM behave so, for an upgrade, and SIGUSR1 always does.`

// Hostd is `scaffold hostd`.
func Hostd() *cobra.Command {
	var cfg hostd.Config
	var format, level string
	var urgency *nice
	cmd := &cobra.Command{
		Use:   "hostd --name NAME [--uplink DEVICE]",
		Short: "Run the host daemon: programs here can serve names and connect to them",
		Long:  aboutHostd,
		Example: `  scaffold hostd --name s1
  scaffold hostd --name s1 --uplink eth0
  scaffold hostd --name s1 --uplink eth0 --state /var/lib/scaffold/s1 --socket /run/scaffold/s1.sock
  scaffold hostd --name s1 --uplink eth0 --controller http://[2001:db8::1]:23780
  scaffold hostd --config /etc/scaffold/hostd.yaml
  scaffold hostd --name s1 --uplink tunnel --controller http://192.0.2.1:23728`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := obs.NewLogger(cmd.ErrOrStderr(), format, level)
			if err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			if err := cfg.Check(); err != nil {
				return exit.Fail(exit.Usage, "`scaffold hostd --help` has examples", err)
			}
			urgency.take(log)
			cfg.Lab = os.Getenv("SCAFFOLD_LAB")
			ctx, stop := handingOver(cmd.Context())
			defer stop()
			return hostd.Run(ctx, cfg, log)
		},
	}
	f := cmd.Flags()
	urgency = addNice(f)
	f.StringVar(&cfg.Name, "name", "", "name of this host in the network")
	f.StringSliceVar(&cfg.Uplinks, "uplink", nil, "interface that leads to a router, or tunnel, tunnel:vxlan or tunnel:wireguard; repeat for more, the preferred one first (default auto: every interface of Ethernet, and a tunnel while none leads to a router)")
	f.StringSliceVar(&cfg.Controllers, "controller", nil, "endpoint of the controller, http://host:port or unix:/path; repeat for several (default: through the first-hop router)")
	f.StringVar(&cfg.Socket, "socket", hostd.DefaultSocket, "Unix socket of the host's API")
	f.StringVar(&cfg.Metrics, "metrics", "", "address to serve /metrics and /healthz at besides the socket, host:port")
	f.StringVar(&cfg.StateDir, "state", hostd.DefaultStateDir, "directory for the host's key, its last place and the names it knows")
	f.StringVar(&cfg.BPFFS, "bpffs", "", "BPF file system for pins (default /run/scaffold/bpf, mounted if need be)")
	f.BoolVar(&cfg.Keep, "keep", false, "leave the data path in place when stopped, for the next hostd to adopt")
	f.StringVar(&cfg.ResolvConf, "resolv-conf", "", "resolv.conf whose servers answer for names of other domains (default: nobody does)")
	f.StringSliceVar(&cfg.DNS, "dns", hostd.DefaultDNS, "addresses to answer DNS on; empty: none")
	command.AllowEmpty(f, "dns")
	f.StringVar(&cfg.Permits, "permits", "", "directory of permits to serve (*.permit), and of services' keys (*.key): what is put there counts within seconds")
	f.StringArrayVar(&cfg.Serve, "serve", nil, "who may serve on this host: SERVICE=USER,@GROUP,..., with * for all services that have no list; any: every user, system: root and the accounts of services (default *=system)")
	f.StringArrayVar(&cfg.ExecChecks, "exec-check", nil, "command that ready checks (exec:) may run on this host, as the serving program's user: COMMAND, or NAME=COMMAND for exec:NAME; repeat for more")
	f.DurationVar(&cfg.KeyFor, "key-for", member.DefaultKeyFor, "how old the host's key becomes in a network with keys before it gets another one, which no flow notices; 0: it keeps it")
	f.StringVar(&cfg.Journal, "journal", "", "append each decision about a flow that moves or fails over to this file, as lines of JSON")
	f.StringVar(&format, "log-format", "text", "text or json")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	cmd.MarkFlagRequired("name")
	return settings.With(cmd, cfg.Check)
}
