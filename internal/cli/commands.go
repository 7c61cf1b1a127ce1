package cli

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/boost"
	"scaffold.dev/scaffold/internal/cli/capture"
	"scaffold.dev/scaffold/internal/cli/daemons"
	"scaffold.dev/scaffold/internal/cli/diagnosis"
	"scaffold.dev/scaffold/internal/cli/events"
	"scaffold.dev/scaffold/internal/cli/flow"
	"scaffold.dev/scaffold/internal/cli/gateway"
	"scaffold.dev/scaffold/internal/cli/guest"
	"scaffold.dev/scaffold/internal/cli/install"
	"scaffold.dev/scaffold/internal/cli/joining"
	"scaffold.dev/scaffold/internal/cli/labcmd"
	"scaffold.dev/scaffold/internal/cli/members"
	"scaffold.dev/scaffold/internal/cli/network"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/run"
	"scaffold.dev/scaffold/internal/cli/service"
	"scaffold.dev/scaffold/internal/cli/state"
)

// commands are the subcommands.
func commands(linked Linked) []*cobra.Command {
	return []*cobra.Command{
		daemons.Hostd(),
		daemons.Routerd(),
		daemons.Boostd(),
		daemons.WireGuard(),
		daemons.Controld(linked.Modules),
		run.Command(),
		gateway.Command(),
		guest.Command(),
		demoCommand(),
		labcmd.Command(linked.Programs),
		service.Command(),
		service.ApplyCommand(),
		service.DiffCommand(),
		service.ExportCommand(),
		members.HostCommand(),
		members.RouterCommand(),
		members.ControllerCommand(),
		state.Command(),
		flow.Command(),
		network.Command(),
		boost.Command(),
		flow.ExplainCommand(),
		events.Command(),
		diagnosis.StatusCommand(),
		remote.ConfigCommand(),
		joining.JoinCommand(),
		joining.LeaveCommand(),
		joining.RotateCommand(),
		joining.LoginCommand(),
		joining.LogoutCommand(),
		members.AdminCommand(),
		members.TokenCommand(),
		capture.Command(),
		monitoringCommand(),
		diagnosis.SupportCommand(),
		install.UpgradeCommand(),
		diagnosis.DoctorCommand(),
		install.Command(),
		install.UninstallCommand(),
		versionCommand(),
		packagingCommand(),
		benchCommand(),
	}
}
