package cli

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/monitoring"
)

func monitoringCommand() *cobra.Command {
	g := command.Group("monitoring", "Print what Prometheus, Grafana and Wireshark need to watch a network")
	for _, f := range []struct {
		name, short, example string
		text                 []byte
	}{
		{"alerts", "Print alerting rules for Prometheus", "  scaffold monitoring alerts > /etc/prometheus/rules/scaffold.yaml", monitoring.Alerts},
		{"dashboard", "Print a dashboard for Grafana", "  scaffold monitoring dashboard > scaffold.json", monitoring.Dashboard},
		{"dissector", "Print a plugin for Wireshark and tshark", "  scaffold monitoring dissector > ~/.local/lib/wireshark/plugins/scaffold.lua", monitoring.Dissector},
	} {
		g.AddCommand(&cobra.Command{
			Use: f.name, Short: f.short, Example: f.example, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := cmd.OutOrStdout().Write(f.text)
				return err
			},
		})
	}
	return g
}
