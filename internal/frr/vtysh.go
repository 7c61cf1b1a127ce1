package frr

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Ask gives commands to the daemons of the router in dir as an operator types them into vtysh, and returns what
// they answer.
func Ask(ctx context.Context, dir string, commands ...string) (string, error) {
	var argv []string
	for _, c := range commands {
		argv = append(argv, "-c", c)
	}
	return vtysh(ctx, dir, argv)
}

// Configure gives lines of configuration to the daemons of the router in dir, each to those that know it. A line
// that none knows is an error.
func Configure(ctx context.Context, dir, lines string) error {
	path := filepath.Join(dir, "user.conf")
	if err := os.WriteFile(path, []byte(lines), 0o644); err != nil {
		return err
	}
	_, err := vtysh(ctx, dir, []string{"-f", path})
	return err
}

func vtysh(ctx context.Context, dir string, argv []string) (string, error) {
	cmd := exec.CommandContext(ctx, "vtysh", append([]string{"--vty_socket", dir}, argv...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("vtysh %s in %s: %w: %s", strings.Join(argv, " "), dir, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
