package cli

import (
	"github.com/spf13/cobra"
)

// commands are the subcommands.
func commands(linked Linked) []*cobra.Command {
	return []*cobra.Command{
		hostdCommand(),
		routerdCommand(),
		wireguardCommand(),
		controldCommand(linked.Modules),
		runCommand(),
		gatewayCommand(),
		guestCommand(),
		demoCommand(),
		labCommand(linked.Programs),
		serviceCommand(),
		applyCommand(),
		diffCommand(),
		exportCommand(),
		hostCommand(),
		routerCommand(),
		controllerCommand(),
		stateCommand(),
		flowCommand(),
		netCommand(),
		explainCommand(),
		eventsCommand(),
		statusCommand(),
		joinCommand(),
		leaveCommand(),
		rotateCommand(),
		loginCommand(),
		logoutCommand(),
		adminCommand(),
		tokenCommand(),
		captureCommand(),
		monitoringCommand(),
		supportCommand(),
		upgradeCommand(),
		doctorCommand(),
		installCommand(),
		uninstallCommand(),
		versionCommand(),
		packagingCommand(),
		benchCommand(),
	}
}
