package gateway

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/settings"
	"scaffold.dev/scaffold/internal/host/gateway"
	"scaffold.dev/scaffold/internal/operate/obs"
)

const aboutGateway = `Gateway lets clients that have no Scaffold, by IPv4 or IPv6, reach services at an address and port of this
host: browsers, other teams, other networks. It runs on a host where hostd runs. Each connection is opened
anew to the name, so the network picks the instance; one that fails before a byte was sent is tried again
at another. Nothing is terminated or looked into: TLS goes through as it is.

--listen is ADDRESS:PORT[/udp]=SERVICE[:PORT] with options behind commas: proxy=v1 or proxy=v2 tells the
server by the PROXY protocol who its client is, max=N bounds connections, idle=TIME ends UDP sessions.
0.0.0.0 is all of IPv4, [::] all of IPv6, * both; unix:/path is a Unix socket.

SIGHUP reads --config again; flows do not notice. SIGTERM drains: /healthz says 503 at once, listeners take
clients for --drain-wait more and close, flows get --drain-limit to end; a second signal ends it at once.
SIGUSR2, or another gateway started with --takeover, hands everything over to a new process.`

// gatewayFlags are the gateway's flags as they are typed.
type gatewayFlags struct {
	cfg           gateway.Config
	format, level string
}

func (f *gatewayFlags) add(set *pflag.FlagSet) {
	set.StringArrayVar(&f.cfg.Listen, "listen", nil, "where clients come, and which service they get; repeat for more")
	set.StringVar(&f.cfg.Socket, "socket", gateway.DefaultSocket, "Unix socket of the gateway's API, /metrics and /healthz")
	set.StringVar(&f.cfg.HTTP, "metrics", "", "address to serve /metrics and /healthz at besides the socket, host:port")
	set.StringVar(&f.cfg.Daemon, "daemon", "", "endpoint of this host's daemon (default: $"+remote.APIVariable+", else its usual socket)")
	set.IntVar(&f.cfg.MaxConnections, "max-connections", 0, "connections and UDP sessions at once (default: as many as open files allow)")
	set.IntVar(&f.cfg.PerClient, "per-client", 0, "of them from one IPv4 address or IPv6 /64 (default: no such limit)")
	set.DurationVar(&f.cfg.Connect, "connect-timeout", gateway.DefaultConnect, "how long it may take to reach an instance, all tries together")
	set.DurationVar(&f.cfg.KeepAlive, "keepalive", gateway.DefaultKeepAlive, "silence after which a peer is asked whether it is there; after twice that it is given up")
	set.DurationVar(&f.cfg.UDPIdle, "udp-idle", gateway.DefaultUDPIdle, "silence after which a UDP session has ended")
	set.DurationVar(&f.cfg.DrainWait, "drain-wait", gateway.DefaultDrainWait, "how long clients are taken while /healthz says 503: until whoever sends them here has noticed")
	set.DurationVar(&f.cfg.DrainLimit, "drain-limit", gateway.DefaultDrainLimit, "how long flows are waited for when the listeners have closed")
	set.BoolVar(&f.cfg.LogFlows, "log-flows", false, "a line for each flow: client, name, time, bytes, how it ended")
	set.BoolVar(&f.cfg.TakeOver, "takeover", false, "take listeners and UDP sessions from the gateway that answers at --socket, if one does")
	set.StringVar(&f.format, "log-format", "text", "text or json")
	set.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
}

// Command is `scaffold gateway`.
func Command() *cobra.Command {
	f := &gatewayFlags{}
	cmd := f.command()
	cmd.AddCommand(gatewayStatus(), gatewayDrain(), gatewayUndrain(), gatewayReload())
	return cmd
}

// Daemon is the gateway itself, without what is asked of one that runs.
func Daemon() *cobra.Command { return new(gatewayFlags).command() }

// command makes it of its flags.
func (f *gatewayFlags) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gateway --listen ADDRESS:PORT=SERVICE",
		Short: "Let clients without Scaffold reach services by an address and port of this host",
		Long:  aboutGateway,
		Example: `  scaffold gateway --listen 0.0.0.0:80=web --listen [::]:80=web
  scaffold gateway --listen '*:443=shop:8443,proxy=v2' --listen 192.0.2.7:53/udp=dns --metrics 192.0.2.7:9100
  scaffold gateway --config /etc/scaffold/gateway.yaml
  scaffold gateway drain --follow && systemctl stop scaffold-gateway`,
		Args: cobra.NoArgs,
	}
	f.add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd) }
	cmd = settings.With(cmd, f.cfg.Check)
	read := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("config") {
			f.cfg.Reload = rereader(cmd.Flags())
		}
		return read(cmd, args)
	}
	return cmd
}

func (f *gatewayFlags) run(cmd *cobra.Command) error {
	log, err := obs.NewLogger(cmd.ErrOrStderr(), f.format, f.level)
	if err != nil {
		return exit.Fail(exit.Usage, "", err)
	}
	if err := f.cfg.Check(); err != nil {
		return exit.Fail(exit.Usage, "`scaffold gateway --help` has examples", err)
	}
	// Signals are the gateway's own: SIGHUP is no end to it.
	return explainGateway(gateway.Run(context.WithoutCancel(cmd.Context()), f.cfg, log))
}

// rereader reads the file again that --config names; what was typed beside it still wins.
func rereader(typed *pflag.FlagSet) func() (gateway.Config, error) {
	type value struct {
		name string
		all  []string
	}
	var values []value
	typed.Visit(func(f *pflag.Flag) { // before the file has set any
		all := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			all = list.GetSlice()
		}
		values = append(values, value{f.Name, all})
	})
	return func() (gateway.Config, error) {
		again := &gatewayFlags{}
		cmd := again.command()
		// Reading the file looks at the command's context, which cobra sets only in a command that it runs.
		cmd.SetContext(context.Background())
		for _, v := range values {
			for _, text := range v.all {
				if err := cmd.Flags().Set(v.name, text); err != nil {
					return gateway.Config{}, err
				}
			}
		}
		err := cmd.PreRunE(cmd, nil)
		return again.cfg, err
	}
}
