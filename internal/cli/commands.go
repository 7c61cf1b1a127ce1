package cli

import "github.com/spf13/cobra"

// commands lists the constructors of the subcommands.
var commands = []func() *cobra.Command{
	hostdCommand,
	routerdCommand,
	controldCommand,
	runCommand,
	demoCommand,
	labCommand,
	serviceCommand,
	hostCommand,
	routerCommand,
	flowCommand,
	netCommand,
	explainCommand,
	eventsCommand,
	statusCommand,
	doctorCommand,
	benchCommand,
}
