package lab

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
)

// credentialsDir is where a node's key and certificates are: for hosts their daemon's state directory.
func (l *Lab) credentialsDir(n *PlanNode) string { return l.ProgramDir(n.Name, "state") }

// admit makes all routers and hosts members of a network with keys. The lab asks on the controller's Unix socket,
// where no token is needed.
func (l *Lab) admit(ctx context.Context) error {
	if l.File.Network.Trust != "keys" || l.opt.stub != nil || l.File.bare {
		return nil
	}
	client, base, err := api.Dial(l.Controller())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	admin := apiv1connect.NewAdminClient(client, base)
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, fmt.Errorf("the controller did not answer in %v", settleTime))
	defer cancel()
	err = poll(ctx, func() error {
		if err := l.daemonsAlive(); err != nil {
			return err
		}
		return l.controllerAnswers(ctx, admin)
	})
	if err != nil {
		return l.unsettled(err)
	}
	members := apiv1connect.NewTrustClient(client, base)
	for _, n := range l.plan.Nodes {
		role, member := memberOf(n)
		if !member {
			continue
		}
		if err := l.enrol(ctx, members, n, role); err != nil {
			return fmt.Errorf("make %s a member of the network: %w", n.Name, err)
		}
	}
	return nil
}

// memberOf is what a node is a member as, if it is one. Switches are part of their controller.
func memberOf(n *PlanNode) (role trust.Role, member bool) {
	switch {
	case n.Kind == Host:
		return trust.Host, true
	case n.Kind == Router, n.scaffold():
		return trust.Router, true
	}
	return "", false
}

func (l *Lab) enrol(ctx context.Context, members apiv1connect.TrustClient, n *PlanNode, role trust.Role) error {
	dir := trust.Directory(l.credentialsDir(n))
	key, err := dir.Key()
	if err != nil {
		return err
	}
	c, err := members.Issue(ctx, connect.NewRequest(&apiv1.IssueRequest{Role: string(role), Name: n.Name, Key: key.Public().(ed25519.PublicKey)}))
	if err != nil {
		return err
	}
	return dir.Save(trust.Credential{Certificate: c.Msg.Certificate, Roots: c.Msg.Roots})
}
