package session

import (
	"context"
	"net/http"
	"time"
)

// A stream that does not read, or says nothing, blocks its handler in Send or Receive, where no
// context reaches. The response's deadlines do: WithDeadlines passes them down, hangUp uses them.

type deadlinesKey struct{}

// WithDeadlines lets sessions of a handler hang up.
func WithDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), deadlinesKey{}, http.NewResponseController(w))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// HangUpAfter makes Send and Receive of the stream fail once ctx, which comes from the stream's, ends.
// The handler calls stop before it returns: after that the response must not be touched.
func HangUpAfter(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(done)
		hangUp(ctx)
	})
	return func() {
		if !cancel() {
			<-done
		}
	}
}

func hangUp(ctx context.Context) {
	if c, ok := ctx.Value(deadlinesKey{}).(*http.ResponseController); ok {
		past := time.Unix(1, 0)
		_ = c.SetReadDeadline(past) // fails only where the stream has ended
		_ = c.SetWriteDeadline(past)
	}
}
