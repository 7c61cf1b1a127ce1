package controld

import (
	"context"
	"net/http"
	"time"
)

// A stream that does not read, or says nothing, blocks its handler in Send or Receive, where no
// context reaches. The response's deadlines do: withDeadlines passes them down, hangUp uses them.

type deadlinesKey struct{}

func withDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), deadlinesKey{}, http.NewResponseController(w))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// hangUp makes Send and Receive of the stream with this context fail from now on.
func hangUp(ctx context.Context) {
	if c, ok := ctx.Value(deadlinesKey{}).(*http.ResponseController); ok {
		past := time.Unix(1, 0)
		_ = c.SetReadDeadline(past) // fails only where the stream has ended
		_ = c.SetWriteDeadline(past)
	}
}
