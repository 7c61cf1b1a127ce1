package daemons

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/etcd"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/store"
)

// severalFlags are controld's flags about several controllers of one network, and where they keep the state.
type severalFlags struct {
	log           *slog.Logger
	cluster, join []string
	peer          string
	etcd, peers   etcd.Files
}

func (f *severalFlags) add(cmd *cobra.Command, cfg *config.Config) {
	set := cmd.Flags()
	set.StringSliceVar(&cfg.Etcd, "etcd", nil, "endpoints of an etcd to keep the state in, instead of --data; several controllers may share it, and one leads")
	f.etcd.Add(set)
	set.StringSliceVar(&f.cluster, "cluster", nil, "the controllers that keep the state together, this one among them, NAME=URL,...: URL is where the others reach a controller's part of the state, as https://10.0.0.1:23729")
	set.StringVar(&f.peer, "peer", "", "URL of this controller's part of the state, where --cluster does not say it")
	set.StringSliceVar(&f.join, "join", nil, "endpoints of controllers whose network this one joins, once: with --peer, and an empty --data; https://, after \"scaffold login\" by the same user, where the network has keys")
	set.StringVar(&f.peers.CA, "peer-ca", "", "certificates (PEM) of those who may vouch for the other controllers' parts of the state; without it whoever reaches --peer is believed")
	set.StringVar(&f.peers.Cert, "peer-cert", "", "certificate (PEM) of this controller's part")
	set.StringVar(&f.peers.Key, "peer-key", "", "its private key (PEM)")
	set.BoolVar(&cfg.PeerClear, "peer-clear", false, "in a network with keys: let --cluster and --peer be http:// too, where nobody but the controllers reaches these addresses; who does reads the network's key and rules it")
	set.BoolVar(&cfg.EtcdClear, "etcd-clear", false, "in a network with keys: let --etcd be http:// too, where nobody but etcd and the controllers is on the way; who is reads the network's key and rules it")
	set.StringSliceVar(&cfg.Advertise, "advertise", nil, "endpoints at which daemons and other controllers reach this one (default: as --listen says, or the host of --cluster)")
	set.DurationVar(&cfg.LeaderLease, "leader-lease", store.DefaultLease, "how long the silence of a controller that leads is waited for before another one does")
}

// used reports whether there may be several controllers.
func (f *severalFlags) used(cfg *config.Config) bool {
	return len(cfg.Etcd) > 0 || len(f.cluster) > 0 || f.peer != "" || len(f.join) > 0
}

// parse reads what was typed.
func (f *severalFlags) parse(cfg *config.Config) (err error) {
	if err := etcd.Check(cfg.Etcd); err != nil {
		return err
	}
	if cfg.EtcdTLS, err = f.etcd.Config("etcd", cfg.Etcd); err != nil {
		return err
	}
	cfg.EtcdCertFile = f.etcd.Cert
	if cfg.EtcdClear && len(cfg.Etcd) == 0 {
		return errors.New("--etcd-clear without --etcd: the state is in no etcd elsewhere")
	}
	if len(f.cluster) == 0 && f.peer == "" {
		switch {
		case len(f.join) > 0:
			return errors.New("--join without --peer: want the URL where the others reach this controller's part of the state, as --peer https://10.0.0.2:23729")
		case f.peers != etcd.Files{}:
			return errors.New("--peer-ca, --peer-cert and --peer-key without --cluster or --peer: there are no other controllers")
		case cfg.PeerClear:
			return errors.New("--peer-clear without --cluster or --peer: there are no other controllers")
		}
		return nil
	}
	c := &store.Cluster{Name: cfg.Name, Peer: f.peer, CertFile: f.peers.Cert, KeyFile: f.peers.Key, CAFile: f.peers.CA}
	if c.Members, err = store.ParseMembers(f.cluster); err != nil {
		return fmt.Errorf("--cluster: %w", err)
	}
	if f.peer != "" {
		if err := store.CheckPeer(f.peer); err != nil {
			return fmt.Errorf("--peer: %w", err)
		}
	}
	if f.peers != (etcd.Files{}) && (f.peers.CA == "" || f.peers.Cert == "" || f.peers.Key == "") {
		return errors.New("the controllers' own connections need --peer-ca, --peer-cert and --peer-key together")
	}
	// The files with http:// are the first of two steps to https://: such a one reaches those that took the second already.
	if strings.HasPrefix(c.Own(), "https:") && f.peers == (etcd.Files{}) {
		return fmt.Errorf("peer %s: https:// needs --peer-ca, --peer-cert and --peer-key", c.Own())
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

// joinAgain is the pause between attempts to be taken in.
const joinAgain = 500 * time.Millisecond

// ask has a controller of the network take this one in. etcd refuses while one that was taken in before is still
// learning, and while the network has no leader: both pass.
func (f *severalFlags) ask(ctx context.Context, cfg *config.Config, peer string) (members []store.Peer, err error) {
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
	who, err := remote.Identity(endpoint) // growing a network with keys is for its administrators
	if err != nil {
		return nil, err
	}
	client, base, err := api.DialAs(endpoint, who)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, remote.AnswerTime)
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
