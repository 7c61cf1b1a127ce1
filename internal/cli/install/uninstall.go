package install

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/operate/setup"
)

const aboutUninstall = `Uninstall stops the daemons that were installed here and removes what "scaffold install" made: of the
roles that are named, or all. A host leaves its network; a resolv.conf that was replaced is put back as
it was. Files that somebody has edited since stay, and are named.

State stays (keys, the controller's database) until --purge, which removes configuration files,
state and the user as well. What a package brought is the package's: apt remove scaffold.`

// UninstallCommand is `scaffold uninstall`.
func UninstallCommand() *cobra.Command {
	var root string
	var dryRun, purge, keepConfig bool
	cmd := &cobra.Command{
		Use:   "uninstall [controller|router|host|gateway|agent]...",
		Short: "Stop the daemons that were installed here and remove what install made",
		Long:  aboutUninstall,
		Example: `  sudo scaffold uninstall --dry-run
  sudo scaffold uninstall host
  sudo scaffold uninstall --purge`,
		ValidArgs: []string{"controller", "router", "host", "gateway", "agent"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var roles []setup.Role
			for _, text := range args {
				r, err := setup.ParseRole(text)
				if err != nil {
					return exit.Fail(exit.Usage, "", err)
				}
				roles = append(roles, r)
			}
			m, err := (&installation{root: root, dryRun: dryRun}).machine()
			if err != nil {
				return err
			}
			rm, err := m.Removal(roles, purge, keepConfig)
			if err != nil {
				return setupError(err)
			}
			return uninstall(cmd, m, rm, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be done, and do nothing")
	cmd.Flags().StringVar(&root, "root", "", "the image below this directory, instead of this machine")
	cmd.Flags().BoolVar(&purge, "purge", false, "remove configuration, state and the user too")
	cmd.Flags().BoolVar(&keepConfig, "keep-config", false, "leave the configuration files, for another installation")
	command.Exclusive(cmd, "keep-config purge")
	return cmd
}

func uninstall(cmd *cobra.Command, m *setup.Machine, rm *setup.Removal, dryRun bool) error {
	out := cmd.OutOrStdout()
	if dryRun {
		for _, line := range rm.Lines(m) {
			fmt.Fprintln(out, line)
		}
		return nil
	}
	if err := m.Uninstall(rm); err != nil {
		return exit.Fail(exit.Failed, "what is left is still listed: uninstall again once the cause is gone", err)
	}
	for _, text := range rm.Keep {
		fmt.Fprintln(out, "kept:", text)
	}
	for _, r := range rm.Roles {
		fmt.Fprintf(out, "%s is uninstalled\n", r)
	}
	if len(rm.Keep) > 0 {
		fmt.Fprintln(os.Stderr, "scaffold: not all was removed: the lines above that begin with \"kept:\" say what stays, and why")
		return exit.Silent(exit.Refused)
	}
	return nil
}
