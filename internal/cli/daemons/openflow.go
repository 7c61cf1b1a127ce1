package daemons

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/boost/steer"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/linux/private"
	"scaffold.dev/scaffold/internal/openflow/switchd"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// openflowFlags are controld's flags about switches.
type openflowFlags struct {
	cfg           switchd.Config
	switches      []string
	links         []string
	cert, key, ca string
}

func (f *openflowFlags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringArrayVar(&f.cfg.Listen, "openflow", nil, "where OpenFlow switches connect, tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE (as "+switchd.DefaultListen+"); without it none do")
	set.StringArrayVar(&f.switches, "switch", nil, "a switch, NAME=DATAPATHID[,service=false][,block=N][,mtu=PORT:BYTES][,cert=SHA256]; in an open network others are called as they say themselves, in one with keys they are refused")
	set.StringArrayVar(&f.links, "switch-link", nil, "a router behind one without Scaffold, switch=NAME,peer=NAME,port=PORT,via=ADDRESS; repeat for more")
	set.BoolVar(&f.cfg.OnlyListed, "switches-listed", false, "take only the switches that --switch names")
	set.BoolVar(&f.cfg.Clear, "openflow-clear", false, "in a network with keys: let switches come by tcp: too, where nobody but they reaches the address; who does could drive routers")
	set.Uint8Var(&f.cfg.FirstTable, "openflow-table", switchd.DefaultFirstTable, "first of the tables that are used in switches, besides table 0")
	set.BoolVar(&f.cfg.Primary, "openflow-primary", false, "be the only controller that may change a switch, of several of this network the one that began last; without it all are equal")
	set.BoolVar(&f.cfg.Release, "openflow-release", false, "at the end, take Scaffold's rules out of the switches; without it they forward on by them")
	set.IntVar(&f.cfg.ProbesMax, "openflow-probes", switchd.DefaultProbesMax, "probes a second to hosts at switches, all together; with more hosts each is asked less often")
	set.StringVar(&f.cert, "openflow-cert", "", "certificate (PEM) for ssl")
	set.StringVar(&f.key, "openflow-key", "", "its private key (PEM)")
	set.StringVar(&f.ca, "openflow-ca", "", "certificates (PEM) of those who may vouch for switches")
}

// parse reads what was typed; endpoint is the controller's API.
func (f *openflowFlags) parse(endpoint string) error {
	f.cfg.Controller = endpoint
	for _, text := range f.switches {
		s, err := switchd.ParseSwitch(text)
		if err != nil {
			return fmt.Errorf("--switch: %w", err)
		}
		f.cfg.Switches = append(f.cfg.Switches, s)
	}
	for _, text := range f.links {
		l, err := switchd.ParseLink(text)
		if err != nil {
			return fmt.Errorf("--switch-link: %w", err)
		}
		f.cfg.Links = append(f.cfg.Links, l)
	}
	if len(f.cfg.Listen) == 0 && (len(f.switches) > 0 || f.cfg.OnlyListed) {
		return errors.New("--switch without --openflow: no switch can connect; want for instance --openflow " + switchd.DefaultListen)
	}
	if err := f.secure(); err != nil {
		return err
	}
	return f.cfg.Check()
}

// secure reads the keys: both ends show theirs.
func (f *openflowFlags) secure() error {
	if f.cert == "" && f.key == "" && f.ca == "" {
		return nil
	}
	if f.cert == "" || f.key == "" || f.ca == "" {
		return errors.New("ssl needs --openflow-cert, --openflow-key and --openflow-ca together")
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("--openflow-cert, --openflow-key: %w", err)
	}
	pem, err := os.ReadFile(f.ca)
	if err != nil {
		return fmt.Errorf("--openflow-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("--openflow-ca %s: no certificate in it", f.ca)
	}
	f.cfg.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	return nil
}

// serve has the controller drive switches while it leads, and serve what operators ask of them, and their metrics.
// Hosts behind switches come by a door of their own: on the controller's socket they would be taken for administrators.
func (f *openflowFlags) serve(c *config.Config, log *slog.Logger) error {
	if len(f.cfg.Listen) == 0 {
		return nil
	}
	door, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix"}) // at a name of the kernel's choice
	if err != nil {
		return fmt.Errorf("a door for the hosts at switches: %w", err)
	}
	c.Decided = func(keys bool) error {
		if !keys {
			return nil
		}
		if err := f.cfg.RequireKeys(); err != nil {
			return exit.Fail(exit.Usage, "", err) // its unit does not start it again
		}
		return nil
	}
	f.cfg.Relay = "unix:" + door.Addr().String()
	c.Doors = append(c.Doors, private.Listener(door)) // this process alone: anybody may find the name and connect
	c.Beside = func(ctx context.Context) error {
		cfg := f.cfg
		cfg.Steering = steer.New(ctx, cfg.Controller, log)
		return switchd.Run(ctx, cfg, log)
	}
	f.cfg.OperatorAPI = new(switchd.OperatorAPI)
	c.Mounts = append(c.Mounts, f.cfg.OperatorAPI.Mount())
	c.Metrics = obs.NewMetrics("controld")
	f.cfg.Metrics = c.Metrics.Part("switchd")
	return nil
}
