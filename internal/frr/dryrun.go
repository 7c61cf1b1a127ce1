package frr

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// refused is how the daemons tell of a line that they do not understand. They go on without it.
var refused = regexp.MustCompile(`(?m)\] (.*on config line [0-9]+: *.*)$`)

// dryRun lets a daemon read its configuration and end. It opens no socket and touches no interface.
func (r *Router) dryRun(ctx context.Context, name string) error {
	path := r.file(name + ".conf")
	argv := append(r.argv(name), "-C")
	if module := slices.Index(argv, "-M"); module >= 0 { // with the feed's module FRR 8.4 crashes in a dry run
		argv = slices.Delete(argv, module, module+2)
	}
	cmd := exec.CommandContext(ctx, r.install.path(name), argv...)
	out, err := cmd.CombinedOutput()
	var said []string
	for _, m := range refused.FindAllStringSubmatch(string(out), -1) {
		if !strings.HasSuffix(m[1], feedLine) { // the module's
			said = append(said, strings.TrimSpace(m[1]))
		}
	}
	if said != nil {
		return fmt.Errorf("%s does not take its configuration %s: %s", name, path, strings.Join(said, "; "))
	}
	if err != nil {
		return fmt.Errorf("%s does not take its configuration %s: %w: %s", name, path, err, strings.TrimSpace(string(out)))
	}
	return nil
}
