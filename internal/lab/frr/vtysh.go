package frr

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Configure gives lines of configuration to the daemons of the router in dir, each to those that know it. A line
// that none knows is an error.
func Configure(ctx context.Context, dir, lines string) error {
	path := filepath.Join(dir, "user.conf")
	if err := os.WriteFile(path, []byte(lines), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "vtysh", "--vty_socket", dir, "-f", path)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("vtysh -f %s in %s: %w: %s", path, dir, err, strings.TrimSpace(string(out)))
	}
	return nil
}
