package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/helper"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// product is the scaffold that is measured: the one that called this program, else the one beside it, else that in PATH.
func product(cmd *cobra.Command) (string, error) {
	path := os.Getenv(helper.Caller)
	if path == "" {
		var err error
		if path, err = helper.Find("scaffold"); err != nil {
			return "", exit.Failf(exit.Missing, "`make` in Scaffold's source builds both beside each other", "%s: there is no scaffold to measure beside this program or in PATH", cmd.CommandPath())
		}
	}
	tellVersions(cmd, path)
	return path, nil
}

// tellVersions says where the two are of different versions: to measure an older one is as good a use as any, but the
// labs may not understand its daemons.
func tellVersions(cmd *cobra.Command, path string) {
	var says struct{ Scaffold string }
	out, err := exec.CommandContext(cmd.Context(), path, "version", "-o", "json").Output()
	if err == nil {
		err = json.Unmarshal(out, &says)
	}
	if own := obs.Version(); cmd.Context().Err() == nil && (err != nil || says.Scaffold != own) {
		cmd.PrintErrf("note: what is measured is %s, of version %s; scaffold-bench is of version %s\n", path, cmp.Or(says.Scaffold, "unknown"), own)
	}
}

// onLab brings a lab of the product up for a benchmark, and takes it down again.
func onLab(cmd *cobra.Command, f *file.File, use func(context.Context, *lab.Lab) error) error {
	path, err := product(cmd)
	if err != nil {
		return err
	}
	opt := labs.Progress(cmd, true)
	opt.Binary = path
	return labs.Fail(lab.With(cmd.Context(), f, opt, use))
}
