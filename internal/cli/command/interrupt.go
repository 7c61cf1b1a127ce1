package command

import (
	"context"
	"os"
)

// Opening a FIFO that nobody writes to, or reading a terminal, ends by no context: the kernel takes the call up again
// after a signal whose handler came back (SA_RESTART, which Go needs). A command that was asked to end leaves such a call
// behind, and the process with it.

// Interruptible runs what may block so, until ctx ends.
func Interruptible[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() { // ends with f, or with the process
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// ReadFile is os.ReadFile until ctx ends.
func ReadFile(ctx context.Context, path string) ([]byte, error) {
	return Interruptible(ctx, func() ([]byte, error) { return os.ReadFile(path) })
}

// OpenFile is os.Open until ctx ends, and so is reading from the file: to close one that the kernel can poll, as it can
// a FIFO, ends a read.
func OpenFile(ctx context.Context, path string) (*os.File, error) {
	f, err := Interruptible(ctx, func() (*os.File, error) { return os.Open(path) })
	if err == nil {
		context.AfterFunc(ctx, func() { f.Close() })
	}
	return f, err
}

// Attempt is interruptible for what has no value.
func Attempt(ctx context.Context, f func() error) error {
	_, err := Interruptible(ctx, func() (struct{}, error) { return struct{}{}, f() })
	return err
}
