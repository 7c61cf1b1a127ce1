package cli

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/controller"
)

// commands are the subcommands; the controller's has modules.
func commands(modules []controller.Module) []*cobra.Command {
	return []*cobra.Command{
		hostdCommand(),
		routerdCommand(),
		controldCommand(modules),
		runCommand(),
		demoCommand(),
		labCommand(),
		serviceCommand(),
		hostCommand(),
		routerCommand(),
		flowCommand(),
		netCommand(),
		explainCommand(),
		eventsCommand(),
		statusCommand(),
		doctorCommand(),
		benchCommand(),
	}
}
