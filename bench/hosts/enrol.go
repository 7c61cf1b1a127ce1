package hosts

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"fmt"
	"sync"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
)

// enrolling is how many members are given a credential at a time.
const enrolling = 64

// enrol makes hosts and routers members of a network with keys, as their machines were long before they all come.
func (c *Crowd) enrol(ctx context.Context, routers []string) error {
	to, err := api.ParseEndpoint(c.cfg.Endpoint)
	c.dial = func(string) (api.Endpoint, error) { return to, nil }
	if err != nil || !c.cfg.Keys {
		return err
	}
	client, base, err := api.Dial(c.cfg.Issuer)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	issuer := apiv1connect.NewTrustClient(client, base)
	var mu sync.Mutex
	configs := map[string]*tls.Config{}
	c.keys = map[string]ed25519.PrivateKey{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(enrolling)
	one := func(role trust.Role, name string) error {
		key, config, err := credential(ctx, issuer, role, name)
		if err != nil {
			return fmt.Errorf("a credential for %s %s: %w", role, name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		c.keys[name], configs[name] = key, config
		return nil
	}
	for _, name := range routers {
		group.Go(func() error { return one(trust.Router, name) })
	}
	for i := range c.cfg.Hosts {
		group.Go(func() error { return one(trust.Host, hostName(i)) })
	}
	c.dial = func(name string) (api.Endpoint, error) { return to.As(configs[name]), nil }
	return group.Wait()
}

func credential(ctx context.Context, issuer apiv1connect.TrustClient, role trust.Role, name string) (ed25519.PrivateKey, *tls.Config, error) {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, nil, err
	}
	answer, err := issuer.Issue(ctx, connect.NewRequest(&apiv1.IssueRequest{Role: string(role), Name: name, Key: public}))
	if err != nil {
		return nil, nil, err
	}
	m, err := trust.NewMember(key, trust.Credential{Certificate: answer.Msg.Certificate, Roots: answer.Msg.Roots})
	if err != nil {
		return nil, nil, err
	}
	return key, m.Config(), nil
}
