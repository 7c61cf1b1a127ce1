package daemons

import (
	"os"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api/member"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/settings"
	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/router/routerd"
)

const aboutRouterd = `Routerd makes this Linux box a router of a Scaffold network. It switches IPv6 forwarding on, greets
the routers on its links, probes the hosts on them and carries their control channel, and puts the
controller's rules into the kernel. With --service it also resolves: the first packet of a flow to a
service gets an instance, or a refusal, from an eBPF program at each port.

SIGTERM removes what it put into the kernel. After kill -9 forwarding and resolution go on without the
daemon, and the next start adopts them; --keep makes SIGTERM behave so, for an upgrade, and SIGUSR1
always does.

Where a router in between knows nothing of Scaffold, name the router behind it with --link. With --tunnel
hosts that no cable joins to a router get tunnels to this one, through whatever carries UDP.

The socket serves /status (JSON), /metrics and /healthz.`

// routerdFlags are routerd's flags as they are typed.
type routerdFlags struct {
	cfg           routerd.Config
	links         []string
	tunnels       []string
	format, level string
	nice          *nice
}

// Routerd is `scaffold routerd`.
func Routerd() *cobra.Command {
	f := &routerdFlags{}
	cmd := &cobra.Command{
		Use:   "routerd --name NAME --controller ENDPOINT",
		Short: "Run the router daemon: forward, probe hosts and, with --service, resolve names",
		Long:  aboutRouterd,
		Example: `  scaffold routerd --name r1 --controller http://[2001:db8::1]:23728 --mgmt eth0
  scaffold routerd --name s1 --service --controller http://10.0.0.1:23728 --port eth1 --port eth2
  scaffold routerd --name r1 --controller http://10.0.0.1:23728,http://10.0.0.2:23728,http://10.0.0.3:23728
  scaffold routerd --name r2 --controller http://10.0.0.1:23728 --link peer=r3,port=eth2,via=fe80::1
  scaffold routerd --config /etc/scaffold/routerd.yaml
  scaffold routerd --name r3 --controller http://10.0.0.1:23728 --tunnel 192.0.2.1 --tunnel wireguard:[2001:db8::1]
  curl --unix-socket /run/scaffold/routerd.sock http://scaffold/status`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	set := cmd.Flags()
	set.StringVar(&f.cfg.Name, "name", "", "name of this router in the network")
	set.StringSliceVar(&f.cfg.Controllers, "controller", nil, "endpoint of the controller, https://host:port, http://host:port where the network is open, or unix:/path; of several, repeat it: the one that leads is found, and the others once it is gone")
	set.BoolVar(&f.cfg.Service, "service", false, "resolve services: be a service router")
	set.Uint32Var(&f.cfg.Block, "block", 0, "number of the block of locators to ask for, 1 to 255 (default: any)")
	set.StringSliceVar(&f.cfg.Ports, "port", nil, "interface to forward on; repeat for more (default: all Ethernet-like ones but --mgmt)")
	set.StringVar(&f.cfg.Management, "mgmt", "", "interface that leads to the controller and is no port")
	set.StringArrayVar(&f.links, "link", nil, "a router behind one without Scaffold, peer=NAME,port=INTERFACE,via=ADDRESS; repeat for more")
	set.StringArrayVar(&f.tunnels, "tunnel", nil, "offer tunnels to hosts without a cable at this address, [vxlan:|wireguard:]ADDRESS[:PORT]; repeat for more")
	set.StringVar(&f.cfg.Socket, "socket", routerd.DefaultSocket, "path of the status API's Unix socket")
	set.StringVar(&f.cfg.Metrics, "metrics", "", "address to serve /metrics and /healthz at besides the socket, host:port")
	set.StringVar(&f.cfg.Credentials, "credentials", routerd.DefaultCredentials, "directory of what scaffold join wrote: the router's key and certificates, for a network with keys")
	set.DurationVar(&f.cfg.KeyFor, "key-for", member.DefaultKeyFor, "how old the router's key becomes in a network with keys before it gets another one; 0: it keeps it")
	set.StringVar(&f.cfg.BPFFS, "bpffs", "", "BPF file system for pins (default /run/scaffold/bpf, mounted if need be)")
	set.BoolVar(&f.cfg.Keep, "keep", false, "leave routes and tables in place when stopped, for the next routerd to adopt")
	set.BoolVar(&f.cfg.NoTCX, "clsact", false, "attach by clsact filters also where the kernel has tcx (6.6)")
	set.BoolVar(&f.cfg.Profiles, "pprof", false, "serve /debug/pprof/ too; it tells much of the process")
	f.nice = addNice(set)
	set.StringVar(&f.format, "log-format", "text", "text or json")
	set.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	cmd.MarkFlagRequired("name")
	cmd.MarkFlagRequired("controller")
	return settings.With(cmd, f.parse)
}

func (f *routerdFlags) run(cmd *cobra.Command) error {
	log, err := obs.NewLogger(cmd.ErrOrStderr(), f.format, f.level)
	if err != nil {
		return exit.Fail(exit.Usage, "", err)
	}
	if err := f.parse(); err != nil {
		return err
	}
	f.nice.take(log)
	ctx, stop := handingOver(cmd.Context())
	defer stop()
	f.cfg.Lab = os.Getenv("SCAFFOLD_LAB")
	return routerd.Run(ctx, f.cfg, log)
}

func (f *routerdFlags) parse() error {
	for _, text := range f.links {
		l, err := routerd.ParseLink(text)
		if err != nil {
			return exit.Fail(exit.Usage, "as in --link peer=r2,port=eth1,via=fe80::1", err)
		}
		f.cfg.Links = append(f.cfg.Links, l)
	}
	for _, text := range f.tunnels {
		offers, err := underlay.ParseOffers(text)
		if err != nil {
			return exit.Fail(exit.Usage, "as in --tunnel 192.0.2.1 or --tunnel wireguard:192.0.2.1:51820", err)
		}
		f.cfg.Tunnels = append(f.cfg.Tunnels, offers...)
	}
	return exit.Fail(exit.Usage, "`scaffold routerd --help` has examples", f.cfg.Check())
}
