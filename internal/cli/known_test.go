package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/controller/store"
)

func TestErrorsThatNobodyClassifiedAreOneLineWithTheirCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		code exit.Code
		say  string
	}{
		{errors.Join(fmt.Errorf("state: %w", fs.ErrPermission), errors.New("and the pins")), exit.Missing, "scaffold: state: permission denied; and the pins"},
		{fmt.Errorf("listen: %w", syscall.EADDRINUSE), exit.Refused, "scaffold: listen: address already in use"},
		{fmt.Errorf("data: %w", store.ErrInUse), exit.Refused, "scaffold: data: "},
		{context.Canceled, exit.Failed, "scaffold: interrupted"},
		{fs.ErrNotExist, exit.NotFound, "scaffold: file does not exist"},
	} {
		var stderr strings.Builder
		code := exit.Report(&stderr, c.err, known)
		if first, _, _ := strings.Cut(stderr.String(), "\n"); code != int(c.code) || !strings.HasPrefix(first, c.say) {
			t.Errorf("%q: exit code %d and %q, want %d and %q", c.err, code, first, c.code, c.say)
		}
	}
}
