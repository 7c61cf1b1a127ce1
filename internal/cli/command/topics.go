package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Cobra brings two commands of its own, help and completion. Both answer what does not exist with help and exit code 0:
// a script that makes a file of what they print would install that.

// completionFor is where each shell looks for what completes our commands.
var completionFor = map[string]string{
	"bash":       " > /etc/bash_completion.d/scaffold",
	"fish":       " > ~/.config/fish/completions/scaffold.fish",
	"powershell": " | Out-String | Invoke-Expression",
	"zsh":        ` > "${fpath[1]}/_scaffold"`,
}

// ownTopics puts them in, with our refusals.
func ownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 || found == root && len(args) > 0 {
					return fmt.Errorf("help %s: there is no such command", strings.Join(args, " "))
				}
				return nil
			}
		case "completion":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return fmt.Errorf("%s: for which shell? bash, fish, powershell or zsh", cmd.CommandPath())
				}
				return fmt.Errorf("%s %q: want bash, fish, powershell or zsh", cmd.CommandPath(), args[0])
			}
			cmd.RunE = func(*cobra.Command, []string) error { return nil } // Args has refused by then
			for _, shell := range cmd.Commands() {
				shell.Example = "  scaffold completion " + shell.Name() + completionFor[shell.Name()]
			}
		}
	}
}
