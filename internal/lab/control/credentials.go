package control

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/poll"
	"scaffold.dev/scaffold/internal/trust"
)

// Admit makes all routers and hosts members of a network with keys. The lab asks on the controller's Unix socket,
// where no token is needed.
func (c *Control) Admit(ctx context.Context) error {
	if c.Plan.File.Network.Trust != "keys" || c.Stub || c.Plan.File.Bare {
		return nil
	}
	client, base, err := api.Dial(c.Endpoint())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	admin := apiv1connect.NewAdminClient(client, base)
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, fmt.Errorf("the controller did not answer in %v", settleTime))
	defer cancel()
	err = poll.Until(ctx, func() error {
		if err := c.Alive(); err != nil {
			return err
		}
		return c.answers(ctx, admin)
	})
	if err != nil {
		return c.unsettled(err)
	}
	members := apiv1connect.NewTrustClient(client, base)
	for _, n := range c.Plan.Nodes {
		role, member := memberOf(n)
		if !member {
			continue
		}
		if err := c.enrol(ctx, members, n, role, c.Dir.Credentials(n.Name)); err != nil {
			return fmt.Errorf("make %s a member of the network: %w", n.Name, err)
		}
		if n.Kind != file.Agent {
			continue
		}
		if err := c.enrol(ctx, members, n, trust.Agent, c.Dir.Program(n.Name, file.Boostd)); err != nil {
			return fmt.Errorf("make the agent %s a member of the network: %w", n.Name, err)
		}
	}
	return nil
}

// memberOf is what a node is a member as, if it is one. Switches are part of their controller.
func memberOf(n *plan.Node) (role trust.Role, member bool) {
	switch {
	case n.Kind.IsHost():
		return trust.Host, true
	case n.Kind == file.Router, n.RunsScaffold():
		return trust.Router, true
	}
	return "", false
}

func (c *Control) enrol(ctx context.Context, members apiv1connect.TrustClient, n *plan.Node, role trust.Role, at string) error {
	dir := trust.Directory(at)
	key, err := dir.Key()
	if err != nil {
		return err
	}
	issued, err := members.Issue(ctx, connect.NewRequest(&apiv1.IssueRequest{Role: string(role), Name: n.Name, Key: key.Public().(ed25519.PublicKey)}))
	if err != nil {
		return err
	}
	return dir.Save(trust.Credential{Certificate: issued.Msg.Certificate, Roots: issued.Msg.Roots})
}
