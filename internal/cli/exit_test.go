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
