package controld

import (
	"context"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/obs"
)

// backupPiece is how much of a backup goes into one message.
const backupPiece = 64 << 10

// BackupState sends all that is stored, as of one moment.
func (a *adminAPI) BackupState(ctx context.Context, _ *connect.Request[apiv1.BackupStateRequest], stream *connect.ServerStream[apiv1.BackupPiece]) error {
	err := a.n.seat.store.Backup(ctx, time.Now().UTC().Format(time.RFC3339), obs.Version(), pieceWriter{stream})
	return apiError(err)
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
