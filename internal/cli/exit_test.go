package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/store"
)

// A restore waits for an etcd that is not there; who has enough of that is not told of the etcd.
func TestARestoreThatIsInterruptedSaysSo(t *testing.T) {
	away := fmt.Errorf("store: %w: %w", store.ErrAway, context.Canceled)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	for _, c := range []struct {
		code ExitCode
		say  string
	}{{ExitUnreachable, "scaffold: store: no etcd answers: context canceled\n"}, {ExitFailed, "scaffold: interrupted: the backup is not restored\nhint: the same command begins it anew\n"}} {
		var stderr strings.Builder
		if code := report(&stderr, explainRestore(ctx, away)); code != int(c.code) || stderr.String() != c.say {
			t.Errorf("exit code %d and %q, want %d and %q", code, stderr.String(), c.code, c.say)
		}
		interrupt()
	}
}

func TestErrorsThatNobodyClassifiedAreOneLineWithTheirCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		code ExitCode
		say  string
	}{
		{errors.Join(fmt.Errorf("state: %w", fs.ErrPermission), errors.New("and the pins")), ExitMissing, "scaffold: state: permission denied; and the pins"},
		{fmt.Errorf("listen: %w", syscall.EADDRINUSE), ExitRefused, "scaffold: listen: address already in use"},
		{fmt.Errorf("data: %w", store.ErrInUse), ExitRefused, "scaffold: data: "},
		{context.Canceled, ExitFailed, "scaffold: interrupted"},
		{fs.ErrNotExist, ExitNotFound, "scaffold: file does not exist"},
	} {
		var stderr strings.Builder
		code := report(&stderr, c.err)
		if first, _, _ := strings.Cut(stderr.String(), "\n"); code != int(c.code) || !strings.HasPrefix(first, c.say) {
			t.Errorf("%q: exit code %d and %q, want %d and %q", c.err, code, first, c.code, c.say)
		}
	}
}
