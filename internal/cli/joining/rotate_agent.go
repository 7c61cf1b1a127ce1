package joining

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

const (
	// takesUp is how long an agent that runs may take to join with another key: it looks each second, and joins by one exchange.
	takesUp = 10 * time.Second
	// askEach is how often the controller is asked whether it has.
	askEach = 200 * time.Millisecond
)

// rotateAgent gets the agent whose credentials are in the directory another key. The agent finds it there.
func rotateAgent(cmd *cobra.Command, dir trust.Directory) error {
	m, err := dir.Load()
	switch {
	case errors.Is(err, trust.ErrNone):
		return exit.Failf(exit.NotFound, "--state names the directory that `scaffold join` wrote; an agent of an open network has no key to replace", "%v", err)
	case err != nil:
		return err
	case m.Who().Role != trust.Agent:
		return exit.Failf(exit.Usage, "leave --state out, or say --socket: the daemon of a host or router gets its key itself", "%s is of %v, and --state is for agents of boost", dir, m.Who())
	}
	key, by, err := getKey(cmd.Context(), dir)
	if err != nil {
		return err
	}
	who := m.Who()
	if !tookUp(cmd.Context(), dir, by, who.Name, key) {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		return exit.Failf(exit.Unreachable, "start it (systemctl start scaffold-boostd), or where it runs, perhaps by a version of before: systemctl reload scaffold-boostd; journalctl -u scaffold-boostd says what keeps it from it",
			"%v got the key %08x and has not joined with it for %v: until it does, the one of before counts", who, wire.KeyID(key), takesUp)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%v has the key %08x now; the one of before counts for another minute\n", who, wire.KeyID(key))
	return nil
}

// getKey asks the controllers, one after the other, for a credential for another key, and says which has given it.
func getKey(ctx context.Context, dir trust.Directory) (key ed25519.PublicKey, by string, err error) {
	last := exit.Failf(exit.Unreachable, "", "no address of a controller is known in %s: join again with a token", dir)
	for _, address := range dir.Addresses() {
		once, cancel := context.WithTimeout(ctx, remote.AnswerTime)
		key, err = (&member.Credentials{Directory: dir}).RotateAt(once, "https://"+address, nil, true)
		cancel()
		if err == nil {
			return key, address, nil
		}
		if !errors.As(err, new(*connect.Error)) { // the directory, and no controller
			return nil, "", err
		}
		switch connect.CodeOf(err) {
		case connect.CodeFailedPrecondition, connect.CodePermissionDenied, connect.CodeInvalidArgument, connect.CodeUnauthenticated:
			return nil, "", exit.Failf(exit.Refused, "", "%s", said(err))
		}
		last = exit.Failf(exit.Unreachable, "is a controller running there?", "no controller at %s: %s", address, said(err))
	}
	return nil, "", last
}

// tookUp waits until the agent has joined with the key, as the controller says that has certified it.
func tookUp(ctx context.Context, dir trust.Directory, at, name string, key ed25519.PublicKey) bool {
	m, err := dir.Load()
	if err != nil {
		return false
	}
	client, base, err := api.DialAs("https://"+at, m.Config())
	if err != nil {
		return false
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, takesUp)
	defer cancel()
	again := time.NewTicker(askEach)
	defer again.Stop()
	for want := fmt.Sprintf("%08x", wire.KeyID(key)); ; {
		if all, err := apiv1connect.NewTrustClient(client, base).ListMembers(ctx, connect.NewRequest(&apiv1.ListMembersRequest{})); err == nil {
			if slices.ContainsFunc(all.Msg.Members, func(m *apiv1.Member) bool { return m.Role == string(trust.Agent) && m.Name == name && m.Key == want }) {
				return true
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
}
