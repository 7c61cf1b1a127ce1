// Package poll asks again and again until something is so. Nobody tells a lab that a daemon has made its socket or that a
// router has learned a route; whoever has begun to wait ends by its context, and says what it saw last.
package poll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Until calls check until it returns nil, fails for good or ctx ends; then the last error tells why.
func Until(ctx context.Context, check func() error) error {
	return Every(ctx, 5*time.Millisecond, check)
}

// Every is Until with a pause of one's own between two calls, for what costs the asked one something.
func Every(ctx context.Context, pause time.Duration, check func() error) error {
	for {
		err := check()
		var final *finalError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &final):
			return final.error
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Final is an error of a check after which waiting would not help. Nil stays nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}

type finalError struct{ error }
