package controld

import (
	"context"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// backupPiece is how much of a backup goes into one message.
const backupPiece = 64 << 10

// BackupState sends all that is stored, as of one moment.
func (a *adminAPI) BackupState(ctx context.Context, _ *connect.Request[apiv1.BackupStateRequest], stream *connect.ServerStream[apiv1.BackupPiece]) error {
	if err := a.n.orders.Record(ctx, events.New("state.backup", a.n.cfg.Network, "a copy of all that is stored was taken, the network's key in it")); err != nil {
		a.n.log.Warn("the history lacks that a backup was taken", "error", err) // a full disk is when a backup is wanted most
	}
	err := a.n.process.store.Backup(ctx, time.Now().UTC().Format(time.RFC3339), obs.Version(), pieceWriter{stream})
	return orders.Error(err)
}

type pieceWriter struct {
	stream *connect.ServerStream[apiv1.BackupPiece]
}

func (w pieceWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		k := min(len(p), backupPiece)
		if err := w.stream.Send(&apiv1.BackupPiece{Data: p[:k]}); err != nil {
			return n, err
		}
		n, p = n+k, p[k:]
	}
	return n, nil
}
