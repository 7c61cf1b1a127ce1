package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controld"
	"scaffold.dev/scaffold/internal/store"
)

// severalFlags are controld's flags about several controllers of one network, and where they keep the state.
type severalFlags struct {
	log           *slog.Logger
	cluster, join []string
	peer          string
	etcd, peers   pemFiles
}

// pemFiles are the files by which one end of a connection shows who it is and knows the other one.
type pemFiles struct{ ca, cert, key string }

func (f *severalFlags) add(cmd *cobra.Command, cfg *controld.Config) {
	set := cmd.Flags()
	set.StringSliceVar(&cfg.Etcd, "etcd", nil, "endpoints of an etcd to keep the state in, instead of --data; several controllers may share it, and one leads")
	set.StringVar(&f.etcd.ca, "etcd-ca", "", "certificates (PEM) of those who may vouch for that etcd")
	set.StringVar(&f.etcd.cert, "etcd-cert", "", "certificate (PEM) to show to it")
	set.StringVar(&f.etcd.key, "etcd-key", "", "its private key (PEM)")
	set.StringSliceVar(&f.cluster, "cluster", nil, "the controllers that keep the state together, this one among them, NAME=URL,...: URL is where the others reach a controller's part of the state, as http://10.0.0.1:23729")
	set.StringVar(&f.peer, "peer", "", "URL of this controller's part of the state, where --cluster does not say it")
	set.StringSliceVar(&f.join, "join", nil, "endpoints of controllers whose network this one joins, once: with --peer, and an empty --data; https://, after \"scaffold login\" by the same user, where the network has keys")
	set.StringVar(&f.peers.ca, "peer-ca", "", "certificates (PEM) of those who may vouch for the other controllers' parts of the state; without it whoever reaches --peer is believed")
	set.StringVar(&f.peers.cert, "peer-cert", "", "certificate (PEM) of this controller's part")
	set.StringVar(&f.peers.key, "peer-key", "", "its private key (PEM)")
	set.StringSliceVar(&cfg.Advertise, "advertise", nil, "endpoints at which daemons and other controllers reach this one (default: as --listen says, or the host of --cluster)")
	set.DurationVar(&cfg.LeaderLease, "leader-lease", store.DefaultLease, "how long the silence of a controller that leads is waited for before another one does")
}

// used reports whether there may be several controllers.
func (f *severalFlags) used(cfg *controld.Config) bool {
	return len(cfg.Etcd) > 0 || len(f.cluster) > 0 || f.peer != "" || len(f.join) > 0
}

// parse reads what was typed.
func (f *severalFlags) parse(cfg *controld.Config) (err error) {
	if err := checkEtcd(cfg.Etcd); err != nil {
		return err
	}
	if cfg.EtcdTLS, err = f.etcd.config("etcd", cfg.Etcd); err != nil {
		return err
	}
	if len(f.cluster) == 0 && f.peer == "" {
		switch {
		case len(f.join) > 0:
			return errors.New("--join without --peer: want the URL where the others reach this controller's part of the state, as --peer http://10.0.0.2:23729")
		case f.peers != pemFiles{}:
			return errors.New("--peer-ca, --peer-cert and --peer-key without --cluster or --peer: there are no other controllers")
		}
		return nil
	}
	c := &store.Cluster{Name: cfg.Name, Peer: f.peer, CertFile: f.peers.cert, KeyFile: f.peers.key, CAFile: f.peers.ca}
	if c.Members, err = store.ParseMembers(f.cluster); err != nil {
		return fmt.Errorf("--cluster: %w", err)
	}
	if f.peer != "" {
		if err := store.CheckPeer(f.peer); err != nil {
			return fmt.Errorf("--peer: %w", err)
		}
	}
	if f.peers != (pemFiles{}) && (f.peers.ca == "" || f.peers.cert == "" || f.peers.key == "") {
		return errors.New("the controllers' own connections need --peer-ca, --peer-cert and --peer-key together")
	}
	if secure := strings.HasPrefix(c.Own(), "https:"); secure != (f.peers != pemFiles{}) {
		return fmt.Errorf("peer %s: https:// goes with --peer-ca, --peer-cert and --peer-key, and http:// without", c.Own())
	}
	for _, endpoint := range f.join {
		if _, err := api.ParseEndpoint(endpoint); err != nil {
			return fmt.Errorf("--join: %w", err)
		}
	}
	if len(f.join) > 0 {
		c.Join = func(ctx context.Context) ([]store.Peer, error) { return f.ask(ctx, cfg, c.Own()) }
	}
	cfg.Cluster = c
	return nil
}

// checkEtcd says what is wrong with how endpoints of an etcd are written.
func checkEtcd(endpoints []string) error {
	for _, e := range endpoints {
		if strings.HasPrefix(e, "unix") { // which it has in forms of its own
			continue
		}
		if _, err := api.ParseEndpoint(e); err != nil {
			return fmt.Errorf("--etcd: %w", err)
		}
	}
	return nil
}

// joinAgain is the pause between attempts to be taken in.
const joinAgain = 500 * time.Millisecond

// ask has a controller of the network take this one in. etcd refuses while one that was taken in before is still
// learning, and while the network has no leader: both pass.
func (f *severalFlags) ask(ctx context.Context, cfg *controld.Config, peer string) (members []store.Peer, err error) {
	var told string
	for {
		for _, endpoint := range f.join {
			if members, err = askAt(ctx, endpoint, &apiv1.AddControllerRequest{Name: cfg.Name, Member: peer, Network: cfg.Network}); err == nil {
				return members, nil
			}
			if code := connect.CodeOf(err); code != connect.CodeUnavailable && code != connect.CodeDeadlineExceeded {
				return nil, err
			}
			if text := err.Error(); text != told && ctx.Err() == nil {
				told = text
				f.log.Warn("not taken in yet; trying again", "why", text)
			}
		}
		select {
		case <-time.After(joinAgain):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func askAt(ctx context.Context, endpoint string, req *apiv1.AddControllerRequest) (members []store.Peer, err error) {
	who, err := as(endpoint) // growing a network with keys is for its administrators
	if err != nil {
		return nil, err
	}
	client, base, err := api.DialAs(endpoint, who)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := apiv1connect.NewAdminClient(client, base).AddController(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, fmt.Errorf("at %s: %w", endpoint, err)
	}
	for _, m := range answer.Msg.Members {
		members = append(members, store.Peer{Name: m.Name, URL: m.Member})
	}
	return members, nil
}

// config reads the files; of is how the flags begin.
func (p pemFiles) config(of string, endpoints []string) (*tls.Config, error) {
	secure := false
	for _, e := range endpoints {
		secure = secure || strings.HasPrefix(e, "https://")
	}
	if p == (pemFiles{}) && !secure {
		return nil, nil
	}
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("--%s-ca, --%s-cert and --%s-key without --%s", of, of, of, of)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.ca != "" {
		pem, err := os.ReadFile(p.ca)
		if err != nil {
			return nil, fmt.Errorf("--%s-ca: %w", of, err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--%s-ca %s: no certificate in it", of, p.ca)
		}
	}
	if (p.cert == "") != (p.key == "") {
		return nil, fmt.Errorf("--%s-cert and --%s-key go together", of, of)
	}
	if p.cert != "" {
		pair, err := tls.LoadX509KeyPair(p.cert, p.key)
		if err != nil {
			return nil, fmt.Errorf("--%s-cert, --%s-key: %w", of, of, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
