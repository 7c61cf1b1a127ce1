package agent

import (
	"context"
	"net"

	"scaffold.dev/scaffold"
)

// listen listens for connections; resuming: also for those that began at another instance. A crowd's need nothing
// else: each question stands alone.
func listen(ctx context.Context, addr string, resuming bool) (net.Listener, error) {
	if resuming {
		return (&scaffold.ListenConfig{CanResume: true}).Listen(ctx, "tcp", addr)
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp6", addr)
}
